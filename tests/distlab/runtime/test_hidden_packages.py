"""A file with the name of a package, beside a program or a notebook, is named where the package would be missed."""

import sys
from pathlib import Path

import pytest

from distlab.runtime import hidden_packages, processes

SENTENCE = "The file {file} hides the package {package}: give it another name."


@pytest.mark.parametrize(
    ("name", "text", "program"),
    [
        ("numpy.py", "", "import numpy\nnumpy.ones(3)"),
        ("numpy.py", "import numpy\nnumpy.ones(3)", "import numpy"),
        ("queue/__init__.py", "", "from queue import Queue"),
    ],
)
def test_a_program_ends_with_the_sentence(name: str, text: str, program: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    (tmp_path / "program.py").write_text(program)
    finished = processes.run([sys.executable, str(tmp_path / "program.py")], 300)
    assert finished.status == 1
    assert finished.output == SENTENCE.format(file=file, package=name.split("/")[0].removesuffix(".py")) + "\n"


def test_files_that_hide_nothing_are_not_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "helpers_of_mine.py").write_text("")
    (tmp_path / "numpy.py").write_text("")  # another numpy is loaded
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "helpers_of_mine", raising=False)
    with pytest.raises(ImportError) as caught:
        from helpers_of_mine import missing  # noqa: F401
    assert hidden_packages.cause(caught.value) is None
