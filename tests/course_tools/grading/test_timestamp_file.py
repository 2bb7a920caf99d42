"""What a timestamp.txt may say, and what is said of one that is not understood."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from course_tools.grading import timestamp_file

HALF_PAST_FOUR = datetime(2026, 11, 20, 16, 30, tzinfo=UTC)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "timestamp.txt"


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-20 16:30:00.000000 UTC",  # as nbgrader writes it
        "2026-11-20 16:30",
        "\ufeff2026-11-20 16:30:00\r\n\r\n",  # as Notepad writes it
        "2026-11-20T16:30:00Z",
        timestamp_file.EXAMPLE,
        "2026-11-20T17:30:00,000000000+01:00",  # as `date --iso-8601=ns` writes it
        "2026-11-20 08:30:00-0800",
        "2026-11-20 17:30:00+01",
    ],
)
def test_a_time_that_is_certain_is_read(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8", newline="")
    assert timestamp_file.read(file) == HALF_PAST_FOUR


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-20 17:30:00 EST",
        "2026-11-20 17:30:00 CET",
        "2026-11-20 17:30:00\n2026-11-20 19:30:00",
        "20.11.2026 17:30",
        "1795192200",
        "1801012345678",
        "2026-11-20",
        "2026-11-31 17:30",
        "2026-11-20 17:30:00 +25:00",
        "2026-11-20 17:30:00 +01:00 UTC",
        "٢٠٢٦-11-20 17:30",
        "evil\x1b[2J\n=1+1" + "x" * 50,
    ],
)
def test_what_is_not_certain_is_quoted_safely(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(timestamp_file.NoTime) as refusal:
        timestamp_file.read(file)
    sentence = str(refusal.value)
    assert sentence == (
        f"timestamp.txt says {text[:40]!a}, which is no time that is understood (2026-11-20 17:30:00 +01:00 is)"
    )
    assert sentence.isprintable()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_read_if_it_is_marked_as_such(file: Path, encoding: str) -> None:
    mark = "" if encoding == "utf-16" else "\ufeff"  # Python's utf-16 writes its own
    file.write_bytes(f"{mark}2026-11-20 17:30:00 +01:00\r\n".encode(encoding))
    assert timestamp_file.read(file) == HALF_PAST_FOUR


def test_a_file_that_is_too_long_or_no_text_has_no_time(file: Path) -> None:
    for content in (b"2026-11-20 17:30:00" + b" " * 100 + b"EST", "2026-11-20 17:30".encode("utf-16-le")):
        file.write_bytes(content)
        with pytest.raises(timestamp_file.NoTime, match=r"^timestamp\.txt says '.*', which is no time"):
            timestamp_file.read(file)


def test_what_is_no_file_is_named(file: Path) -> None:
    assert timestamp_file.read(file) is None
    makers = {
        "is empty": lambda: file.write_text("\ufeff \n", encoding="utf-8"),
        "is a link, which is not followed": lambda: file.symlink_to("elsewhere"),
        "is no plain file": lambda: os.mkfifo(file),
        "is a folder": file.mkdir,
    }
    for words, make in makers.items():
        make()
        with pytest.raises(timestamp_file.NoTime, match=f"^timestamp.txt {words}$"):
            timestamp_file.read(file)
        if file.is_symlink() or not file.is_dir():
            file.unlink()
