"""README, docs, environment.yml, the lock and the repository as a whole."""

import re
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
# How the README names a package, and the lock that has its version.
LOCKS = {
    "TensorFlow": ("tensorflow", "requirements.lock"),
    "Keras 3": ("keras", "requirements.lock"),
    "Ray": ("ray", "notebooks/programs/14_other_frameworks/ray.lock"),
    "MXNet": ("mxnet", "notebooks/programs/14_other_frameworks/mxnet.lock"),
}
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
    assert {file.name: broken for file in documents(root) if (broken := broken_links(file, file.read_text()))} == {}


def test_links_in_the_notebooks_resolve(notebook: Path, root: Path) -> None:
    cells = nbformat.read(notebook, as_version=4).cells
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    assert broken_links(notebook, text) == []


def test_every_make_target_and_command_that_is_named_exists(root: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(), re.MULTILINE))
    subcommands = {"cluster", *(name for commands in cli.COMMANDS.values() for name in commands)}
    texts = [file.read_text() for file in [*documents(root), *(root / "notebooks" / "src").glob("*.py")]]
    for text in texts:
        named = re.findall(r"(?:`|^ {4}|^)make ([a-z-]+)", text, re.MULTILINE)
        assert set(named) <= targets
        assert set(re.findall(r"(?:`|^ {4})distlab ([a-z][a-z-]*)", text, re.MULTILINE)) <= subcommands
    assert re.findall(r"^ {4}make (execute|test)$", texts[0], re.MULTILINE) == ["execute", "test"]


def test_the_tables_of_the_readme_and_for_teachers_are_those_of_notebooks_and_labs(root: Path) -> None:
    course, labs = course_map.entries(root / "notebooks"), course_map.lab_entries(root / "labs")
    readme, teaching = ((root / file).read_text() for file in ("README.md", "docs/teaching.md"))
    assert f"{course_map.BEGIN_LABS}\n{course_map.labs_table(labs)}\n{course_map.END_LABS}" in readme
    rows = re.findall(r"\(notebooks/(\w+)\.ipynb\) \| .+? \| (\d+) \| \d+ \|", readme)
    assert rows == [
        (file.stem, str(entry.minutes))
        for file, entry in zip(sorted((root / "notebooks").glob("*.ipynb")), course, strict=True)
    ]
    of_labs = re.findall(r"^\| (\d\d) .+? \| [\d–]+ \| [\d–]+ \| (\d+) \|$", teaching, re.MULTILINE)
    assert of_labs == [(lab.chapter, str(lab.minutes)) for lab in labs]


def test_the_readme_says_with_which_versions_it_was_verified_and_that_no_gpu_has_run_it(root: Path) -> None:
    table = (root / "README.md").read_text().split("## What was verified where\n\n")[1].split("\n\n")[0]
    versions, states = {}, {}
    for line in table.splitlines()[2:]:
        names, listed, state = (cell.strip() for cell in line.strip("|").split("|"))
        versions |= dict(zip(names.split(", "), listed.split(", "), strict=False))
        states[names] = state
    for name, (package, lock) in LOCKS.items():
        pinned = re.search(rf"^{package}==([^ ;\\]+)", (root / lock).read_text(), re.MULTILINE)
        assert pinned and versions[name] == pinned[1], name
    assert "not yet run" in states["GPU"]


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


@pytest.mark.slow
def test_figures_are_byte_equal_when_drawn_again(root: Path, tmp_path: Path) -> None:
    for script in sorted((root / "figures" / "src").glob("[0-9][0-9]_*.py")):
        subprocess.run([sys.executable, str(script), str(tmp_path)], check=True)
    committed = {file.name: file.read_bytes() for file in (root / "figures").glob("*.svg")}
    drawn = {file.name: file.read_bytes() for file in tmp_path.glob("*.svg")}
    assert drawn == committed
    assert committed
    assert all(b"<title>" in content for content in committed.values())
