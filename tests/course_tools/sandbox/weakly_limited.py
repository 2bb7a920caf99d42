"""Tries the sandbox without namespaces: `python weakly_limited.py USER MARK` prints as JSON what each attack came to.

It runs as the user of that number, for which it has to be root, as it is for user 0. `MARK` is how many seconds a
process sleeps that is left behind in the sandbox, so that it can be told from others. Exit status 77: it cannot be
tried on this machine.
"""

import json
import os
import sys
import time
from pathlib import Path

import psutil

import distlab
from course_tools.sandbox import SandboxedWork, SandboxLimits, Server, protections, system_calls
from distlab.labs import AnswerError

SECONDS = 120.0
NOT_HERE = 77
LIMITS = SandboxLimits(memory=2**28, address_space=None)
ATTACKS = {
    "while True: pass": 2.0,
    "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass": SECONDS,
    "many = []\nwhile True: many.append(bytearray(b'x') * 2**26)": SECONDS,
    "import os; os._exit(4)": SECONDS,
    "import mmap\nmany = mmap.mmap(-1, 2**40, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ)\n"
    "for place in range(0, 2**40, 2**21): many[place]": SECONDS,
    "import fcntl, os\nfcntl.flock(os.open(os.__file__, os.O_RDONLY), fcntl.LOCK_EX)": SECONDS,
}


def let_everybody_read_python() -> None:
    """Show Python's folders, in a mount namespace of its own, also to users who may not pass a folder above them."""
    places = {Path(place).resolve() for place in (sys.base_prefix, sys.prefix, Path(distlab.__file__).parents[1])}
    closed = {place: [parent for parent in place.parents if not parent.stat().st_mode & 0o001] for place in places}
    system_calls.unshare(system_calls.NEW_MOUNTS)
    system_calls.mount("none", "/", flags=system_calls.RECURSIVE | system_calls.PRIVATE)
    opened = {place: os.open(place, os.O_RDONLY) for place in places if closed[place]}
    for top in {closed[place][-1] for place in opened}:
        system_calls.mount("tmpfs", str(top), "tmpfs", system_calls.NO_SUID, "mode=755")
    for place, descriptor in opened.items():
        place.mkdir(parents=True)
        system_calls.bind(f"/proc/self/fd/{descriptor}", str(place), read_only=True)


def outcomes(mark: str) -> dict[str, object]:
    """Whether a process was left behind, who the student's code was, what each attack and a large file came to."""
    results: dict[str, object] = {
        "report": str(protections.find(weak=True)),
        "is weak": protections.strongest(accept_weak=True)[1],
    }
    with Server(weak=True) as server, SandboxedWork(server, LIMITS) as work:
        work.run_cell(f"import os, subprocess\nsubprocess.Popen(['setsid', 'sleep', '{mark}'])", "one", SECONDS)
        results["left behind"] = _is_there(mark)
        work.run_cell("user = os.getuid()", "two", SECONDS)
        results["user"] = work.answer(SECONDS).value("user")
        for text, seconds in ATTACKS.items():
            try:
                results[text] = str(work.run_cell(text, "three", seconds).error)
            except AnswerError as error:
                results[text] = str(error)
        error = work.run_cell("open('x', 'wb').write(bytes(2**26))", "four", SECONDS).error
        results["large file"] = error and error.kind
    return results


def _is_there(mark: str) -> bool:
    until = time.monotonic() + SECONDS  # it may still be on its way from setsid to sleep
    while time.monotonic() < until:
        if any(process.info["cmdline"] == ["sleep", mark] for process in psutil.process_iter(["cmdline"])):
            return True
        time.sleep(0.01)
    return False


def main() -> None:
    """Become the user, try everything."""
    user, mark = int(sys.argv[1]), sys.argv[2]
    if os.geteuid() == 0:
        try:
            let_everybody_read_python()
        except OSError as error:
            print(f"not on this machine: {error}")
            sys.exit(NOT_HERE)
        os.chdir("/")
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    print(json.dumps(outcomes(mark)))


if __name__ == "__main__":
    main()
