"""Runs the body of a job script by bash, next to the student's code, among fake commands that record what is asked.

`srun`, `scontrol`, `python` and the like are one short program, which notes its name and arguments and ends with the
status that the circumstances say. Nothing is trained, no job is submitted, and what the script starts is ended.
"""

import os
import select
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from distlab.labs.plain_data import Plain
from distlab.runtime import processes

SECONDS = 15.0
MOST_PRINTED, MOST_CALLS = 2000, 100
COMMANDS = ["srun", "scontrol", "python", "python3", "sbatch", "scancel", "squeue", "mpirun", "horovodrun", "module"]
COMMANDS += ["sleep", "nvidia-smi"]

# One `printf` per call: what runs in the background at the same time does not mix. For srun two variables are options,
# before those of the call.
_FAKE = """\
#!/bin/sh
if [ "${0##*/}" = srun ]; then
    set -- ${SLURM_KILL_BAD_EXIT:+"--kill-on-bad-exit=$SLURM_KILL_BAD_EXIT"} ${SLURM_WAIT:+"--wait=$SLURM_WAIT"} "$@"
fi
printf '%s\\0' "${0##*/}" "$#" "$@" >> "$FAKE_RECORD"
case "${0##*/}" in srun | python | python3 | mpirun | horovodrun)
    for word in "$@"; do
        case "$word" in *.py)
            while read -r program status; do
                if [ "${word##*/}" = "$program" ]; then exit "$status"; fi
            done < "$FAKE_STATUSES"
            echo "$word: no such file" >&2
            exit 2
        esac
    done
esac
if [ "${0##*/} $1 $2" = "scontrol show hostnames" ]; then printf 'node%s\\n' $FAKE_NODES; fi
exit 0
"""


@dataclass(frozen=True)
class Circumstances:
    """Of one run of a script: its arguments, Slurm's variables, and with which status each program ends."""

    arguments: list[str]
    environment: dict[str, str]
    statuses: dict[str, int]


@dataclass(frozen=True)
class ScriptRun:
    """What a script did: the fake commands that it called, with their arguments; its status; what it printed.

    status: None if it did not end in time.
    """

    calls: list[list[str]]
    status: int | None
    printed: str


class _Started:
    """All processes of the runs: whatever is left in the end is ended.

    Each inherits one end of a pipe, so that a look at the other end says whether one is left. To look for them by their
    mark, among all processes of the machine, takes several times as long as a script.
    """

    def __init__(self) -> None:
        self.mark = processes.new_mark()

    def __enter__(self) -> "_Started":
        self._other, self.held = os.pipe()
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self.held)
        is_left = not select.select([self._other], [], [], 0)[0]
        os.close(self._other)
        if is_left:
            processes.end(self.mark)


class NoBash(Exception):
    """There is no bash on this machine, and the check needs it."""


def run_script(
    namespace: Mapping[str, object], text: str, flags: list[str], runs: list[dict[str, Plain]]
) -> list[dict[str, Plain]]:
    """Run a script once under each of `runs`, the fields of Circumstances; the fields of a ScriptRun for each.

    flags: bash's own, such as -e.  The runs after one that does not end are left out.
    """
    bash = shutil.which("bash", path="/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin")
    if bash is None:
        raise NoBash("there is no bash on this machine, and this check needs it")
    done: list[dict[str, Plain]] = []
    with tempfile.TemporaryDirectory(prefix="distlab-", ignore_cleanup_errors=True) as scratch, _Started() as started:
        programs = Path(scratch, "programs")
        _write_commands(programs)
        for number, circumstances in enumerate(runs):
            folder = Path(scratch, str(number))
            folder.mkdir()
            run = _run(bash, started, programs, folder, text, flags, Circumstances(**circumstances))  # type: ignore[arg-type]
            done.append(asdict(run))
            if run.status is None:
                break
    return done


def _write_commands(folder: Path) -> None:
    folder.mkdir()
    first, *others = (folder / name for name in COMMANDS)
    first.write_text(_FAKE)
    first.chmod(0o755)
    for command in others:
        command.symlink_to(first)


def _run(
    bash: str, started: _Started, programs: Path, folder: Path, text: str, flags: list[str], case: Circumstances
) -> ScriptRun:
    work = folder / "work"
    for place in (work, work / "scaling", work / "saved"):
        place.mkdir()
    (work / "script").write_text(text)
    record, printed = folder / "record", folder / "printed"
    record.touch()
    (folder / "statuses").write_text("".join(f"{name} {code}\n" for name, code in case.statuses.items()))
    environment = case.environment | {
        "PATH": f"{programs}:/usr/bin:/bin",
        "HOME": str(work),
        "FAKE_RECORD": str(record),
        "FAKE_STATUSES": str(folder / "statuses"),
        "FAKE_NODES": " ".join(map(str, range(1, int(case.environment["SLURM_NNODES"]) + 1))),
        "SLURM_SUBMIT_DIR": str(work),
    }
    # Of output 4 MiB, of computing one second: a loop without end fills neither disk nor time.
    limited = 'ulimit -f 4096 -t 1; exec "$0" "$@"'
    command = [bash, "-c", limited, bash, *flags, "script", *case.arguments]
    with printed.open("w") as output:
        process = processes.start(
            command,
            started.mark,
            env=environment,
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=[started.held],
        )
        try:
            code = process.wait(SECONDS)
            status = None if code < 0 else code  # below 0: one of the limits has ended it
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            status = None
    return ScriptRun(_calls(record), status, printed.read_text(errors="replace")[:MOST_PRINTED])


def _calls(record: Path) -> list[list[str]]:
    """Each call of a fake command: its name and its arguments."""
    words = record.read_text(errors="replace").split("\0")[:-1]
    calls: list[list[str]] = []
    while len(words) > 1 and len(calls) < MOST_CALLS:
        count = int(words[1]) if words[1].isdigit() else 0
        calls.append([words[0], *words[2 : 2 + count]])
        words = words[2 + count :]
    return calls
