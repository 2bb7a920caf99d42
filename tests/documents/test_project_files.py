"""README, docs, workflow, container, environment.yml, the lock, the code and the repository as a whole."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.documents.tracked_files import tracked_files

LARGEST_FILE, LARGEST_REPOSITORY = 10**6, 20 * 10**6  # bytes


def test_the_readme_leads_to_files_and_every_make_target_that_is_named_exists(root: Path) -> None:
    """What the other documents and the notebooks link to is tested with the site."""
    readme, targets = ((root / name).read_text() for name in ("README.md", "Makefile"))
    links = re.findall(r"\]\((?!https?://)([^)#\s]+)", readme)
    assert links and [link for link in links if not (root / link).exists()] == []
    assert re.findall(r"^ {4}make (execute|test)$", readme, re.MULTILINE) == ["execute", "test"]
    exist = set(re.findall(r"^([a-z-]+):", targets, re.MULTILINE))
    for file in [root / "README.md", *root.glob("docs/*.md"), *root.glob("notebooks/src/*.py")]:
        assert set(re.findall(r"(?:`|^ {4}|^)make ([a-z-]+)", file.read_text(), re.MULTILINE)) <= exist, file


def test_lock_and_environment_name_the_same_versions(root: Path) -> None:
    lock = (root / "requirements.lock").read_text()
    entries = re.split(r"^(?=[\w.-]+==)", lock, flags=re.MULTILINE)[1:]
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []
    pins: dict[str, set[str]] = {}  # some packages have one for each Python version
    for name, version in re.findall(r"^([\w.-]+)==([^ ;\\]+)", lock, re.MULTILINE):
        pins.setdefault(canonicalize_name(name), set()).add(version)
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    direct = [*map(Requirement, project["dependencies"] + project["optional-dependencies"]["development"])]
    for requirement in direct:
        versions = pins[canonicalize_name(requirement.name)]
        assert all(requirement.specifier.contains(version, prereleases=True) for version in versions), requirement
    conda = yaml.safe_load((root / "environment.yml").read_text())["dependencies"]
    [by_pip] = [item["pip"] for item in conda if isinstance(item, dict)]
    listed = [Requirement(line) for line in by_pip if not line.startswith("-")]
    assert {canonicalize_name(one.name) for one in listed} == {canonicalize_name(one.name) for one in direct}
    assert all(next(iter(one.specifier)).version in pins[canonicalize_name(one.name)] for one in listed)


def test_the_workflow_keeps_to_its_schema_and_runs_the_two_commands_on_every_python(root: Path) -> None:
    workflow = root / ".github" / "workflows" / "course.yml"
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(workflow)]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    job = yaml.safe_load(workflow.read_text())["jobs"]["course"]
    assert [step["run"] for step in job["steps"] if "run" in step and "if" not in step] == ["make execute", "make test"]
    project = (root / "pyproject.toml").read_text()
    ((lowest, highest),) = re.findall(r'^requires-python = ">=3\.(\d+),<3\.(\d+)"', project, re.MULTILINE)
    assert job["strategy"]["matrix"]["python"] == [f"3.{minor}" for minor in range(int(lowest), int(highest))]


def test_the_container_sets_the_course_up_with_every_package_of_continuous_integration(root: Path) -> None:
    folder = root / ".devcontainer"
    container = json.loads((folder / "devcontainer.json").read_text())
    assert container["postCreateCommand"] == "make setup"
    (listed,) = re.findall(r"^packages=\((.*)\)$", (root / ".ci" / "run").read_text(), re.MULTILINE)
    assert set(listed.split()) <= set((folder / container["build"]["dockerfile"]).read_text().split())


@pytest.mark.slow
@pytest.mark.parametrize("check", ["lint-imports --no-cache", "mypy", "ruff check .", "ruff format --check ."])
def test_the_code_is_clean(check: str, root: Path) -> None:
    """Who may import whom (`docs/architecture.md`), types, lint and layout."""
    program, *words = check.split()
    command = [Path(sys.executable).with_name(program), *words]
    finished = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout


@pytest.mark.slow
def test_files_are_small_and_name_no_machine_and_no_registry(root: Path) -> None:
    files = tracked_files(root)
    assert sum(file.stat().st_size for file in files) < LARGEST_REPOSITORY
    registries = re.compile("py" + r"pi\.org|files\.python" + "hosted|conda\\.anaconda", re.IGNORECASE)
    homes = re.compile(r"(?<![\w.])/(?:root|home/\w+|Users/\w+)/")
    for file in files:
        assert file.stat().st_size < LARGEST_FILE, file
        text = file.read_bytes().decode(errors="ignore")
        assert not registries.search(text), file
        assert "tests" in file.parts or not homes.search(text), file


DRAW = """
import runpy, sys
folder, *scripts = sys.argv[1:]
sys.argv[1:] = [folder]
for script in scripts:
    runpy.run_path(script, run_name="__main__")
"""


@pytest.mark.slow
def test_figures_are_byte_equal_when_drawn_again(root: Path, tmp_path: Path) -> None:
    scripts = sorted((root / "figures" / "src").glob("[0-9]*.py"))
    subprocess.run([sys.executable, "-c", DRAW, tmp_path, *scripts], check=True)
    committed = {file.name: file.read_bytes() for file in (root / "figures").glob("*.svg")}
    assert {file.name: file.read_bytes() for file in tmp_path.glob("*.svg")} == committed
    assert committed and all(b"<title>" in content for content in committed.values())
