"""The environments of PyTorch, DeepSpeed, Ray, JAX and MXNet: where they are, and what is missing.

They are extras: without them notebook 14 shows recorded results. All but MXNet share `.venv-frameworks`, which lies
over the course's environment and so finds TensorFlow, Horovod and NumPy there; MXNet, which needs a NumPy of 2022, has
`.venv-mxnet` to itself. `course_tools.setup.other_frameworks` makes them.
"""

import hashlib
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from distlab.runtime.errors import PlainError

PROJECT = Path(__file__).parents[2]
PROGRAMS = PROJECT / "notebooks" / "programs" / "14_other_frameworks"


class Part(NamedTuple):
    """A framework to install.

    needs: the part that it needs, if any.  packages: those without hashes in its lock.  is_over_the_course: whether its
    environment finds the course's packages too.  newest_python: the last version that its packages run on.
    """

    title: str
    folder: str
    command: str
    needs: str | None = None
    packages: tuple[str, ...] = ()
    is_over_the_course: bool = True
    newest_python: tuple[int, int] | None = None


FRAMEWORKS, MXNET = ".venv-frameworks", ".venv-mxnet"
PARTS = {
    # Not in the lock: the build for CPUs alone, which not every index has, is another file than the one for GPUs.
    "torch": Part("PyTorch", FRAMEWORKS, ".venv/bin/distlab setup-frameworks torch", packages=("torch==2.13.0",)),
    "deepspeed": Part("DeepSpeed", FRAMEWORKS, ".venv/bin/distlab setup-frameworks deepspeed", needs="torch"),
    "ray": Part("Ray", FRAMEWORKS, ".venv/bin/distlab setup-frameworks ray"),
    "jax": Part("JAX", FRAMEWORKS, ".venv/bin/distlab setup-frameworks jax"),
    "mxnet": Part(
        "MXNet", MXNET, ".venv/bin/distlab setup-frameworks mxnet", is_over_the_course=False, newest_python=(3, 11)
    ),
}


class FrameworkMissing(PlainError, RuntimeError):
    """Something needs a framework that is not installed; the message says which and what gets it."""


def problem(part: str) -> str | None:
    """None when this part is installed as its lock says, else one sentence with what is wrong and what fixes it."""
    title, _, command, needs, *_ = PARTS[part]
    if not (installed_recipe := installed(part)):
        return f"{title} is not installed; `{command}` installs it."
    if installed_recipe != recipe(part):
        return f"{title} was installed by another lock file or for another Python; `{command}` brings it up to date."
    return problem(needs) if needs else None


def python(part: str) -> Path:
    """The interpreter that has this part; raises FrameworkMissing when it is not installed."""
    if reason := problem(part):
        raise FrameworkMissing(reason)
    return interpreter(PARTS[part].folder)


def interpreter(folder: str) -> Path:
    """The interpreter of such an environment, which may not exist yet."""
    return PROJECT / folder / "bin" / "python"


def lock(part: str) -> Path:
    """The file with the exact versions of this part's packages."""
    return PROGRAMS / f"{part}.lock"


def recipe(part: str) -> str:
    """What this part is installed from, as one line: Python, packages, digest of the lock."""
    digest = hashlib.sha256(lock(part).read_bytes()).hexdigest()
    return " ".join([f"{sys.version_info.major}.{sys.version_info.minor}", *PARTS[part].packages, digest])


def record(part: str) -> Path:
    """The file that set-up writes when this part is complete; it holds the recipe."""
    return PROJECT / PARTS[part].folder / f"{part}.installed"


def installed(part: str) -> str | None:
    """The recipe by which this part was installed; None when it is not, or not to the end."""
    try:
        return record(part).read_text() if interpreter(PARTS[part].folder).exists() else None
    except FileNotFoundError:
        return None


def versions(part: str | None, *packages: str) -> dict[str, str]:
    """The versions of packages as programs of this part find them, or of the course itself, and Python's."""
    places, python = list(sys.path), platform.python_version()
    if part:
        environment = PROJECT / PARTS[part].folder
        settings = (environment / "pyvenv.cfg").read_text().splitlines()
        python = next(line.partition("=")[2].strip() for line in settings if line.startswith("version"))
        own = environment.glob("lib/python*/site-packages")
        places = [*map(str, own), *(places if PARTS[part].is_over_the_course else [])]
    package_versions = {name: next(iter(metadata.distributions(name=name, path=places))).version for name in packages}
    return {"python": python, **package_versions}
