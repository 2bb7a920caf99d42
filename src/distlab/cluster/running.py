"""A command on the login node, from the terminal in which a user has started it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from distlab.cluster.cluster import Cluster
from distlab.cluster.record import ClusterRecord

ENDED_MEANWHILE = 3
"""The exit status when the cluster was ended while the command ran."""

_PASSED_ON = {signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP}
_SECONDS_BETWEEN_LOOKS, _SECONDS_TO_END = 0.1, 2.0


def carry_out(cluster: Cluster, command: Sequence[str]) -> int:
    """Run a command until it ends; its exit status, or ENDED_MEANWHILE after a sentence.

    Where a signal has ended the command, it ends this process, too.
    """
    record = ClusterRecord(cluster.name)
    holder = record.holder()
    signals = {*_PASSED_ON, signal.SIGCHLD}
    # Before the command starts: what it gets from the terminal must not end this process on its own.
    former = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig", "TERM", *cluster.entering(command)],
        preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, former),
    )
    while process.poll() is None:
        received = signal.sigtimedwait(signals, _SECONDS_BETWEEN_LOOKS)
        # What a terminal sends (its code is above 0) the command has got, too; but of its end, it tells only the
        # first program in it.
        if not received or received.si_signo not in _PASSED_ON:
            continue
        if received.si_code <= 0 or received.si_signo == signal.SIGHUP:
            process.send_signal(received.si_signo)
    if process.returncode >= 0:
        return process.returncode
    if process.returncode == -signal.SIGKILL and _has_ended(record, holder):
        print(f"The cluster {cluster.name!r} was ended while this command ran.", file=sys.stderr)
        return ENDED_MEANWHILE
    return _end_by(-process.returncode)


def _has_ended(record: ClusterRecord, holder: int | None) -> bool:
    """Whether the process that held the cluster ends now, which takes a moment longer than the end of a command."""
    deadline = time.monotonic() + _SECONDS_TO_END
    while holder and record.holder() == holder:
        if time.monotonic() > deadline:
            return False
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    return True


def _end_by(number: int) -> int:
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    return 128 + number  # not reached
