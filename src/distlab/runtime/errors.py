"""Errors whose message is all that a user needs."""

import json
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from distlab.runtime import hidden_packages

FRAMEWORKS = ("torch", "deepspeed", "ray")
"""The packages of which `.venv-frameworks` is the environment."""

REFUSED_WRITES = {
    "No space left on device": "make room on that disk, and start again",
    "Disk quota exceeded": "remove files of yours from that disk, and start again",
    "Read-only file system": "choose a folder on another disk",
}
"""What the system says when it refuses to write, and what to do."""

NO_SERVER = "Could not start gRPC server"
"""What TensorFlow says when it cannot listen at the address of a process."""

_NEARLY_NOTHING = 2**16
_MANY_CALLS = 100


class PlainError(Exception):
    """The message says what is wrong and how to fix it; Jupyter and programs show it alone, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback."""
        return [f"{type(self).__name__}: {self}"]


def show_alone() -> None:
    """From now on, when a PlainError ends this program, its name and message are all that is written.

    An interrupt of the command `distlab` before it can catch one, while Python loads it, is one word too. A framework
    that is in an environment of its own is named with the command that makes it. A full or read-only disk is one
    sentence, whatever library met it: TensorFlow's traceback of it has 170 lines. So is a shared library that cannot be
    loaded, an address of TF_CONFIG that is taken, a backend of Keras 3 that is not there, and a file that hides a
    package.

    Called by the start-up file of the environment, not on import: only whoever starts a program may change its hooks.
    """
    usual = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if isinstance(error, PlainError):
            print(*error._render_traceback_(), file=sys.stderr)
        elif isinstance(error, KeyboardInterrupt) and Path(sys.argv[0]).name == "distlab":
            print("\nInterrupted.", file=sys.stderr)
        elif isinstance(error, ModuleNotFoundError) and error.name in FRAMEWORKS:
            print(_of_another_environment(error.name), file=sys.stderr)
        elif sentence := (
            refused_write(error)
            or broken_library(error)
            or taken_address(error)
            or missing_backend(error)
            or hidden_packages.cause(error)
        ):
            print(sentence, file=sys.stderr)
        else:
            usual(kind, error, traceback)

    sys.excepthook = show


def message_of(error: BaseException) -> str:
    """The text of an exception; that of a recursion without end also names the functions that call each other."""
    text = str(error)
    if not isinstance(error, RecursionError):
        return text
    from traceback import walk_tb  # every Python of the environment starts with this module

    calls = Counter(frame.f_code for frame, _ in walk_tb(error.__traceback__))
    names = sorted({code.co_name for code, count in calls.items() if count > _MANY_CALLS})
    if not names:
        return text
    written = " and ".join(f"`{name}`" for name in names)
    return f"{text}: {written} {'calls itself' if len(names) == 1 else 'call each other'} without end"


def refused_write(error: BaseException) -> str | None:
    """One sentence if a disk has refused a write, or None; Python, TensorFlow and HDF5 each have words of their own."""
    text = str(error)
    reason = next((reason for reason in REFUSED_WRITES if reason in text), None)
    if reason is None:
        return None
    file = re.search(rf"(\S+); {reason}|{reason}: '(.+?)'|name = '(.+?)'", text)
    # TensorFlow writes a checkpoint in parts, and Python names no file where it makes locks in shared memory.
    place = next(filter(None, file.groups())).partition("_temp/")[0] if file else _full_folder() or "a file"
    return f"{place} could not be written ({reason}): {REFUSED_WRITES[reason]}."


def _full_folder() -> str | None:
    """Which of the places that programs write to without naming them has no room left."""
    for folder in ("/dev/shm", tempfile.gettempdir(), str(Path.cwd())):
        with suppress(OSError):
            if shutil.disk_usage(folder).free < _NEARLY_NOTHING:
                return folder
    return None


def _of_another_environment(framework: str) -> str:
    command = f".venv/bin/distlab setup-frameworks {framework}"
    return (
        f"{framework} is not in this environment: run `{command}`, then the program with .venv-frameworks/bin/python."
    )


def broken_library(error: BaseException | None) -> str | None:
    """Which shared library an import could not load, and the variable of the shell that leads to it; or None."""
    while error is not None:
        library = re.search(r"(/\S+\.so[\d.]*): (.+)", str(error)) if isinstance(error, ImportError) else None
        if library:
            folder, lookups = str(Path(library[1]).parent), ("LD_PRELOAD", "LD_LIBRARY_PATH")
            name = next((name for name in lookups if folder in os.environ.get(name, "")), None)
            is_set = next((name for name in lookups if os.environ.get(name)), None)
            fix = "install what it belongs to again"
            if name:
                fix = f"{name} in your shell leads there: `unset {name}`"
            elif is_set:  # it may lead to another one that this library needs
                fix = f"`unset {is_set}`, which is set in your shell and may lead to others of its kind; else {fix}"
            return f"The library {library[1]} cannot be loaded ({library[2]}); {fix}, then repeat the command."
        error = error.__cause__ or error.__context__
    return None


def taken_address(error: BaseException) -> str | None:
    """One sentence if TensorFlow could not listen at the address that TF_CONFIG gives this process, or None."""
    if NO_SERVER not in str(error):
        return None
    try:
        config = json.loads(os.environ["TF_CONFIG"])
        kind, index = config["task"]["type"], int(config["task"]["index"])
        address = config["cluster"][kind][index]
    except (LookupError, ValueError, TypeError):  # the program has said otherwise where the process listens
        return None
    return (
        f"{address}, the address of {kind} {index}, is taken ({NO_SERVER}): another terminal has index {index} too, or "
        f"the addresses in another order, or a {kind} of an earlier run lives. Give each terminal its own index and "
        f"the same list of addresses, end that {kind}, or choose other ports."
    )


def missing_backend(error: BaseException) -> str | None:
    """One sentence if KERAS_BACKEND in the shell names a package that is not there, such as jax, or None."""
    backend = os.environ.get("KERAS_BACKEND")
    if not isinstance(error, ModuleNotFoundError) or error.name != backend:
        return None
    return (
        f"KERAS_BACKEND={backend} in your shell lets Keras 3 run on {backend}, which is not in this environment: "
        "`unset KERAS_BACKEND`, then repeat the command; Keras runs on TensorFlow then."
    )
