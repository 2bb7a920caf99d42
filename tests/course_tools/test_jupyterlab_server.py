"""The server of `make lab` ends with its terminal, also where only make is told that it was closed."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from course_tools import jupyterlab_server

# As make does: it leads the session, waits for its child, and does not end when the terminal is closed.
LEADER = """
import signal, subprocess, sys
signal.signal(signal.SIGHUP, lambda *arguments: None)
subprocess.run([sys.executable, "-c", sys.argv[1]])
"""
SERVER = """
import os, signal
from course_tools import jupyterlab_server
signal.signal(signal.SIGHUP, signal.SIG_DFL)
jupyterlab_server._end_with_terminal()
print("server", os.getpid(), flush=True)
os.execvp("sleep", ["sleep", "600"])
"""
SECONDS = 60


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="a terminal that is closed is seen otherwise elsewhere")
def test_the_server_ends_when_its_terminal_is_closed() -> None:
    leader, terminal = pty.fork()
    if leader == 0:
        os.execv(sys.executable, [sys.executable, "-c", LEADER, SERVER])
    said = b""
    while b"\n" not in said.partition(b"server")[2]:
        said += os.read(terminal, 1000)
    server = psutil.Process(int(said.partition(b"server")[2].split()[0]))
    watcher = server.children() + server.parent().children(recursive=True)  # type: ignore[union-attr]
    os.close(terminal)
    _, alive = psutil.wait_procs([server, *watcher], SECONDS)
    for process in (psutil.Process(leader), *alive):
        process.kill()
    os.waitpid(leader, 0)
    assert alive == []


def start_server() -> subprocess.Popen:
    """A process with a server's name; a new one has no name at first, although it has begun."""
    server = subprocess.Popen(["jupyter-lab", "600"], executable="/bin/sleep")
    while not psutil.Process(server.pid).cmdline():
        time.sleep(0.01)
    return server


def test_a_server_that_runs_on_the_copy_is_found_and_one_that_has_ended_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    with (
        start_server() as server,
        subprocess.Popen(["sleep", "600"]) as program,
    ):
        info = {"pid": server.pid, "root_dir": str(tmp_path), "url": "http://127.0.0.1:8889/", "token": "abc"}
        file = tmp_path / "jpserver-1.json"
        file.write_text(json.dumps(info | {"pid": program.pid}))
        assert jupyterlab_server.running_on(tmp_path) is None
        program.kill()
        file.write_text(json.dumps(info))
        (tmp_path / "jpserver-2.json").write_text("{")
        assert jupyterlab_server.running_on(tmp_path) == "http://127.0.0.1:8889/lab?token=abc"
        assert jupyterlab_server.running_on(tmp_path / "another") is None
        server.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, server.pid, os.WSTOPPED)
        assert jupyterlab_server.running_on(tmp_path) is None
        server.kill()
    assert jupyterlab_server.running_on(tmp_path) is None


def test_no_second_server_is_started_on_one_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(os, "execv", lambda *command: pytest.fail("a second server is started"))
    with start_server() as server:
        info = {"pid": server.pid, "root_dir": str(tmp_path), "url": "http://127.0.0.1:8889/", "token": "abc"}
        (tmp_path / "jpserver-1.json").write_text(json.dumps(info))
        assert jupyterlab_server.open_copy(tmp_path) == 0
        server.kill()
    assert "already runs on this copy: open http://127.0.0.1:8889/lab?token=abc " in capsys.readouterr().out


START = """
import sys
from pathlib import Path
from course_tools import jupyterlab_server
jupyterlab_server.open_copy(Path(sys.argv[1]))
"""


def start(copy: Path, **variables: str) -> tuple[str, dict[str, str]]:
    """What JupyterLab says up to its first address, and the variables that it runs with."""
    (copy / "notebooks").mkdir()
    (copy / "notebooks" / "00_start_here.ipynb").write_text("{}")
    variables = os.environ | {"BROWSER": "true", "JUPYTER_RUNTIME_DIR": str(copy), "HOME": str(copy)} | variables
    command = [sys.executable, "-c", START, str(copy)]
    with subprocess.Popen(command, env=variables, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr
        said = ""
        for line in server.stderr:
            said += line
            if "http://127.0.0.1:" in line:
                break
        of_server = psutil.Process(server.pid).environ() if server.poll() is None else {}
        server.kill()  # SIGTERM may come before its loop runs, and is lost then
    return said, of_server


@pytest.mark.slow
def test_neither_a_socks_proxy_of_the_shell_matters_nor_where_it_lets_matplotlib_draw(tmp_path: Path) -> None:
    of_shell = dict.fromkeys(("ALL_PROXY", "all_proxy"), "socks5://127.0.0.1:1080") | {"MPLBACKEND": "TkAgg"}
    of_shell["MAKEFLAGS"] = " -- ONLY=03"  # make has started it
    said, variables = start(tmp_path, **of_shell)
    assert "http://127.0.0.1:" in said, said
    assert "MPLBACKEND" not in variables and "MAKEFLAGS" not in variables


@pytest.mark.slow
def test_settings_for_another_course_do_not_matter_and_a_theme_does(tmp_path: Path) -> None:
    settings, copy = tmp_path / "home" / ".jupyter", tmp_path / "work"
    (settings / "lab" / "user-settings").mkdir(parents=True)
    (settings / "jupyter_server_config.json").write_text('{"IdentityProvider": {"hashed_password": "argon2:another"}}')
    (settings / "jupyter_lab_config.py").write_text(
        "c.ServerApp.contents_manager_class = 'package_that_is_missing.Manager'\nc.ServerApp.base_url = '/elsewhere'\n"
    )
    copy.mkdir()
    said, variables = start(copy, HOME=str(settings.parent), JUPYTER_CONFIG_PATH=str(settings))
    assert "/lab?token=" in said and "elsewhere" not in said, said
    assert variables["JUPYTERLAB_SETTINGS_DIR"] == str(settings / "lab" / "user-settings")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a browser needs no DISPLAY")
@pytest.mark.parametrize(("variables", "opens"), [({}, False), ({"DISPLAY": ":0"}, True), ({"BROWSER": "w3m"}, True)])
def test_without_a_screen_no_browser_for_text_takes_the_terminal(
    variables: dict[str, str], opens: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []
    without = {name: value for name, value in os.environ.items() if name not in jupyterlab_server.SCREENS}
    monkeypatch.setattr(os, "environ", without | {"JUPYTER_RUNTIME_DIR": str(tmp_path)} | variables)
    monkeypatch.setattr(os, "execv", lambda program, words: commands.append(words))
    jupyterlab_server.replace_this_process(tmp_path)
    assert ("--ServerApp.open_browser=False" in commands[0]) is not opens
