"""JupyterLab on a student's working copy, as `make lab` starts it: it ends when its terminal is closed."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import psutil
from jupyter_core import paths

from course_tools import user_folders, working_copy
from distlab.runtime import environment

SETTINGS_OF_STUDENTS = Path(__file__).with_name("jupyterlab")
"""JupyterLab's for `make lab`: no buttons of nbgrader or nbdime, no news, whole file names, described figures, and the
times at which cells ran, for `progress`."""

NOT_LISTED = ["docs", "figures", "Makefile", "__pycache__", "*.pyc", "*~"]
"""What the file browser leaves out: chapters link to the documents and figures, and nobody works in those folders; the
Makefiles are for its terminal."""

# Asked for no event, poll answers when the terminal, its standard input, was closed.
_ENDS_WITH_TERMINAL = """
import os, select, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_IGN)
signal.signal(signal.SIGINT, signal.SIG_IGN)
server, terminal = int(sys.argv[1]), select.poll()
terminal.register(0, 0)
while os.getppid() == server:
    if terminal.poll(1000):
        os.kill(server, signal.SIGTERM)
        break
"""
SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
"""Variables of which one is set where a browser can be opened."""


_NOT_HANDED_ON = (
    "MPLBACKEND",  # with one for windows, a cell's own pictures would not be seen
    *("MAKEFLAGS", "MFLAGS", "MAKELEVEL"),  # else `make` in a terminal there would take what this one was given
)


def open_lab(*, fresh: str | None = None, copy_only: bool = False) -> int:
    """Bring the working copy up to date, say what differs from the course's files, and open JupyterLab on it.

    Args:
        fresh: Give all files of a chapter back as they were, and end: "03".
        copy_only: Bring the copy up to date, for another server to open.
    """
    environment.choose_legacy_keras()
    course = Path.cwd()
    to_give_back = working_copy.chapter_files(course, fresh) if fresh else []
    copy = user_folders.announced(working_copy.NAME, "your working copy goes").absolute()
    changed_in_both = working_copy.update(
        course,
        copy,
        lambda kept: print(f"The course's file replaces yours, which differs from it and is kept: {kept}"),
        lambda left: print(f"{left}: the course no longer has this file under this name; yours stays as it is."),
    )
    for name in sorted(set(changed_in_both) - set(to_give_back)):
        fix = "Rename or remove yours, and the next `make lab` gives you the course's"
        if number := working_copy.chapter_of(name):
            fix = f"`.venv/bin/distlab lab --fresh {number}` gives you the course's, and keeps yours under another name"
        print(f"{copy / name} differs from the course's file; yours stays. {fix}.")
    if fresh:
        return _give_back(course, copy, to_give_back)
    print(f"Your working copy is {copy}; what you run there leaves the course's files as they are.", flush=True)
    return 0 if copy_only else open_copy(copy)


def _give_back(course: Path, copy: Path, names: list[str]) -> int:
    if differing := working_copy.differing(course, copy, names):
        print(f"The course's files replace these of yours, kept under other names: {', '.join(differing)}.")
        if sys.stdin.isatty() and input("Go on? [y/N] ").strip().lower() not in ("y", "yes"):
            print("Nothing was changed.")
            return 1
    for kept in working_copy.give_back(course, copy, names):
        print(f"Kept: {kept}")
    number = working_copy.chapter_of(names[0])
    then = "`make lab` opens JupyterLab"
    if running_on(copy):
        then = "JupyterLab is open: take File > Reload Notebook from Disk there"
    print(f"All files of chapter {number} are as in the course; {then}.")
    return 0


def open_copy(copy: Path) -> int:
    """Become the JupyterLab of the working copy `copy`; returns 0 where one already runs, and prints its address."""
    user_folders.require_home()
    os.environ.update(user_folders.folders_of_jupyter())
    if address := running_on(copy):
        print(f"JupyterLab already runs on this copy: open {address} or end it first, by File > Shut Down.")
        return 0
    return replace_this_process(copy)


def replace_this_process(copy: Path) -> NoReturn:
    """Become a JupyterLab of the working copy `copy`, an absolute path."""
    command = [str(Path(sys.prefix) / "bin" / "jupyter"), "lab", "--ServerApp.ip=127.0.0.1"]
    command += [f"--ServerApp.root_dir={copy}", f"--LabApp.app_settings_dir={SETTINGS_OF_STUDENTS}"]
    command += [f"--ContentsManager.hide_globs={NOT_LISTED!r}", "--LabApp.default_url=/lab"]
    command += [f"--LabApp.extra_labextensions_path={SETTINGS_OF_STUDENTS / 'extensions'}"]
    command += ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    if sys.platform == "linux" and not any(os.environ.get(name) for name in SCREENS):
        command.append("--ServerApp.open_browser=False")  # one for text would take the terminal, with the address in it
    for name in _NOT_HANDED_ON:
        os.environ.pop(name, None)
    _leave_out_settings_of_others(copy)
    _leave_out_socks_proxies()
    _end_with_terminal()
    os.execv(command[0], [*command, str(copy / "notebooks" / "00_start_here.ipynb")])


def _leave_out_settings_of_others(copy: Path) -> None:
    """Let Jupyter read no settings that the user has for another course, such as a password or a port.

    What JupyterLab itself keeps there, such as keyboard shortcuts and the theme, still counts.
    """
    of_user = Path(paths.jupyter_config_dir()) / "lab"
    os.environ.setdefault("JUPYTERLAB_SETTINGS_DIR", str(of_user / "user-settings"))
    os.environ.setdefault("JUPYTERLAB_WORKSPACES_DIR", str(of_user / "workspaces"))
    settings = copy / ".jupyter"
    settings.mkdir(exist_ok=True)
    (settings / "migrated").touch()  # else Jupyter would fill it from a folder of IPython 3
    os.environ["JUPYTER_CONFIG_DIR"] = str(settings)
    os.environ.pop("JUPYTER_CONFIG_PATH", None)


def _leave_out_socks_proxies() -> None:
    """JupyterLab does not start with one, although it asks nobody outside; nor could Python's urllib use one."""
    for name in ("all_proxy", "http_proxy", "https_proxy"):
        for variable in (name, name.upper()):
            if os.environ.get(variable, "").startswith("socks"):
                del os.environ[variable]


def running_on(copy: Path) -> str | None:
    """The address of a JupyterLab of this user that runs on the working copy; None if there is none.

    From the files that `jupyter server list` reads too.
    """
    for file in Path(paths.jupyter_runtime_dir()).glob("jpserver-*.json"):
        with suppress(OSError, ValueError, KeyError, TypeError, psutil.Error):  # an old file, or one half written
            server = json.loads(file.read_text())
            process = psutil.Process(server["pid"])
            # Another program may have the number by now; and one that Ctrl-Z has stopped does not answer.
            runs = any("jupyter" in word for word in process.cmdline()) and process.status() != psutil.STATUS_STOPPED
            if runs and Path(server["root_dir"]).resolve() == copy.resolve():
                token = f"?token={server['token']}" if server["token"] else ""
                return f"{server['url']}lab{token}"
    return None


def _end_with_terminal() -> None:
    """Let SIGTERM end this process when its terminal is closed, where it would not be told.

    In `ssh -t host make lab` the system tells make alone, which leads the session and waits for its child.
    """
    if os.getsid(0) == os.getppid() and sys.stdin.isatty() and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        subprocess.Popen([sys.executable, "-I", "-S", "-c", _ENDS_WITH_TERMINAL, str(os.getpid())])
