"""A file with the name of a package, beside a program or a notebook, is named where the package would be missed."""

import sys
from pathlib import Path

import pytest
from jupyter_client.manager import start_new_kernel

from distlab.runtime import hidden_packages, processes

SENTENCE = "The file {file} hides the package {package}: give it another name."


@pytest.mark.fault
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
    finished = processes.run([sys.executable, str(tmp_path / "program.py")], 60)
    assert finished.status == 1
    assert finished.output == SENTENCE.format(file=file, package=name.split("/")[0].removesuffix(".py")) + "\n"


@pytest.mark.slow
@pytest.mark.fault
def test_a_cell_ends_with_the_sentence(tmp_path: Path) -> None:
    file = tmp_path / "numpy.py"
    file.write_text("")
    manager, client = start_new_kernel(cwd=str(tmp_path))
    try:
        shown: list[dict] = []
        for cell in ("import numpy.typing", "from numpy import missing", "[].missing"):
            client.execute_interactive(cell, timeout=60, output_hook=shown.append)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    errors = [message["content"] for message in shown if message["msg_type"] == "error"]
    sentence = SENTENCE.format(file=file, package="numpy") + " Then restart the kernel."
    assert [error["traceback"] for error in errors[:2]] == [
        [f"ModuleNotFoundError: No module named 'numpy.typing'; 'numpy' is not a package. {sentence}"],
        [f"ImportError: cannot import name 'missing' from 'numpy' ({file}). {sentence}"],
    ]
    assert errors[0]["evalue"].endswith(sentence)


def test_files_that_hide_nothing_are_not_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "helpers_of_mine.py").write_text("")
    (tmp_path / "numpy.py").write_text("")  # another numpy is loaded
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "helpers_of_mine", raising=False)
    with pytest.raises(ImportError) as caught:
        from helpers_of_mine import missing  # noqa: F401
    assert hidden_packages.cause(caught.value) is None
