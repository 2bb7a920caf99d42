"""Parts of a program as a notebook shows them."""

from pathlib import Path

import pytest

from distlab import programs
from distlab.runtime.lookups import NoSuchName

PROGRAM = '''"""A program."""

def wrap(function):
    return function


class Job:
    @property
    def steps(self):
        """How many."""
        return 3


@wrap
def main():
    raise SystemExit("it ran")


if __name__ == "__main__":
    main()
'''


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return file


def test_parts_come_in_the_order_asked_for_with_decorators_and_without_indentation(program: Path) -> None:
    first, second = programs.source(program, "main", "steps").split("\n\n\n")
    assert first == '@wrap\ndef main():\n    raise SystemExit("it ran")'
    assert second == '@property\ndef steps(self):\n    """How many."""\n    return 3'
    with pytest.raises(NoSuchName, match=r"'fit'; there are Job, Job\.steps, main, steps, wrap\."):
        programs.source(program, "fit")


def test_changes_hold_the_removed_and_the_added_lines_and_no_others() -> None:
    before, after = "a = 1\nb = 2\nc = 3\nd = 4\ne = 5\n", "a = 1\nb = 2\nc = 30\nd = 4\ne = 5\nf = 6\n"
    block = programs.changes(before, after, context=0).data.splitlines()
    assert block == ["```diff", "-c = 3", "+c = 30", "…", "+f = 6", "```"]
    around = programs.changes(before, after, context=1).data.splitlines()
    assert around[1:5] == [" b = 2", "-c = 3", "+c = 30", " d = 4"]


def test_a_program_as_a_module_does_not_run_and_is_shown_as_a_block(program: Path) -> None:
    assert programs.module(program).Job().steps == 3
    (script := program.with_suffix(".sbatch")).write_text("srun hostname\n")
    assert programs.show(script).data == "```bash\nsrun hostname\n```"
    assert programs.show(program, "wrap").data == "```python\ndef wrap(function):\n    return function\n```"
