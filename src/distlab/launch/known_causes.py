"""What a job's output says to those who know the programs that printed it: sentences that follow a launcher's error.

Each function gives one sentence with a blank before it, or "".
"""

import re
import signal
from collections.abc import Sequence

from distlab import devices
from distlab.launch.job import LaunchedRun
from distlab.runtime.other_mpi import other_mpi_fix, other_settings_fix

_NO_INPUT = re.compile(r"^EOFError: EOF when reading a line|^bdb\.BdbQuit", re.MULTILINE)
# What argparse says where `result=True` has added an option to a program that does not know it.
_NO_RESULT = re.compile(r"error: unrecognized arguments: .*--result ")
# What mpirun, Horovod and mpi4py say where the libraries that are loaded are not those that they were built with; and
# what ipyparallel says when the loader has ended mpirun.
_WRONG_LIBRARY = re.compile(r"undefined symbol|symbol lookup error|support has not been built|'exit_code': 127")
# What Open MPI says where it does not start; often only the first of these lines arrives.
_NO_MPI = re.compile(r"ORTE_ERROR_LOG|orte_init failed|in MPI_Init|cannot be selected|out-of-band communications")
# What srun says where it finds no controller.
_SLURM_IS_AWAY = re.compile("fetch config|ClusterName|SLURM_CONF|contact slurm controller|Connection refused")
# What horovodrun says when an elastic job has waited for hosts; the braces are Horovod's.
_NO_SLOTS = re.compile(r"TimeoutException: Timed out waiting for \{activity\}")
# What Gloo says where the machine's own name leads to an address of no interface of it, with its last attempt.
_NO_OWN_ADDRESS = re.compile(r"Unable to find address for (\S+); bind\(2\) for \[(\S+)\] failed")
# What Open MPI says where it has no folder for its temporary files.
_NO_FOLDER = re.compile(r"  Directory: +(.+)\n +Error: +(.+)\n\s*Please check to ensure you have adequate permissions")
# What Slurm says when `scancel` ends a job or a step, and not a limit or a failed node.
_CANCELLED = re.compile(r"\*\*\* (?:JOB|STEP) \S+ ON \S+ CANCELLED AT \S+ \*\*\*")
# What a worker of TensorFlow says whose sign of life takes too long, although its connection is there.
_LATE_HEARTBEAT = re.compile(r"Deadline Exceeded\s+RPC: /tensorflow\.CoordinationService/Heartbeat")

# What Python says of a program at a line that git has left in a file that it could not merge.
_NOT_MERGED = re.compile(r'File "([^"\n]+)", line \d+\n\s*(?:<{7}|={7}|>{7})(?: .*)?\n(?:[ ^]+\n)?SyntaxError')


def of_no_start(starter: str, reason: str) -> str:
    """Why the command `starter` could not start the ranks, by the `reason` that it gave."""
    if starter == "srun" and _SLURM_IS_AWAY.search(reason):
        return (
            " No Slurm answers here: use a login node of a cluster, or put 'distlab cluster run --' in front for that "
            "of this machine; 'distlab cluster up' starts it, and 'distlab cluster status' says more of one that runs."
        )
    return of_machine(reason) or of_other_mpi(reason)


def of_machine(output: str) -> str:
    """Whether the machine where `output` was printed lacks what Gloo or Open MPI needs there."""
    if match := _NO_OWN_ADDRESS.search(output):
        name, address = match.groups()
        return (
            f" The name {name} leads to {address}, an address that the machine {name} does not have: correct that line "
            "of its /etc/hosts, or the network's name service."
        )
    if match := _NO_FOLDER.search(output):
        folder, reason = match.groups()
        return (
            f" Open MPI cannot make {folder} for its temporary files ({reason}): set TMPDIR to a folder that can be "
            "written to."
        )
    return ""


def in_a_line(output: str, fix: str) -> tuple[str, str]:
    """Why the process that printed `output` failed, by a cause of `of_machine` or by its last line, and the fix.

    `fix` is what to do where only the last line is known.
    """
    state, _, known_fix = of_machine(output).strip(" .").partition(": ")
    # Of the lines with words: mpirun frames what it says by lines of dashes.
    last = next((line.strip() for line in reversed(output.splitlines()) if re.search(r"\w", line)), "")
    return (state, known_fix) if state else (last, fix)


def of_other_mpi(output: str) -> str:
    """Whether the process that printed `output` was led to the libraries of another MPI, or got settings for one."""
    if _WRONG_LIBRARY.search(output) and (fix := other_mpi_fix()):
        return f" {fix}, then repeat the command."
    if _NO_MPI.search(output) and (fix := other_settings_fix()):
        return f" {fix[0].upper()}{fix[1:]}, then repeat the command."
    return ""


def of_failure(run: LaunchedRun, name: str, starter: str) -> str:
    """Why the process `name` failed; the command `starter` may say more of it where it has no traceback itself."""
    output = run.output.get(name, "")
    if _NO_INPUT.search(output):
        return (
            " The processes of a job have no standard input: give the program its answers as arguments, and look for "
            "its mistakes without input() and breakpoint()."
        )
    if _NO_RESULT.search(output):
        return (
            " result=True adds --result FILE to the program's arguments: let the program take that option and write "
            "JSON to the file, or leave result= out."
        )
    if match := _NOT_MERGED.search(output):
        file = match[1]
        return (
            f" {file} has the marks of a merge that git could not finish: edit it, or get the course's version back, "
            f"by `git checkout HEAD {file}` or, in your copy, by `distlab lab --fresh` with the chapter's number."
        )
    if run.exit_codes.get(name) in (-signal.SIGTERM, 128 + signal.SIGTERM) and _CANCELLED.search(
        run.output.get(starter, "")
    ):
        return " Slurm's job was cancelled, as by scancel."
    if _LATE_HEARTBEAT.search(output):
        return (
            " A sign of life of TensorFlow's workers took too long: a host's connection is much too slow, or a worker "
            "stood still. `distlab cluster status` shows the links of a cluster on this machine."
        )
    # Of any process: an elastic job goes on without the ranks that could not start.
    if cause := of_machine("\n".join(run.output.values())):
        return cause
    if _NO_SLOTS.search(output):
        return (
            " The host-discovery script offered fewer slots than the job needs, for as long as --elastic-timeout says: "
            "see what the script prints."
        )
    said = output if "Traceback (most" in output else f"{output}\n{run.output.get(starter, '')}"
    return of_other_mpi(said) or ("" if name in run.hosts else _of_limit(run, name))


def _of_limit(run: LaunchedRun, name: str) -> str:
    """Whether the shell's limit of processor time can have ended the process `name` of this machine."""
    status = run.exit_codes[name]
    limit = devices.allowed_seconds(hard=status == -signal.SIGKILL)
    if status not in (-signal.SIGKILL, -signal.SIGXCPU) or limit > run.seconds * devices.cores() + 1:
        return ""
    return (
        f" {name} has used up the {limit:.0f} s of processor time that the shell allows a program (ulimit -t): run "
        "`ulimit -t unlimited`, or open a shell without this limit."
    )


def of_waiting(starter: str, running: Sequence[str]) -> str:
    """Why the ranks that still run at the deadline may wait for each other."""
    if starter == "mpirun" and len(running) > 1:
        return " A rank of MPI that has finished early counts as running: it waits for the others in MPI_Finalize."
    return ""
