"""Which labs there are: one module `distlab.labs.lab_NN` for each."""

import importlib
import pkgutil

from distlab.labs.lab import Lab
from distlab.runtime.errors import PlainError


class NoSuchLab(PlainError, LookupError):
    """There is no lab of that number; the message lists those there are."""


def numbers() -> list[str]:
    """The two digits of every lab, in order."""
    import distlab.labs

    names = [module.name for module in pkgutil.iter_modules(distlab.labs.__path__)]
    return sorted(name.removeprefix("lab_") for name in names if name.startswith("lab_"))


def lab(number: str | int) -> Lab:
    """The lab of a chapter: "06", 6 or "06_topic". Raises NoSuchLab."""
    wanted = str(number).partition("_")[0].zfill(2)
    if wanted not in numbers():
        raise NoSuchLab(f"There is no lab {number}; there are {', '.join(numbers()) or 'none'}.")
    return importlib.import_module(f"distlab.labs.lab_{wanted}.lab").LAB
