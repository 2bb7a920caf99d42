"""The C++ compiler that builds Horovod, and compilers that the shell names but that do not exist."""

import os
import shutil


def find() -> str | None:
    """The path of a C++ compiler: $CXX if it is set, else the first of c++, g++, clang++; None if there is none."""
    names = os.environ.get("CXX", "").split()[:1] or ["c++", "g++", "clang++"]
    return next(filter(None, map(shutil.which, names)), None)


def missing() -> dict[str, str]:
    """The variables CXX and CC of the shell that name no program, such as one of a module that is not loaded now."""
    named = {name: os.environ.get(name, "") for name in ("CXX", "CC")}
    return {name: value for name, value in named.items() if value.split() and not shutil.which(value.split()[0])}


def problem() -> str | None:
    """What is missing, as "there is no ...", or None; see `fix`."""
    if variables := missing():
        named = " and ".join(f"{name}={value}" for name, value in variables.items())
        return f"there is no compiler {named}, as your shell names it"
    return None if find() else "there is no C++ compiler"


def fix() -> str:
    """What to do about a problem."""
    return f"`unset {' '.join(variables)}`" if (variables := missing()) else "install g++ or clang++"
