"""A text source that cannot become a notebook is refused in a sentence that names the file and the line."""

from pathlib import Path

import pytest

from course_tools import notebooks
from course_tools.text_sources import UnusableSource

CELL = b"# %%\n1 + 1\n"


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        (CELL + b"# na\xefve\n", 3, "this is not UTF-8"),
        ("# %%\n'ü'\n".encode("utf-16"), 1, "this is not UTF-8"),
        (CELL + b"<<<<<<< HEAD\n2\n=======\n3\n>>>>>>> other\n", 3, "`<<<<<<< HEAD` marks a merge conflict"),
        (b"# %% [markdown]\n# text\n>>>>>>> other\n# text\n", 3, "`>>>>>>> other` marks a merge conflict"),
    ],
)
def test_the_line_that_is_wrong_is_named(tmp_path: Path, content: bytes, line: int, said: str) -> None:
    file = tmp_path / "01_topic.py"
    file.write_bytes(content)
    with pytest.raises(UnusableSource) as raised:
        notebooks.convert_plainly(file, "01")
    assert str(raised.value).startswith(f"{file}, line {line}: {said}")


@pytest.mark.parametrize("text", ["# %%\n1\n", "# %% [markdown]\n# # Title\n# ======\n", "1 + 1\n", "\ufeff# %%\n1\n"])
def test_one_cell_of_code_or_text_is_enough(tmp_path: Path, text: str) -> None:
    (tmp_path / "01_topic.py").write_text(text)
    assert len(notebooks.convert_plainly(tmp_path / "01_topic.py", "01").cells) == 1
