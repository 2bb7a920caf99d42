"""The workflow for a forge and the container for an editor: well formed, and the same commands as in the README."""

import json
import re
import subprocess
import sys
from pathlib import Path

import yaml

CONTAINER = Path(".devcontainer", "devcontainer.json")


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
    container = json.loads((root / CONTAINER).read_text())
    assert container["postCreateCommand"] == "make setup"
    (listed,) = re.findall(r"^packages=\((.*)\)$", (root / ".ci" / "run").read_text(), re.MULTILINE)
    dockerfile = (root / CONTAINER).with_name(container["build"]["dockerfile"]).read_text()
    assert set(listed.split()) <= set(dockerfile.split())
