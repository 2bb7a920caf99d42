"""Installs the other frameworks into environments of their own: `python -m distlab.frameworks_setup torch deepspeed`.

`make setup-frameworks` and `make setup-mxnet` call it. It does only what is missing; what an interrupted set-up left is
completed by the next. Nothing is installed into the course's own environment.
"""

import argparse
import json
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from distlab import devices, frameworks
from distlab.frameworks import PARTS

OVERLAY = "course.pth"
GPU_BUILD = (
    "The only PyTorch that pip finds here is the one for GPUs, which brings several GB, and this machine has no GPU. "
    "PyTorch has an index of builds for processors alone (its address is on the page “Get started” of PyTorch): put "
    "the address into PIP_EXTRA_INDEX_URL and say the same again, or add TORCH=any to take the large one."
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
    make_environment(folder, PARTS[part].is_over_the_course)
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


def make_environment(folder: str, is_over_the_course: bool) -> None:
    """Make the environment, anew if it is of another Python or cannot start."""
    place, interpreter = frameworks.PROJECT / folder, frameworks.interpreter(folder)
    try:
        says = [str(interpreter), "-I", "-S", "-c", "import sys; print(sys.version_info[:2])"]
        is_fit = subprocess.run(says, capture_output=True, text=True).stdout.strip() == str(sys.version_info[:2])
    except OSError:
        is_fit = False
    if not is_fit:
        shutil.rmtree(place, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    if is_over_the_course:
        names = {"base": str(place), "platbase": str(place)}
        overlay = Path(sysconfig.get_path("purelib", "venv", names)) / OVERLAY
        overlay.write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")


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
    finished = subprocess.run([*command, *arguments, "--quiet"], capture_output=True, text=True)
    if finished.returncode:
        reason = finished.stderr.strip().splitlines()[-1:] or ["pip says nothing"]
        raise SetupFailed(
            f"{PARTS[part].title} could not be installed ({reason[0]}); `{PARTS[part].command}` tries again."
        )


# What a part needs after its packages.
AFTERWARDS: dict = {}


def main() -> None:
    """Install the parts that are asked for."""
    parser = argparse.ArgumentParser(description="Install the other frameworks into environments of their own.")
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--any-torch", action="store_true", help="take the PyTorch for GPUs where there is no other")
    options = parser.parse_args()
    try:
        for part in options.parts:
            install(part, options.any_torch)
    except SetupFailed as failed:
        sys.exit(str(failed))
    titles = [PARTS[part].title for part in options.parts]
    print(f"{', '.join(titles)}: ready")


if __name__ == "__main__":
    main()
