"""A host-discovery script that finds no hosts is named with what it printed, before anything is started."""

from pathlib import Path

import pytest

from distlab import launch
from distlab.launch import elastic_hosts

SCRIPTS = {
    "missing": (None, "ended with exit status 127: "),
    "not executable": ("echo localhost:2", "ended with exit status 126: "),
    "fails": ("#!/bin/sh\necho no license >&2\nexit 3", "ended with exit status 3: no license;"),
    "rubbish": ("#!/bin/sh\necho 'squeue: error: 1 of 2'", "printed 'squeue: error: 1 of 2';"),
    "no number": ("#!/bin/sh\necho localhost:two", "printed 'localhost:two';"),
    "no host": ("#!/bin/sh\necho", "printed no host;"),
}


def script(folder: Path, text: str | None, mode: int = 0o755) -> Path:
    file = folder / "discover.sh"
    if text is not None:
        file.write_text(f"{text}\n")
        file.chmod(mode)
    return file


@pytest.mark.parametrize("fault", SCRIPTS)
def test_what_the_script_printed_is_told(fault: str, tmp_path: Path) -> None:
    text, problem = SCRIPTS[fault]
    file = script(tmp_path, text, 0o644 if fault == "not executable" else 0o755)
    (tmp_path / "program.py").touch()
    with pytest.raises(launch.LaunchError) as error:
        launch.horovodrun(tmp_path / "program.py", options=["--min-np", "1", "--host-discovery-script", str(file)])
    message = str(error.value)
    assert f"The host-discovery script {file} {problem}" in message and "\n" not in message


@pytest.mark.parametrize("text", ["localhost:2", "localhost", "node1:4\nnode2:4"])
def test_hosts_are_accepted(text: str, tmp_path: Path) -> None:
    elastic_hosts.check(str(script(tmp_path, f"#!/bin/sh\nprintf '{text}\n'")))


def test_the_script_is_found_among_the_options() -> None:
    assert elastic_hosts.script_of(["--gloo", "--host-discovery-script", "a.sh"]) == "a.sh"
    assert elastic_hosts.script_of(["--host-discovery-script=b.sh", "--gloo"]) == "b.sh"
    assert elastic_hosts.script_of(["--gloo"]) is None
