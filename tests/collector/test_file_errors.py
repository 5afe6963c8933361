"""The context manager for the errors of files."""

from pathlib import Path

import pytest

from collector.file_access import SecretError, file_errors


def test_names_the_file_of_the_error(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(SecretError) as caught, file_errors(tmp_path, SecretError):
        missing.read_bytes()
    assert str(caught.value) == f"{missing}: No such file or directory"
    assert caught.value.__suppress_context__


def test_names_the_path_if_the_file_is_unknown() -> None:
    with pytest.raises(SecretError, match=r"^/run: Input/output error$"), file_errors("/run", SecretError):
        raise OSError(5, "Input/output error")


def test_an_error_without_a_number_is_one_line() -> None:
    with pytest.raises(SecretError, match=r"^/run: cannot read that file$"), file_errors("/run", SecretError):
        raise OSError("cannot\nread that file")


def test_other_errors_pass() -> None:
    with pytest.raises(ValueError, match=r"^other$"), file_errors("/run", SecretError):
        raise ValueError("other")
