"""The house of `docs/architecture.md`: who may import whom, types, names, what students import, where tests are."""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

from tests.documents.tracked_files import tracked_files

MOST_MODULES_OF_STUDENTS = 24
MOST_PAIRS_OF_PARTS = 92  # quizzes ask about nearly every part, and four command lines about valid numbers
MOST_DOCSTRING_LINES = 10
# They say nothing of what they hold.
EMPTY_NAMES = {"one", "other", "found", "given", "held", "how", "shown", "wanted"}
# english.md of the field: fix, again.
REPLACED_WORDS = re.compile(r"\b([m]end(s|ed)?|[a]new)\b", re.IGNORECASE)
# Folders of tests that are of no package of distlab.
OTHER_TESTS = {"documents", "figures", "lab_programs", "notebooks"}


def program(name: str) -> Path:
    return Path(sys.executable).with_name(name)


def trees(root: Path) -> Iterator[tuple[Path, ast.Module]]:
    """The modules of distlab, parsed."""
    for file in sorted((root / "src" / "distlab").rglob("*.py")):
        yield file.relative_to(root / "src"), ast.parse(file.read_text())


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(folder / "src")}
    command = [program("lint-imports"), "--no-cache"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_nobody_imports_whom_the_contracts_forbid(root: Path) -> None:
    finished = lint_imports(root)
    assert finished.returncode == 0, finished.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("runtime/errors.py", "import distlab.data"),
        ("simulate/rank.py", "import distlab.collectives"),
        ("collectives/ring.py", "import distlab.labs"),
        ("labs/lab_06/lab.py", "import distlab.labs.lab_07"),
        ("labs/lab.py", "import distlab.sandbox"),
        ("course/runner.py", "import distlab.sandbox"),
    ],
)
def test_a_forbidden_import_turns_the_contracts_red(module: str, line: str, root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copy(root / "pyproject.toml", tmp_path)
    file = tmp_path / "src" / "distlab" / module
    file.write_text(f"{file.read_text()}\n{line}  # noqa\n")
    finished = lint_imports(tmp_path)
    assert finished.returncode == 1, finished.stdout
    assert re.search(r"[1-9]\d* broken", finished.stdout)


def test_the_parts_know_few_of_one_another() -> None:
    graph = grimp.build_graph("distlab", cache_dir=None)
    pairs = set()
    for importer in graph.modules:
        for imported in graph.find_modules_directly_imported_by(importer):
            parts = importer.split(".")[1:2], imported.split(".")[1:2]
            if all(parts) and parts[0] != parts[1]:
                pairs.add((*parts[0], *parts[1]))
    assert len(pairs) <= MOST_PAIRS_OF_PARTS, sorted(pairs)


@pytest.mark.slow
def test_the_types_are_right(root: Path) -> None:
    finished = subprocess.run([program("mypy")], cwd=root, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout


@pytest.mark.slow
def test_no_class_name_has_two_owners(root: Path) -> None:
    owners = defaultdict(list)
    for file, tree in trees(root):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                owners[node.name].append(str(file))
    assert {name: files for name, files in owners.items() if len(files) > 1} == {}


@pytest.mark.slow
def test_variables_say_what_they_hold(root: Path) -> None:
    empty = []
    for file, tree in trees(root):
        for node in ast.walk(tree):
            name = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else None
            name = node.arg if isinstance(node, ast.arg) else name
            if name in EMPTY_NAMES:
                empty.append(f"{file}:{node.lineno}: {name}")
    assert empty == []


@pytest.mark.slow
def test_each_package_says_in_few_lines_what_it_is_for(root: Path) -> None:
    for file, tree in trees(root):
        if file.name == "__init__.py":
            docstring = ast.get_docstring(tree) or ""
            assert 1 <= len(docstring.splitlines()) <= MOST_DOCSTRING_LINES, file


def imports_of_students(root: Path) -> dict[str, set[str]]:
    """The files of each module of distlab that a notebook, a lab or a program of a lab imports."""
    modules = defaultdict(set)
    files = [*(root / "notebooks" / "src").glob("*.py"), *(root / "labs").glob("*/*.py")]
    package = root / "src" / "distlab"
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                place = package.joinpath(*node.module.split(".")[1:])
                names = [
                    f"{node.module}.{alias.name}"
                    if (place / alias.name).is_dir() or (place / f"{alias.name}.py").is_file()
                    else node.module
                    for alias in node.names
                ]
            else:
                continue
            for name in names:
                if name.split(".")[0] == "distlab":
                    modules[name].add(str(file.relative_to(root)))
    return modules


def test_students_import_few_modules_none_deeper_than_one_level(root: Path) -> None:
    modules = imports_of_students(root)
    assert {name: files for name, files in modules.items() if name.count(".") > 1} == {}
    assert len(set(modules) - {"distlab"}) <= MOST_MODULES_OF_STUDENTS, sorted(modules)


def test_a_lab_begins_with_one_line(root: Path) -> None:
    for source in (root / "labs" / "src").glob("*.py"):
        imports = re.findall(r"^(?:from|import) distlab.*|^lab = .*", source.read_text(), re.MULTILINE)
        assert "from distlab import labs" in imports or any("labs" in line for line in imports), source.name
        assert f'lab = labs.open("{source.stem[:2]}")' in imports, source.name


def test_the_labs_are_few_rooms_side_by_side(root: Path) -> None:
    rooms = [path for path in (root / "src" / "distlab" / "labs").iterdir() if path.name != "__pycache__"]
    assert len(rooms) <= 29


def test_tests_mirror_the_source(root: Path) -> None:
    package, tests = root / "src" / "distlab", root / "tests"
    strangers = []
    for file in tests.rglob("test_*.py"):
        place = file.relative_to(tests)
        name = file.stem.removeprefix("test_")
        if place.parts[0] in OTHER_TESTS or (len(place.parts) == 1 and (tests / f"{name}.py").exists()):
            continue
        folder = package / place.parent
        subjects = {path.stem for path in folder.glob("*") if path.suffix in ("", ".py")} | {folder.name}
        # A module that takes several files of tests gives each its name and a facet: test_starters_ranks.
        if not folder.is_dir() or not any(name == subject or name.startswith(f"{subject}_") for subject in subjects):
            strangers.append(str(place))
    assert strangers == []


def test_no_replaced_word_is_left(root: Path) -> None:
    listed = tracked_files(root, "src", "tests", "labs", "notebooks/src", "docs", "README.md", "Makefile")
    left = [
        f"{file.relative_to(root)}:{number}: {line.strip()}"
        for file in listed
        if file.suffix in {".py", ".md", "", ".ipynb"} and file.relative_to(root) != THIS
        for number, line in enumerate(file.read_text().splitlines(), start=1)
        if REPLACED_WORDS.search(line)
    ]
    assert left == []


THIS = Path("tests/documents/test_architecture.py")
