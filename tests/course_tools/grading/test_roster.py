"""The list of students: what is taken for a name, what is refused, and whose folder is whose."""

from pathlib import Path

import pytest

from course_tools.grading import roster, submissions

LAB = "06_sample"


def listing(folder: Path, content: bytes) -> Path:
    file = folder / roster.ROSTER
    file.write_bytes(content)
    return file


def test_a_comment_behind_a_name_does_not_belong_to_the_name(tmp_path: Path) -> None:
    text = b"# autumn # 2026\nalice # exchange student; leaves early\nbob\t#\nc#\n  #\n"
    assert roster.names_in(listing(tmp_path, text)) == {"alice", "bob", "c#"}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("alice\nzoë".encode("latin-1"), "students.txt, line 2, is not in UTF-8; save it as UTF-8 text"),
        (b"alice;1234567;A", "has several columns, as in 'alice;1234567;A'; it takes names alone"),
        (b"x\n" * 2**20, "is larger than 1 MiB; a name in each line is enough"),
        *(
            (line, "has a line that cannot be a folder's name")
            for line in (b"../../outside", b"a/b", b"..", b"x" * 300)
        ),
        (b"a\x1b[2J", r"has a line that cannot be a folder's name: 'a\\x1b\[2J'"),
    ],
)
def test_what_is_no_list_of_names_is_refused_and_named(tmp_path: Path, content: bytes, sentence: str) -> None:
    listing(tmp_path, content)
    (tmp_path / "alice").mkdir()
    with pytest.raises(roster.NotARoster, match=sentence):
        submissions.find(tmp_path, [LAB])


def test_a_name_is_that_of_a_folder_in_another_spelling_of_the_same_characters_only() -> None:
    composed, apart = "J\u00f6rg", "Jo\u0308rg"
    assert roster.spelled_as_listed({composed, "bob"}, {apart, "Bob"}) == {apart: composed}
    assert roster.without_folder({composed, "bob", "carol"}, {apart, "Bob "}) == {"bob": "Bob ", "carol": ""}
    assert roster.unlisted({apart, "Bob ", "dave"}, {composed, "bob"}) == {"dave"}
