"""JupyterLab on a student's working copy, as `make lab` starts it."""

import logging
import os
import sys
from pathlib import Path

from jupyter_core import paths

from course_tools import user_folders, working_copy
from distlab.runtime import environment

SETTINGS_OF_STUDENTS = Path(__file__).with_name("jupyterlab")
"""JupyterLab's for `make lab`: no buttons of nbgrader, nbdime, ipyparallel or jupytext, no news, whole file names,
described figures, tabs with the names of labs, and the times at which cells ran, for `progress`.

`server.json` is the server's: without those extensions, which would take seconds to start; the file browser leaves out
documents and figures, to which chapters link, and the Makefiles, which are for its terminal."""

START = "/lab/tree/notebooks/00_start_here.ipynb"

SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
"""Variables of which one is set where a browser can be opened."""

_NOT_HANDED_ON = (
    "MPLBACKEND",  # with one for windows, a cell's own pictures would not be seen
    *("MAKEFLAGS", "MFLAGS", "MAKELEVEL"),  # else `make` in a terminal there would take what this one was given
    "JUPYTER_CONFIG_PATH",
)
_PROXIES = [name for each in ("all_proxy", "http_proxy", "https_proxy") for name in (each, each.upper())]


class AddressAlone(logging.Filter):
    """Of what JupyterLab says when it has started, the address."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change such a record; every other one is said as it is."""
        if "URLs" in str(record.msg):
            record.msg = f"JupyterLab (Ctrl-C twice ends it) is open at {record.msg.split()[-1]}"
        return True


def open_lab(*, fresh: str | None = None, copy_only: bool = False) -> int:
    """Bring the working copy up to date, say what differs from the course's files, and open JupyterLab on it.

    Args:
        fresh: Give all files of a chapter back as they were, and end: "03".
        copy_only: Bring the copy up to date, for another server to open.
    """
    environment.choose_legacy_keras()
    course, copy = Path.cwd(), user_folders.announced(working_copy.NAME, "your working copy goes").absolute()
    fresh = fresh and fresh.zfill(2)
    for sentence in working_copy.update(course, copy, fresh):
        print(sentence)
    if fresh:
        then = (
            "take File > Reload Notebook from Disk in JupyterLab" if running_on(copy) else "`make lab` opens JupyterLab"
        )
        print(f"All files of chapter {fresh} are as in the course; {then}.")
        return 0
    print(f"Your working copy is {copy}; what you run there leaves the course's files as they are.", flush=True)
    if not copy_only:
        open_copy(copy)
    return 0


def open_copy(copy: Path) -> None:
    """Become a JupyterLab of the working copy `copy`, an absolute path; where one runs, print its address."""
    _leave_out_settings_of_others(copy)
    if address := running_on(copy):
        print(f"JupyterLab already runs on this copy: open {address} or end it first, by File > Shut Down.")
        return
    command = [str(Path(sys.prefix) / "bin" / "jupyter"), "lab", f"--config={SETTINGS_OF_STUDENTS / 'server.json'}"]
    command += [f"--ServerApp.root_dir={copy}", f"--LabApp.app_settings_dir={SETTINGS_OF_STUDENTS}"]
    command += [f"--LabApp.extra_labextensions_path={SETTINGS_OF_STUDENTS / 'extensions'}"]
    command += [f"--LabApp.default_url={START}", "--log-level=CRITICAL", "--LabApp.log_level=CRITICAL"]
    command += ["--allow-root"] if os.geteuid() == 0 else []
    if sys.platform == "linux" and not any(os.environ.get(name) for name in SCREENS):
        command.append("--ServerApp.open_browser=False")  # one for text would take the terminal, with the address in it
    # JupyterLab does not start with a proxy of SOCKS, although it asks nobody outside.
    for name in [*_NOT_HANDED_ON, *(name for name in _PROXIES if os.environ.get(name, "").startswith("socks"))]:
        os.environ.pop(name, None)
    os.execv(command[0], command)


def _leave_out_settings_of_others(copy: Path) -> None:
    """Let Jupyter read no settings that the user has for another course, such as a password or a port.

    What JupyterLab itself keeps there, such as keyboard shortcuts and the theme, still counts.
    """
    of_user, settings = Path(paths.jupyter_config_dir()) / "lab", copy / ".jupyter"
    settings.mkdir(exist_ok=True)
    (settings / "migrated").touch()  # else Jupyter would fill it from a folder of IPython 3
    os.environ["JUPYTER_CONFIG_DIR"] = str(settings)
    os.environ.setdefault("JUPYTERLAB_SETTINGS_DIR", str(of_user / "user-settings"))
    os.environ.setdefault("JUPYTERLAB_WORKSPACES_DIR", str(of_user / "workspaces"))


def running_on(copy: Path) -> str | None:
    """The address of a JupyterLab of this user that runs on the working copy; None if there is none."""
    from jupyter_server.serverapp import list_running_servers  # here, since it takes a second

    for server in list_running_servers():
        if Path(server["root_dir"]).resolve() == copy.resolve():
            return f"{server['url'].rstrip('/')}{START}?token={server['token']}"
    return None
