"""The workflow for a forge and the container for an editor: well formed, and the same commands as in the README."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

WORKFLOW = Path(".github", "workflows", "course.yml")
CONTAINER = Path(".devcontainer", "devcontainer.json")
# Of the container's specification, https://containers.dev/implementors/json_reference/, what this course may need.
PROPERTIES = {
    "build",
    "containerEnv",
    "customizations",
    "forwardPorts",
    "hostRequirements",
    "init",
    "name",
    "postCreateCommand",
    "remoteUser",
    "runArgs",
}


def errors(workflow: Path) -> str:
    """What is wrong with a workflow by the schema that comes with check-jsonschema; empty if nothing is."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(workflow)]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return checked.stdout + checked.stderr if checked.returncode else ""


def test_the_workflow_keeps_to_its_schema(root: Path) -> None:
    assert errors(root / WORKFLOW) == ""


@pytest.mark.slow
@pytest.mark.parametrize(("right", "wrong"), [("runs-on:", "runs_on:"), ("timeout-minutes:", "timeout:")])
def test_a_wrong_workflow_is_refused(root: Path, tmp_path: Path, right: str, wrong: str) -> None:
    text = (root / WORKFLOW).read_text()
    assert right in text
    (tmp_path / "course.yml").write_text(text.replace(right, wrong))
    assert "course.yml" in errors(tmp_path / "course.yml")


def test_the_workflow_runs_the_course_and_all_tests_on_every_python_of_the_course(root: Path) -> None:
    job = yaml.safe_load((root / WORKFLOW).read_text())["jobs"]["course"]
    commands = [step["run"] for step in job["steps"] if "run" in step and "if" not in step]
    assert commands == ["make execute", "make test-all"]
    project = (root / "pyproject.toml").read_text()
    ((lowest, highest),) = re.findall(r'^requires-python = ">=3\.(\d+),<3\.(\d+)"', project, re.MULTILINE)
    assert job["strategy"]["matrix"]["python"] == [f"3.{minor}" for minor in range(int(lowest), int(highest))]
    assert {re.split(r"-\d", system)[0] for system in job["strategy"]["matrix"]["system"]} == {"ubuntu", "macos"}


def test_the_container_sets_the_course_up(root: Path) -> None:
    container = json.loads((root / CONTAINER).read_text())
    assert container["postCreateCommand"] == "make setup"
    assert (root / CONTAINER).with_name(container["build"]["dockerfile"]).is_file()
    assert set(container) <= PROPERTIES


def test_the_container_has_every_package_that_continuous_integration_installs(root: Path) -> None:
    (listed,) = re.findall(r"^packages=\((.*)\)$", (root / ".ci" / "run").read_text(), re.MULTILINE)
    dockerfile = (root / CONTAINER).with_name("Dockerfile").read_text().split()
    assert set(listed.split()) <= set(dockerfile)
