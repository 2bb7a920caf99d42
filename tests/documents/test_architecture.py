"""The house of `docs/architecture.md`: who may import whom, types, and where the tests are."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# Folders of tests that are of no package.
OTHER_TESTS = {"documents", "figures", "golden", "notebooks", "programs"}


def program(name: str) -> Path:
    return Path(sys.executable).with_name(name)


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(folder / "src")}
    command = [program("lint-imports"), "--no-cache"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_each_layer_imports_only_those_below_it(root: Path) -> None:
    finished = lint_imports(root)
    assert finished.returncode == 0, finished.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "line"),
    [("runtime/errors.py", "import distlab.data"), ("labs/lab.py", "import course_tools.sandbox")],
)
def test_an_import_from_above_turns_the_contract_red(module: str, line: str, root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copy(root / "pyproject.toml", tmp_path)
    file = tmp_path / "src" / "distlab" / module
    file.write_text(f"{file.read_text()}\n{line}  # noqa\n")
    finished = lint_imports(tmp_path)
    assert finished.returncode == 1, finished.stdout
    assert "1 broken" in finished.stdout


@pytest.mark.slow
def test_the_types_are_right(root: Path) -> None:
    finished = subprocess.run([program("mypy")], cwd=root, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout


def test_tests_mirror_the_source(root: Path) -> None:
    tests = root / "tests"
    strangers = []
    for file in tests.rglob("test_*.py"):
        place = file.relative_to(tests)
        name = file.stem.removeprefix("test_")
        if place.parts[0] in OTHER_TESTS or len(place.parts) == 1:
            continue
        folder = root / "src" / place.parent
        subjects = {path.stem.strip("_") for path in folder.glob("*") if path.suffix in ("", ".py")} | {folder.name}
        # A module that takes several files of tests gives each its name and a facet: test_starters_ranks.
        if not folder.is_dir() or not any(name == subject or name.startswith(f"{subject}_") for subject in subjects):
            strangers.append(str(place))
    assert strangers == []
