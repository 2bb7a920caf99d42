"""The script by which an elastic job of Horovod finds its hosts, tried once before the job: Horovod would retry it."""

import subprocess
from collections.abc import Sequence

from distlab.launch.job import LaunchError
from distlab.launch.last_lines import cut

OPTION = "--host-discovery-script"
SECONDS = 30.0
_SHOWN = 200


def script_of(options: Sequence[str]) -> str | None:
    """The script that these options of horovodrun name, None for a job that is not elastic."""
    for option, following in zip(options, [*options[1:], ""], strict=True):
        name, sign, value = option.partition("=")
        if name == OPTION:
            return value if sign else following
    return None


def check(script: str) -> None:
    """Raise LaunchError if the script does not print the hosts that there are, as HOST or HOST:SLOTS on a line."""
    try:
        # By a shell, as Horovod does.
        ran = subprocess.run(
            script, shell=True, stdin=subprocess.DEVNULL, capture_output=True, errors="replace", timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        raise _problem(script, f"was not over after {SECONDS:g} s") from None
    if ran.returncode:
        said = (ran.stderr.strip() or ran.stdout.strip()).splitlines()
        raise _problem(script, f"ended with exit status {ran.returncode}" + (f": {cut(said[-1])}" if said else ""))
    lines = ran.stdout.strip().splitlines()
    if not lines:
        raise _problem(script, "printed no host")
    for line in lines:
        host, sign, slots = line.partition(":")
        if not host or " " in host or (sign and not slots.isdecimal()):
            raise _problem(script, f"printed {line[:_SHOWN]!r}")


def _problem(script: str, what: str) -> LaunchError:
    return LaunchError(
        f"The host-discovery script {script} {what}; it must print a line such as localhost:2 for each host there is "
        "(a path without a folder is looked for in PATH: write ./NAME)."
    )
