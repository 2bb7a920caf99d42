"""Types for the command lines of the course's programs: what cannot work is refused before anything has trained.

    parser.add_argument("--epochs", type=valid.count, default=2)
    parser.add_argument("--result", type=valid.output, help="JSON file that rank 0 writes")

argparse turns each error into one sentence that names the option. `check_paths` compares the paths of several options.
"""

import math
import os
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from contextlib import suppress
from itertools import permutations
from pathlib import Path, PosixPath
from typing import Any

from distlab.runtime.links import dangling

_PATTERN = "[*?\\"


def whole(text: str) -> int:
    """A whole number, such as 3 or -3."""
    try:
        return int(text)
    except ValueError:
        raise ArgumentTypeError(f"{text} is no whole number") from None


def count(text: str) -> int:
    """A whole number from 1 on."""
    number = whole(text)
    if number < 1:
        raise ArgumentTypeError(f"{text} is less than 1")
    return number


def index(text: str) -> int:
    """A number that counts from 0, such as a rank."""
    number = whole(text)
    if number < 0:
        raise ArgumentTypeError(f"{text} is less than 0, and the first is number 0")
    return number


def seed(text: str) -> int:
    """A seed that NumPy and TensorFlow accept: a whole number from 0 to 2³² - 1."""
    number = whole(text)
    if not 0 <= number < 2**32:
        raise ArgumentTypeError(f"{text} is no whole number from 0 to 4294967295")
    return number


def rate(text: str) -> float:
    """A finite number above 0, such as a learning rate or seconds."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise ArgumentTypeError(f"{text} is no number above 0")
    return number


def amount(text: str) -> float:
    """A finite number from 0 on, such as seconds to sleep."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise ArgumentTypeError(f"{text} is no finite number from 0 on")
    return number


def existing(text: str) -> Path:
    """The path of a file that is there and can be read."""
    file = Path(_from_home(text))
    if file.is_dir() or not text:
        raise ArgumentTypeError(f"{text} is a folder, and a file is needed" if text else "'' names no file")
    if not file.exists():
        # The shell leaves a pattern as it is if no file fits, or if it is quoted.
        what = "is a pattern that the shell has replaced by no file" if set(text) & set(_PATTERN) else "does not exist"
        raise ArgumentTypeError(f"{text} {what}; give the path of a file, from {Path.cwd()}")
    if not os.access(file, os.R_OK):
        raise ArgumentTypeError(f"{text} may not be read by this user")
    return file


class ResultFile(PosixPath):
    """A file whose text is written as a whole or not at all: a full disk does not cost the text of an earlier run."""

    def write_text(self, data: str, *others: Any, **settings: Any) -> int:
        """As Path does. Raises OSError, which names the file."""
        # Beside the file that a link leads to, since only within one disk renaming is all or nothing.
        real = Path(self.resolve())
        part = real.with_name(f"{real.name}.{os.getpid()}.part")
        if (real.exists() and not real.is_file()) or not os.access(real.parent, os.W_OK):  # such as /dev/stdout
            return super().write_text(data, *others, **settings)
        try:
            count = part.write_text(data, *others, **settings)
            if real.exists():
                part.chmod(real.stat().st_mode)
            part.replace(real)
        except OSError as error:
            with suppress(OSError):
                part.unlink()
            raise OSError(error.errno, error.strerror, str(self)) from None
        return count


def output(text: str) -> ResultFile:
    """The path of a file that can be written; its folder exists, and it is no program."""
    file = ResultFile(_from_home(text))
    if text in ("", "-") or file.suffix == ".py":
        what = "is a program, which would be overwritten" if file.suffix else "names no file"
        raise ArgumentTypeError(f"{text!r} {what}; give the name of a file, such as result.json")
    if file.is_dir():
        raise ArgumentTypeError(f"{text} is a folder, and a file will be written")
    if link := dangling(file):
        raise ArgumentTypeError(f"{link}; remove the link, or make what it leads to")
    if not file.parent.is_dir():
        raise ArgumentTypeError(f"there is no folder {file.parent}")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise ArgumentTypeError(f"{text} cannot be written")
    return file


def folder(text: str) -> Path:
    """The path of a folder, which may not exist yet."""
    if not text:
        raise ArgumentTypeError("'' names no folder; for the current one write .")
    path = Path(_from_home(text))
    if pattern := set(str(path)) & set(_PATTERN):
        raise ArgumentTypeError(
            f"{text} has {min(pattern)} in it, which TensorFlow takes for a pattern when it reads a checkpoint; "
            "choose another name"
        )
    if link := dangling(path):
        raise ArgumentTypeError(f"{link}; remove the link, or make what it leads to")
    if path.exists() and not path.is_dir():
        raise ArgumentTypeError(f"{text} is a file, and a folder is needed")
    nearest = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        why = "does not allow it" if nearest.is_dir() else "is a file"
        raise ArgumentTypeError(f"{text} cannot be written: {nearest} {why}")
    return path


def check_paths(parser: ArgumentParser, options: Namespace) -> None:
    """End the program with one sentence if a file that it will write is, or would hold, the path of another option.

    Neither may exist yet, so that the types of the single options cannot see it.
    """
    paths = {f"--{name.replace('_', '-')}": path for name, path in vars(options).items() if isinstance(path, Path)}
    for (first, file), (second, path) in permutations(paths.items(), 2):
        if not isinstance(file, ResultFile) or (file.exists() and not file.is_file()):  # such as /dev/null
            continue
        if file.resolve() == path.resolve():
            parser.error(f"{first} and {second} are the same path, {file}; choose another one for {first}")
        if file.resolve() in path.resolve().parents:
            parser.error(
                f"{second} {path} lies in {first} {file}, which will be a file; choose another path for {first}"
            )


def _from_home(text: str) -> str:
    """The path with the home folder for a ~ in front: bash leaves that to programs in --folder=~/saved."""
    path = os.path.expanduser(text)  # noqa: PTH111  # pathlib has only an error for an unknown user
    if path.startswith("~"):
        raise ArgumentTypeError(f"{text} begins with ~, and there is no such home folder; write the whole path")
    return path
