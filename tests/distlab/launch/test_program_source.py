from pathlib import Path

from distlab.launch.program_source import begins_with, variables_set


def program(folder: Path, text: str) -> Path:
    file = folder / "train.py"
    file.write_text(text)
    return file


def test_the_variables_are_found_that_a_program_and_its_modules_set(tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text(
        'from os import environ\nenviron |= {"A": "1"}\nenviron.update({"B": "2"}, C="3")\nenviron.setdefault("D", "4")'
    )
    (tmp_path / "train.py").write_text(
        'import os, settings\nos.environ["E"] = "5"\nos.putenv("F", "6")\nname = os.environ["G"]\nother["H"] = "8"'
    )
    assert variables_set(tmp_path / "train.py") == set("ABCDEF")


def test_only_an_import_that_always_happens_is_one_that_the_program_begins_with(tmp_path: Path) -> None:
    assert begins_with(program(tmp_path, "from horovod import tensorflow\n"), "horovod")
    assert not begins_with(program(tmp_path, "def train():\n    import horovod\n"), "horovod")
