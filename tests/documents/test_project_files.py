"""README, docs, environment.yml, the lock and the repository as a whole."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from course_tools import __main__ as cli
from course_tools import course_map
from tests.documents.tracked_files import tracked_files

AS_COMMITTED = ("--cached", "--others", "--exclude-standard")
LARGEST_FILE, LARGEST_REPOSITORY = 10**6, 20 * 10**6  # bytes


def documents(root: Path) -> list[Path]:
    return [root / "README.md", *sorted((root / "docs").glob("*.md"))]


def locked_versions(root: Path) -> dict[str, set[str]]:
    """Every version that the lock pins, by package; some packages have one for each Python version."""
    pins: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)==([^ ;\\]+)", (root / "requirements.lock").read_text(), re.MULTILINE):
        pins.setdefault(canonicalize_name(name), set()).add(version)
    return pins


def direct_requirements(root: Path) -> list[Requirement]:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    return [Requirement(line) for line in project["dependencies"] + project["optional-dependencies"]["development"]]


def links(text: str) -> list[str]:
    """Targets of markdown links and pictures, outside code."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    return re.findall(r"\]\(([^)\s]+)\)", text)


def heading_anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ +(.+)$", text, re.MULTILINE)
    explicit = set(re.findall(r'<a id="([^"]+)"></a>', text))
    return explicit | {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(file: Path, text: str) -> list[str]:
    broken = []
    for target in links(text):
        if re.match(r"https?://|mailto:", target):
            continue
        path, _, anchor = target.partition("#")
        place = file if not path else file.parent / path
        if not place.exists() or (
            anchor and place.suffix == ".md" and anchor not in heading_anchors(place.read_text())
        ):
            broken.append(target)
    return broken


def test_links_in_the_documents_resolve(root: Path) -> None:
    assert {file.name: broken_links(file, file.read_text()) for file in documents(root)} == {
        file.name: [] for file in documents(root)
    }


def test_links_in_the_notebooks_resolve(notebook: Path, root: Path) -> None:
    cells = nbformat.read(notebook, as_version=4).cells
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    assert broken_links(notebook, text) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    text = "# One heading\n[good](#one-heading) [bad](missing.md) [worse](#nowhere) `[code](not/a/link)`"
    file = tmp_path / "page.md"
    file.write_text(text)
    assert broken_links(file, text) == ["missing.md", "#nowhere"]


def test_every_make_target_and_command_that_is_named_exists(root: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(), re.MULTILINE))
    subcommands = {"cluster", *(name for commands in cli.COMMANDS.values() for name in commands)}
    texts = [file.read_text() for file in [*documents(root), *(root / "notebooks" / "src").glob("*.py")]]
    for text in texts:
        named = re.findall(r"(?:`|^ {4}|^)make ([a-z-]+)", text, re.MULTILINE)
        assert set(named) <= targets
        assert set(re.findall(r"(?:`|^ {4})distlab ([a-z][a-z-]*)", text, re.MULTILINE)) <= subcommands
    assert re.findall(r"^ {4}make (execute|test)$", texts[0], re.MULTILINE) == ["execute", "test"]


def test_the_readmes_map_lists_every_notebook(root: Path) -> None:
    text = (root / "README.md").read_text()
    table = text[text.index(course_map.BEGIN) : text.index(course_map.END)]
    rows = re.findall(r"\(notebooks/(\w+)\.ipynb\) \| (.+?) \| (\d+) \| (\d+) \|", table)
    assert [row[0] for row in rows] == [file.stem for file in sorted((root / "notebooks").glob("*.ipynb"))]
    assert all(goal.endswith(".") for _, goal, _, _ in rows)


def test_the_readme_lists_every_lab(root: Path) -> None:
    text = (root / "README.md").read_text()
    table = text[text.index(course_map.BEGIN_LABS) : text.index(course_map.END_LABS)]
    listed = re.findall(r"\(labs/(\w+)/lab\.ipynb\) \| (.+?) \| (\d+) \|", table)
    assert [row[0] for row in listed] == [file.parent.name for file in sorted((root / "labs").glob("*/lab.py"))]
    expected = course_map.labs_table(course_map.lab_entries(root / "labs"))
    assert table == f"{course_map.BEGIN_LABS}\n{expected}\n"


def test_the_minutes_for_teachers_are_those_of_notebooks_and_labs(root: Path) -> None:
    text = (root / "docs" / "teaching.md").read_text()
    table = text[text.index(course_map.BEGIN_MINUTES) : text.index(course_map.END_MINUTES)]
    *rows, together = re.findall(r"^\| (.+?) \| (\d+|–) \| (\d+|–) \| (\d+|–) \|$", table, re.MULTILINE)
    course, labs = course_map.entries(root / "notebooks"), course_map.lab_entries(root / "labs")
    chapters = [row for row in rows if row[1] != "–"]
    assert [(row[0], int(row[1])) for row in chapters] == [(entry.title, entry.minutes) for entry in course]
    of_labs = {row[0][:2]: int(row[3]) for row in rows if row[3] != "–"}
    assert of_labs == {lab.chapter: lab.minutes for lab in labs}
    assert int(together[1]) == sum(int(row[1]) for row in chapters)
    assert int(together[3]) == sum(of_labs.values())


