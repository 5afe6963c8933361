"""Passwords from files: only from one that is the reader's own affair, and never in a message."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.secrets import LARGEST_BYTES, SecretError, read_password

SECRET = "hunter2"  # noqa: S105 - the secret of nothing


def written(folder: Path, content: bytes, mode: int = 0o600) -> Path:
    path = folder / "password"
    path.write_bytes(content)
    path.chmod(mode)
    return path


def refused(path: Path) -> str:
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
def test_the_first_line_is_the_password_to_the_letter(
    tmp_path_factory: pytest.TempPathFactory, password: str, end: str
) -> None:
    folder = tmp_path_factory.mktemp("secrets")
    content = f"{password}{end}" if not end else f"{password}{end}more{end}"
    assert read_password(written(folder, content.encode())) == password


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o602, 0o777])
def test_a_file_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    path = written(tmp_path, SECRET.encode(), mode)
    assert refused(path).endswith(f"can be read by others: chmod 600 {path}")


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_file_for_its_owner_alone_is_read(tmp_path: Path, mode: int) -> None:
    assert read_password(written(tmp_path, SECRET.encode(), mode)) == SECRET


def test_through_a_link_the_file_itself_is_judged(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(written(tmp_path, SECRET.encode()))
    assert read_password(link) == SECRET


@pytest.mark.parametrize("content", [b"", b"\n", b"\r\n", b"\nhunter2\n"])
def test_an_empty_first_line_is_refused(tmp_path: Path, content: bytes) -> None:
    assert "is empty" in refused(written(tmp_path, content))


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    assert "no UTF-8 text" in refused(written(tmp_path, b"\xff\xfe" + SECRET.encode()))


def test_what_is_too_large_is_refused(tmp_path: Path) -> None:
    assert "too large" in refused(written(tmp_path, SECRET.encode() * LARGEST_BYTES))


def test_what_is_no_plain_file_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    for path in (pipe, tmp_path, Path("/dev/null")):
        assert "no plain file" in refused(path)


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path / "nowhere")
    with pytest.raises(SecretError, match="is no path"):
        read_password(Path("a\0b"))
