"""JupyterLab as `make lab` starts it: on the copy alone, once, and with nothing of other courses."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import nbformat
import psutil
import pytest

from course_tools import jupyterlab_server
from distlab.runtime import processes


def answer(address: str, server: subprocess.Popen[str]) -> bytes:
    """What the server says, once it listens."""
    while True:
        try:
            return bytes(urllib.request.urlopen(address, timeout=300).read())
        except urllib.error.URLError:
            assert server.poll() is None
            time.sleep(0.2)


@pytest.mark.slow
def test_jupyterlab_opens_on_the_copy_and_what_is_set_for_another_course_does_not_matter(tmp_path: Path) -> None:
    home, course = tmp_path / "home", tmp_path / "course"
    settings = home / ".jupyter"
    (settings / "lab" / "user-settings").mkdir(parents=True)
    (settings / "jupyter_server_config.json").write_text('{"IdentityProvider": {"hashed_password": "argon2:another"}}')
    (settings / "jupyter_lab_config.py").write_text("c.ServerApp.base_url = '/elsewhere'\n")
    (course / "notebooks").mkdir(parents=True)
    nbformat.write(nbformat.v4.new_notebook(), course / "notebooks" / "00_start_here.ipynb")
    variables = os.environ | {"HOME": str(home), "BROWSER": "true", "JUPYTER_CONFIG_PATH": str(settings)}
    variables |= dict.fromkeys(("ALL_PROXY", "all_proxy"), "socks5://127.0.0.1:1080")
    variables |= {"MPLBACKEND": "TkAgg", "MAKEFLAGS": " -- ONLY=03"}
    command, mark = [sys.executable, "-m", "course_tools", "lab"], processes.new_mark()
    server = processes.start(command, mark, cwd=course, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert server.stdout
    try:
        said = ""
        for line in server.stdout:
            said += line
            if "http://127.0.0.1" in line and "token=" in line:
                break
        assert f"Your working copy is {course / 'work'};" in said and "elsewhere" not in said, said
        address = "http" + said.splitlines()[-1].partition("http")[2].strip()
        root, _, token = address.partition("/lab")
        assert b"00_start_here.ipynb" in answer(f"{root}/api/contents/notebooks?{token.rpartition('?')[2]}", server)
        process = psutil.Process(server.pid)
        ports = [connection for connection in process.net_connections() if connection.status == "LISTEN"]
        assert {connection.laddr.ip for connection in ports} == {"127.0.0.1"}
        assert not {"MPLBACKEND", "MAKEFLAGS"} & process.environ().keys()
        assert process.environ()["JUPYTERLAB_SETTINGS_DIR"] == str(settings / "lab" / "user-settings")
    finally:
        processes.end(mark)
        server.communicate()
    assert [file.name for file in (course / "notebooks").iterdir()] == ["00_start_here.ipynb"]


def test_no_second_server_is_started_on_one_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(os, "execv", lambda *command: pytest.fail("a second server is started"))
    info = {"pid": os.getpid(), "root_dir": str(tmp_path), "url": "http://127.0.0.1:8889/", "token": "abc"}
    (tmp_path / "jpserver-1.json").write_text(json.dumps(info))
    assert jupyterlab_server.open_copy(tmp_path) == 0
    assert (
        "already runs on this copy: open http://127.0.0.1:8889/lab/tree/notebooks/00_start_here.ipynb?token=abc "
        in capsys.readouterr().out
    )
    assert jupyterlab_server.running_on(tmp_path / "another") is None
    ended = subprocess.Popen(["true"])
    ended.wait()
    (tmp_path / "jpserver-1.json").write_text(json.dumps(info | {"pid": ended.pid}))
    assert jupyterlab_server.running_on(tmp_path) is None
