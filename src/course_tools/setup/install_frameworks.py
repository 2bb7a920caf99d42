"""Installs the other frameworks into environments of their own.

`distlab setup-frameworks` calls it. It does only what is missing; what an interrupted set-up left is
completed by the next. Nothing is installed into the course's own environment.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path

from distlab import devices, frameworks
from distlab.frameworks import PARTS
from distlab.runtime import processes

OVERLAY = "course.pth"
OLDEST_PYTHON = (3, 10)  # for which the locks hold
SECONDS_TO_COMPILE = 900
GPU_BUILD = (
    "The only PyTorch that pip finds here is the one for GPUs, which brings several GB, and this machine has no GPU. "
    "PyTorch has an index of builds for processors alone (its address is on the page “Get started” of PyTorch): put "
    "the address into PIP_EXTRA_INDEX_URL and run the same command again, or add --any-torch to take the large one."
)


class SetupFailed(Exception):
    """A part could not be installed; the message is what the user needs to know."""


def install(part: str, any_torch: bool = False) -> None:
    """Install a part and what it needs, unless they are there; raises SetupFailed."""
    if needs := PARTS[part].needs:
        install(needs, any_torch)
    if not frameworks.problem(part):
        return
    title, folder = PARTS[part].title, PARTS[part].folder
    make_environment(folder, PARTS[part].is_over_the_course, PARTS[part].newest_python)
    frameworks.record(part).unlink(missing_ok=True)  # until the new one is complete
    print(f"Installing {title} into {folder}", flush=True)
    _pip(part, "install", "--require-hashes", "--no-build-isolation", "--requirement", str(frameworks.lock(part)))
    if PARTS[part].packages:
        if part == "torch" and not any_torch and not devices.gpu_names() and brings_gpu_libraries(part):
            raise SetupFailed(GPU_BUILD)
        _pip(part, "install", *PARTS[part].packages)
    if part in AFTERWARDS:
        AFTERWARDS[part]()
    frameworks.record(part).write_text(frameworks.recipe(part))


def make_environment(folder: str, is_over_the_course: bool, newest: tuple[int, int] | None = None) -> None:
    """Make the environment, again if it is of another Python or cannot start; raises SetupFailed."""
    place, interpreter = frameworks.PROJECT / folder, frameworks.interpreter(folder)
    if not os.access(place if place.exists() else place.parent, os.W_OK):
        raise SetupFailed(f"{place} cannot be written to by you; who owns the course runs the same command in it once.")
    base = base_python(newest)
    if not version_of(base) or version_of(interpreter) != version_of(base):
        shutil.rmtree(place, ignore_errors=True)
        subprocess.run([base, "-m", "venv", str(place)], check=True)
    if is_over_the_course:
        names = {"base": str(place), "platbase": str(place)}
        overlay = Path(sysconfig.get_path("purelib", "venv", names)) / OVERLAY
        overlay.write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")


def base_python(newest: tuple[int, int] | None) -> str:
    """The Python of a new environment: this one, or one that is not newer than `newest`; raises SetupFailed."""
    if newest is None or sys.version_info[:2] <= newest:
        return sys.executable
    versions = f">={OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]},<{newest[0]}.{newest[1] + 1}"
    find = [str(Path(sys.executable).with_name("uv")), "python", "find", "--no-python-downloads", versions]
    search = subprocess.run(find, capture_output=True, text=True)
    if search.returncode:
        raise SetupFailed(
            f"This framework needs a Python no newer than {newest[0]}.{newest[1]}, and this machine has only the "
            f"course's {sys.version_info[0]}.{sys.version_info[1]}; install one (with a network: `.venv/bin/uv python "
            f"install {newest[0]}.{newest[1]}`) and run the same command again."
        )
    return search.stdout.strip()


def version_of(interpreter: str | Path) -> str | None:
    """Major and minor version of an interpreter; None when it does not start."""
    says = [str(interpreter), "-I", "-S", "-c", "import sys; print(sys.version_info[:2])"]
    try:
        return subprocess.run(says, capture_output=True, text=True).stdout.strip() or None
    except OSError:
        return None


def brings_gpu_libraries(part: str) -> bool:
    """Whether the build of PyTorch that pip would take comes with NVIDIA's libraries."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        _pip(part, "install", "--dry-run", "--report", str(report), *PARTS[part].packages)
        chosen = json.loads(report.read_text())["install"]
    return any(package["metadata"]["name"].startswith("nvidia-") for package in chosen)


def _pip(part: str, *arguments: str) -> None:
    # pip, not uv: it also finds builds in its configured places, and counts what the environment below has.
    command = [str(frameworks.interpreter(PARTS[part].folder)), "-m", "pip", "--disable-pip-version-check"]
    variables = os.environ | {"PIP_USER": "0"}  # whatever the user has set for other projects
    finished = subprocess.run([*command, *arguments, "--quiet"], capture_output=True, text=True, env=variables)
    if finished.returncode:
        reason = finished.stderr.strip().splitlines()[-1:] or ["pip says nothing"]
        raise SetupFailed(
            f"{PARTS[part].title} could not be installed ({reason[0]}); `{PARTS[part].command}` tries again."
        )


def compile_extension() -> None:
    """Compile the extension with which DeepSpeed's ranks exchange data where there is no GPU, afresh.

    Otherwise the first program would, and one that is killed meanwhile leaves a lock on which all others wait forever.
    """
    folder = frameworks.PROJECT / PARTS["deepspeed"].folder
    shutil.rmtree(folder / "extensions", ignore_errors=True)
    print("Compiling DeepSpeed's extension: a minute or two, once", flush=True)
    build = (
        "from deepspeed.accelerator import get_accelerator as a; a().create_op_builder('ShareMemCommBuilder').load()"
    )
    path = os.pathsep.join([str(folder / "bin"), os.environ.get("PATH", os.defpath)])
    variables = {"DS_ACCELERATOR": "cpu", "TORCH_EXTENSIONS_DIR": str(folder / "extensions"), "PATH": path}
    command = [str(frameworks.interpreter(PARTS["deepspeed"].folder)), "-c", build]
    finished = processes.run(command, SECONDS_TO_COMPILE, env=os.environ | variables)
    if finished.status:
        reason = finished.output.strip().splitlines()[-1:] or ["no reason is given"]
        raise SetupFailed(
            f"DeepSpeed's extension could not be compiled ({reason[0]}); it needs a C++ compiler, g++ or clang++; "
            f"`{PARTS['deepspeed'].command}` tries again."
        )
    if finished.status is None:
        raise SetupFailed(f"DeepSpeed's extension was not compiled within {SECONDS_TO_COMPILE} s; try again.")


# What a part needs after its packages.
AFTERWARDS: dict[str, Callable[[], None]] = {"deepspeed": compile_extension}
