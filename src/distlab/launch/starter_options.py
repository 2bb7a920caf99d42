"""The options that a user gives to mpirun, horovodrun or torchrun itself, beside those that the launcher gives.

How many processes there are is the launcher's to say: it waits for each of them.
"""

import math
import shlex
from collections.abc import Sequence

from distlab.launch.job import LaunchError

_COUNTS = {
    "mpirun": ("-np", "--np", "-n", "--n", "-c"),
    "horovodrun": ("-np", "--num-proc"),
    "torchrun": ("--nproc-per-node", "--nproc_per_node"),
}
_GLOO_WAITS = "--gloo-timeout-seconds"
_LONGEST_WAIT = 7 * 86_400.0


def check(starter: str, options: Sequence[str]) -> None:
    """Raise LaunchError if the options of this starter are one text, or say how many processes to start."""
    if isinstance(options, str):
        raise LaunchError(f"options={options!r} makes no sense: give a list, such as {shlex.split(options)}.")
    if not isinstance(options, Sequence) or not all(isinstance(option, str) for option in options):
        raise LaunchError(f'options={options!r} makes no sense: give a list of texts, such as ["--tag-output"].')
    for option in options:
        name, _, _ = str(option).partition("=")
        if name in _COUNTS[starter]:
            raise LaunchError(
                f"Leave {name} out of the options of {starter}: `ranks=`, or --workers on the command line, says how "
                "many processes there are."
            )


def waiting(starter: str, options: Sequence[str], seconds: float) -> list[str]:
    """Options, which are not printed, that let Horovod's ranks wait for each other for `seconds`, the job's own limit.

    Gloo waits for 30 s by default. A loaded machine takes longer to import TensorFlow in every rank, and so does a job
    that Ctrl-Z has stopped. A rank that ends is noticed at once all the same.
    """
    if starter != "horovodrun" or any(str(option).startswith(_GLOO_WAITS) for option in options):
        return []
    return [_GLOO_WAITS, str(math.ceil(min(seconds, _LONGEST_WAIT)))]
