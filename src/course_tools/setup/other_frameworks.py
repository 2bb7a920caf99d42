"""Install the other frameworks, PyTorch, DeepSpeed, Ray, JAX and MXNet, into environments of their own."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Literal

from distlab import devices, frameworks
from distlab.frameworks import PARTS
from distlab.runtime.errors import PlainError

_EXTENSION = (
    "from deepspeed.accelerator import get_accelerator as a; a().create_op_builder('ShareMemCommBuilder').load()"
)


def set_up(*parts: Literal["torch", "deepspeed", "ray", "jax", "mxnet"], any_torch: bool = False) -> int:
    """Install the frameworks of notebook 14.

    Args:
        parts: Which; by default all but mxnet.
        any_torch: Take the PyTorch for GPUs if there is no other.
    """
    chosen = parts or ("torch", "deepspeed", "ray", "jax")
    for part in chosen:
        try:
            install(part, any_torch)
        except subprocess.CalledProcessError:
            print(f"{PARTS[part].title} was not installed, for the reason above; `{PARTS[part].command}` tries again.")
            return 1
    print(f"{', '.join(PARTS[part].title for part in chosen)}: ready")
    return 0


def install(part: str, any_torch: bool = False) -> None:
    """Install a part and what it needs, unless they are there; what was interrupted is completed.

    any_torch: take the PyTorch for GPUs if there is no other. Raises CalledProcessError, PlainError.
    """
    title, name, _, needs, packages, is_over_the_course, newest = PARTS[part]
    if needs:
        install(needs, any_torch)
    if not frameworks.problem(part):
        return
    folder, python = frameworks.PROJECT / name, str(frameworks.interpreter(name))
    print(f"Installing {title} into {name}.", flush=True)
    if not any(folder.glob(f"lib/python{'3.*' if newest else sysconfig.get_python_version()}")):
        wanted = f">=3.10,<3.{newest[1] + 1}" if newest else sys.executable
        uv = [sys.executable, "-m", "uv", "venv", "--quiet", "--clear", "--seed", "--no-python-downloads"]
        subprocess.run([*uv, "--python", wanted, str(folder)], check=True)
    if is_over_the_course:
        places = {"base": str(folder), "platbase": str(folder)}
        overlay = Path(sysconfig.get_path("purelib", "venv", places)) / "course.pth"
        overlay.write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    frameworks.record(part).unlink(missing_ok=True)  # until the new one is complete

    # pip, not uv: it also finds builds in its configured places, and counts what the environment below has.
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    variables = os.environ | {"PIP_USER": "0"}  # whatever the user has set for other projects
    locked = ["--require-hashes", "--no-build-isolation", "--requirement", str(frameworks.lock(part))]
    subprocess.run([*pip, *locked], check=True, env=variables)
    if packages:
        trial = [*pip, "--dry-run", "--ignore-installed", "--report", "-", *packages]
        report = json.loads(subprocess.run(trial, check=True, env=variables, stdout=subprocess.PIPE).stdout)
        brings_gpus = any(entry["metadata"]["name"].startswith("nvidia-") for entry in report["install"])
        if brings_gpus and not any_torch and not devices.gpu_names():
            raise PlainError(
                "The only PyTorch that pip finds here is the one for GPUs, which brings several GB, and this machine "
                "has no GPU: put the address of PyTorch's index for CPUs (PyTorch's page “Get started” has it) "
                "into PIP_EXTRA_INDEX_URL and run the same command again, or add --any-torch to take the large one."
            )
        subprocess.run([*pip, *packages], check=True, env=variables)
    if part == "deepspeed":
        # Else the first program compiles it, and one that is killed meanwhile leaves a lock on which all others wait.
        shutil.rmtree(folder / "extensions", ignore_errors=True)
        print("Compiling DeepSpeed's extension: a minute or two, once.", flush=True)
        variables |= {"DS_ACCELERATOR": "cpu", "TORCH_EXTENSIONS_DIR": str(folder / "extensions")}
        variables["PATH"] = f"{folder}/bin{os.pathsep}{variables['PATH']}"
        subprocess.run([python, "-c", _EXTENSION], check=True, env=variables, stdout=subprocess.DEVNULL)
    frameworks.record(part).write_text(frameworks.recipe(part))
