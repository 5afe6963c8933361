"""Passwords are read only from files that no other user can read, and never appear in a message."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.file_access import MAX_PASSWORD_BYTES, SecretError, read_password

SECRET = "hunter2"  # noqa: S105 - not a real secret


def written(folder: Path, content: bytes, mode: int = 0o600) -> Path:
    path = folder / "password"
    path.write_bytes(content)
    path.chmod(mode)
    return path


def rejection(path: Path) -> str:
    with pytest.raises(SecretError) as caught:
        read_password(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert message.isprintable()
    assert SECRET not in message
    return message


@given(
    st.text(min_size=1, max_size=50).filter(lambda text: not set(text) & {"\n", "\r"}),
    st.sampled_from(["", "\n", "\r\n"]),
)
def test_the_password_is_the_first_line(tmp_path_factory: pytest.TempPathFactory, password: str, end: str) -> None:
    folder = tmp_path_factory.mktemp("secrets")
    content = f"{password}{end}" if not end else f"{password}{end}more{end}"
    assert read_password(written(folder, content.encode())) == password


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o602, 0o777])
def test_a_file_accessible_to_others_is_rejected(tmp_path: Path, mode: int) -> None:
    path = written(tmp_path, SECRET.encode(), mode)
    assert rejection(path).endswith(f"accessible to other users (hint: run 'chmod 600 {path}')")


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_file_accessible_only_to_its_owner_is_read(tmp_path: Path, mode: int) -> None:
    assert read_password(written(tmp_path, SECRET.encode(), mode)) == SECRET


def test_for_a_symbolic_link_the_mode_of_its_target_is_checked(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(written(tmp_path, SECRET.encode()))
    assert read_password(link) == SECRET


@pytest.mark.parametrize("content", [b"", b"\n", b"\r\n", b"\nhunter2\n"])
def test_an_empty_first_line_is_rejected(tmp_path: Path, content: bytes) -> None:
    assert "is empty" in rejection(written(tmp_path, content))


def test_a_binary_file_is_rejected(tmp_path: Path) -> None:
    assert "not UTF-8 text" in rejection(written(tmp_path, b"\xff\xfe" + SECRET.encode()))


def test_a_large_file_is_rejected(tmp_path: Path) -> None:
    assert "larger than" in rejection(written(tmp_path, SECRET.encode() * MAX_PASSWORD_BYTES))


def test_a_special_file_is_rejected_without_blocking(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    for path in (pipe, tmp_path, Path("/dev/null")):
        assert "not a regular file" in rejection(path)


def test_a_missing_file_is_rejected(tmp_path: Path) -> None:
    assert "No such file" in rejection(tmp_path / "nowhere")
    with pytest.raises(SecretError, match="invalid path"):
        read_password(Path("a\0b"))
