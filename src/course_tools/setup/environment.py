"""Make the course's Python environment, `.venv`, of requirements.lock, or bring it up to date.

`make setup` runs this with the system's Python, so this module imports the standard library only:

    PYTHONPATH=src python3 -P -m course_tools.setup.environment

A set-up that was interrupted leaves no `.venv/ready`, and the next one begins from nothing, with packages from uv's
cache. pip and uv say themselves what stopped them, and read the usual variables for indexes, proxies and certificates.
"""

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path


def set_up(course: Path) -> None:
    """Make the environment of a checkout unless its stamp says that it is there. Raises CalledProcessError."""
    environment, lock = course / ".venv", course / "requirements.lock"
    python, ready = environment / "bin" / "python", environment / "ready"
    digests = [hashlib.sha256((course / name).read_bytes()).hexdigest() for name in (lock.name, "pyproject.toml")]
    # The programs of an environment contain its path: one that was moved is made again.
    recipe = [str(course), *digests]
    found = ready.read_text().splitlines() if ready.exists() and python.exists() else []
    if found == recipe:
        return
    ready.unlink(missing_ok=True)
    # PIP_USER may stand in pip's own file of settings; uv does not read pip's variables.
    variables = os.environ | {"PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    for name, names_of_uv in {"PIP_INDEX_URL": "UV_DEFAULT_INDEX", "PIP_EXTRA_INDEX_URL": "UV_INDEX"}.items():
        if name in variables and not {"UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX"} & os.environ.keys():
            variables[names_of_uv] = variables[name]

    def run(*command: str | Path) -> None:
        subprocess.run(command, check=True, cwd=course, env=variables)

    if found[:1] != recipe[:1]:
        print("Making .venv, the course's Python environment.", flush=True)
        # uv must not look at `.venv` while it is being emptied: it remembers an interpreter by its path, and would
        # install into another Python ever after.
        run(sys.executable, "-m", "venv", "--clear", environment)
        entry = re.search(r"^uv==.*(?:\n +--hash.*)+", lock.read_text(), re.MULTILINE)
        (environment / "uv.txt").write_text(entry[0] if entry else "uv")
        run(python, "-m", "pip", "install", "--quiet", "--requirement", environment / "uv.txt")
    print("Installing the packages of requirements.lock into .venv.", flush=True)
    pip = (environment / "bin" / "uv", "pip")
    checked = ("--require-hashes", "--compile-bytecode", "--python", python)
    run(*pip, "sync", "--quiet", *checked, lock)
    run(*pip, "install", "--quiet", "--python", python, "--no-deps", "--no-build-isolation", "--editable", course)
    ready.write_text("\n".join(recipe))


def main() -> int:
    """Set up the checkout that this file is part of; the exit status."""
    try:
        set_up(Path(__file__).resolve().parents[3])
    except subprocess.CalledProcessError as failure:
        command = " ".join(map(str, failure.cmd))
        print(f"Set-up stopped at `{command}`, for the reason above; `make setup` tries again.", flush=True)
        return 1
    except KeyboardInterrupt:
        print("\nSet-up was interrupted; `make setup` starts it again.", flush=True)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
