"""The environment that is there when set-up begins: repaired where that is simple, else kept until a new one is whole.

This module imports the standard library only: nothing is installed yet.
"""

import shutil
from contextlib import suppress
from pathlib import Path

from course_tools.setup.virtual_environment import Environment, recorded_files

_BEGINNINGS = (b"\x7fELF", b"#!", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
"""Those of programs and libraries, of Linux and of macOS, and of scripts."""


def put_aside(environment: Environment) -> None:
    """Begin an empty `.venv`; the one that is there is kept in `.venv.before`, unless no set-up has finished it.

    A folder that the system does not move, such as a volume of a container, is emptied.
    """
    folder = environment.folder
    if folder.is_dir() and any(folder.iterdir()) and not environment.unfinished.exists():
        with suppress(OSError):
            folder.rename(environment.before)
    folder.mkdir(exist_ok=True)
    environment.unfinished.touch()
    for entry in folder.iterdir():
        if entry != environment.unfinished:
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()


def settle(environment: Environment) -> None:
    """Remove what was put aside if `.venv` is whole, else put it back; also after a set-up that was killed."""
    if not environment.before.exists():
        return
    if environment.reason_to_build() is None:
        shutil.rmtree(environment.before)
        return
    if environment.log.exists():
        environment.log.replace(environment.before / environment.log.name)
    if environment.folder.exists():
        shutil.rmtree(environment.folder)
    environment.before.rename(environment.folder)
    print(".venv is as it was before.", flush=True)


def give_back_permissions(environment: Environment) -> None:
    """Make programs executable again where copying the environment has lost that, also those within packages."""
    files = [file for metadata in environment.packages().values() for file in recorded_files(metadata)]
    if not any(file.parent == environment.python.parent and _lacks_permission(file) for file in files):
        return
    programs = environment.python.parent
    lost = [
        file
        for file in files
        if _lacks_permission(file) and _begins_as_program(file) and (file.parent == programs or not _is_a_part(file))
    ]
    with suppress(OSError):  # another user's
        for file in lost:
            file.chmod(file.stat().st_mode | 0o111)
        print(f"Programs of .venv had lost their permission to execute ({len(lost)}): they have it again.", flush=True)


def _lacks_permission(file: Path) -> bool:
    return file.is_file() and not file.stat().st_mode & 0o111


def _is_a_part(file: Path) -> bool:
    """Of a package: a module, a template or a library, which need no such permission."""
    return file.suffix in (".py", ".in") or ".so" in file.suffixes


def _begins_as_program(file: Path) -> bool:
    with file.open("rb") as content:
        return content.read(4).startswith(_BEGINNINGS)