def test_the_lock_pins_every_direct_requirement_within_its_range(root: Path) -> None:
    pins = locked_versions(root)
    for requirement in direct_requirements(root):
        versions = pins[canonicalize_name(requirement.name)]
        assert all(requirement.specifier.contains(version, prereleases=True) for version in versions), requirement


def test_the_lock_has_a_digest_for_every_package_and_names_no_registry(root: Path) -> None:
    text = (root / "requirements.lock").read_text()
    entries = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []
    assert not re.search(r"https?://|file://|index-url|find-links", text)


def test_environment_yml_agrees_with_the_lock(root: Path) -> None:
    text = (root / "environment.yml").read_text()
    environment = yaml.safe_load(text)
    pip = next(item["pip"] for item in environment["dependencies"] if isinstance(item, dict))
    pins = locked_versions(root)
    listed = {}
    for line in pip:
        if not line.startswith("-"):
            requirement = Requirement(line)
            listed[canonicalize_name(requirement.name)] = next(iter(requirement.specifier)).version
    assert set(listed) == {canonicalize_name(requirement.name) for requirement in direct_requirements(root)}
    assert {name: version for name, version in listed.items() if version not in pins[name]} == {}


def test_environment_yml_says_on_every_line_what_needs_it(root: Path) -> None:
    lines = (root / "environment.yml").read_text().splitlines()
    packages = [line for line in lines if re.match(r" +- .*[=<>]", line)]
    assert len(packages) > 10
    assert [line for line in packages if not re.search(r"# .{5,}", line)] == []


@pytest.mark.slow
def test_files_are_small_and_name_no_machine_and_no_registry(root: Path) -> None:
    files = tracked_files(root, *AS_COMMITTED)
    assert sum(file.stat().st_size for file in files) < LARGEST_REPOSITORY
    registries = re.compile("py" + r"pi\.org|files\.python" + "hosted|conda\\.anaconda", re.IGNORECASE)
    homes = re.compile(r"(?<![\w.])/(?:root|home/\w+|Users/\w+)/")
    for file in files:
        assert file.stat().st_size < LARGEST_FILE, file
        text = file.read_bytes().decode(errors="ignore")
        assert not registries.search(text), file
        if "tests" not in file.parts:
            assert not homes.search(text), file


def test_nothing_else_stands_at_the_top_level(root: Path) -> None:
    top = {file.relative_to(root).parts[0] for file in tracked_files(root, *AS_COMMITTED)}
    expected = {
        "README.md",
        "Makefile",
        "LICENSE",
        "environment.yml",
        "pyproject.toml",
        "requirements.lock",
        "notebooks",
    }
    expected |= {"labs", "figures", "src", "tests", "docs", ".ci", ".devcontainer", ".github"}
    expected |= {".gitattributes", ".gitignore"}
    assert top <= expected
    assert {"README.md", "Makefile", "LICENSE", "environment.yml", "notebooks", "figures", "tests"} <= top


def test_where_there_is_no_repository_its_tests_are_skipped_with_git_s_reason(tmp_path: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match="git lists no files here: fatal: not a git repository"):
        tracked_files(tmp_path)


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_a_clone_of_git_for_windows_has_scripts_with_the_line_ends_of_unix(root: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    shutil.copy(root / ".gitattributes", tmp_path)
    script = Path(shutil.copy(root / "notebooks/programs/15_clusters/slurm/interactive.sh", tmp_path))
    before = script.read_bytes()
    git = ["git", "-C", str(tmp_path), "-c", "core.autocrlf=true"]
    subprocess.run([*git, "add", "."], check=True)
    script.unlink()
    subprocess.run([*git, "checkout-index", script.name], check=True)
    assert script.read_bytes() == before


@pytest.mark.long
def test_figures_are_byte_equal_when_drawn_again(root: Path, tmp_path: Path) -> None:
    for script in sorted((root / "figures" / "src").glob("[0-9][0-9]_*.py")):
        subprocess.run([sys.executable, str(script), str(tmp_path)], check=True)
    committed = {file.name: file.read_bytes() for file in (root / "figures").glob("*.svg")}
    drawn = {file.name: file.read_bytes() for file in tmp_path.glob("*.svg")}
    assert drawn == committed
    assert committed
    assert all(b"<title>" in content for content in committed.values())


def test_the_code_is_clean(root: Path) -> None:
    ruff = [sys.executable, "-m", "ruff"]
    checked = subprocess.run([*ruff, "check", "."], cwd=root, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
    formatted = subprocess.run([*ruff, "format", "--check", "."], cwd=root, capture_output=True, text=True)
    assert formatted.returncode == 0, formatted.stdout
