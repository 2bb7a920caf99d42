"""Every notebook has `display`; in a sandbox it prints."""

import pytest
from IPython.core.interactiveshell import InteractiveShell

from course_tools.sandbox.cells import Cells

BROKEN = """
class Broken:
    def __repr__(self):
        raise ValueError("broken")

class NoText:
    def __repr__(self):
        return 3

"""


@pytest.mark.parametrize(
    ("cell", "printed"),
    [
        ("display()", ""),
        ("display('a', [1, 2])", "'a'\n[1, 2]\n"),
        ("display(1, include=['text/plain'], metadata={}, transient=None, clear=True)", "1\n"),
        ("display({'text/plain': 'a curve', 'image/png': b''}, raw=True)", "a curve\n"),
        ("display({'text/html': 1}, raw=True)", "{'text/html': 1}\n"),
        ("handle = display(1, display_id=True)\nhandle.update(2)\nhandle.display(3)", "1\n2\n3\n"),
        (
            f"{BROKEN}display(Broken(), NoText(), 1)",
            "<Broken, whose repr raised ValueError>\n<NoText, whose repr raised TypeError>\n1\n",
        ),
        ("def display(thing):\n    print('mine', thing)\n\ndisplay(1)", "mine 1\n"),
        ("from IPython.display import display\ndisplay(1)", "1\n"),
    ],
)
def test_display_prints_and_never_fails(cell: str, printed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # As in a sandbox, whatever other tests have begun in this process.
    monkeypatch.setattr(InteractiveShell, "initialized", lambda: False)
    assert Cells(most_printed=1000).run(cell, "one") == {"printed": printed, "error": None}


def test_what_is_displayed_counts_as_printed() -> None:
    error = Cells(most_printed=1000).run("while True:\n    display('much')", "one")["error"]
    assert error[0] == "PrintedTooMuch"


def test_a_function_of_the_student_may_display() -> None:
    cells = Cells(most_printed=1000)
    cells.run("def show(thing):\n    display(thing)\n    return thing", "one")
    assert cells.run("show(7)", "two") == {"printed": "7\n", "error": None}
