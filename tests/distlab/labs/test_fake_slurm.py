"""The fake Slurm reads options, starts steps and ends jobs as a real one did."""

from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from distlab.labs import OwnAnswer, fake_slurm
from distlab.labs.fake_slurm import BatchJob, Circumstances, Refused, Script, WrongScript, run_script
from tests.distlab.cluster.cluster_bench import until
from tests.distlab.labs.solutions import namespace_of

PROGRAMS = Path(__file__).parents[3] / "notebooks/programs/15_clusters/slurm"


def job_of(options: str) -> BatchJob:
    return BatchJob(f"#!/bin/bash\n#SBATCH {options}\ntrue\n")


def runs_of(body: str, count: int = 1) -> list[fake_slurm.ScriptRun]:
    case = Circumstances(["one", "two words"], {"SLURM_NNODES": "2"}, {"train.py": 3})
    return run_script({}, f"#!/bin/bash\n{body}\n", [], [case] * count)


@pytest.mark.parametrize("script", sorted(PROGRAMS.glob("*.sbatch")), ids=lambda path: path.stem)
def test_the_scripts_of_the_chapter_are_accepted(script: Path) -> None:
    job = BatchJob(script.read_text())
    assert (job.name, job.interpreter) == (script.stem.replace("_", "-"), ["/bin/bash"])


def test_times_and_names_of_logs_are_read_as_the_manual_says() -> None:
    times = {"90": 5400, "90:30": 5430, "1:30:00": 5400, "1-6:30": 109_800, "0-1:30:05": 5405}
    assert {text: job_of(f"--time={text}").seconds for text in times} == times
    logs = {"%x-%j.out": "job-17.out", "%5j%%": "00017%", "%u/%q": "student/%q"}
    assert {pattern: job_of(f"-J job -o {pattern}").log(17) for pattern in logs} == logs
    job = job_of("--array=0-6:3%2")
    assert (job.array, job.at_once) == ([0, 3, 6], 2)
    assert [job.log(20, task) for task in job.array] == ["slurm-20_0.out", "slurm-20_3.out", "slurm-20_6.out"]


def test_bash_runs_the_script_and_commands_are_recorded() -> None:
    (run,) = runs_of('for size in 1 2; do srun -n $size bash -c "python train.py" "$2"; done\nexit $?')
    calls = [["srun", "-n", size, "bash", "-c", "python train.py", "two words"] for size in ("1", "2")]
    assert (run.calls, run.status, run.printed) == (calls, 3, "")


@pytest.mark.slow
@pytest.mark.parametrize("body", ["while true; do :; done", "(/bin/sleep 1000; :) & wait", "yes"])
def test_a_script_that_does_not_end_is_stopped(body: str) -> None:
    runs = runs_of(body, 2)
    assert [run.status for run in runs] == [None]
    assert all(len(run.printed) <= fake_slurm.MOST_PRINTED for run in runs)


@pytest.mark.slow
def test_nothing_that_a_script_starts_survives() -> None:
    (run,) = runs_of("/bin/sleep 1000 > /dev/null 2>&1 &\necho $!\nexit 0")
    assert run.status == 0
    until(lambda: not psutil.pid_exists(int(run.printed)), "what it left in the background still runs")


# What a real one said: Slurm 22.05 with nine nodes of 64 cores, and jobs of at most 24 hours --------------------------

ACCEPTED = [
    *("--ntasks-per-n=2 --nodes 2", "-N2 -t5", "--nodes=2-4", "--nodes=2 # comment", "--", "-J 'a b'", "--exclusive"),
    *("--tasks-per-node=2 --nodes=2", "--cpus-per-task=3", "--ntasks=2 --nodes=4"),
    *(f"--time={time}" for time in ("90", "90:00", "1:30:00")),
    *(f"--signal={name}" for name in ("USR1@60", "USR1", "usr1@60", "10@60", "B:USR1@60")),
    *(f"--array={tasks}" for tasks in ("1-4%2", "1,2,4,8%1", "0-7:2", "1-4%x")),
    *("--gpus-per-node=8 --mem=400G --account=me", "--gres=gpu:8 --mem=400GB", "-G16 -N2 --mem-per-gpu=50G"),
]
REFUSED = [
    *("--nodess=2", "--node=2", "nodes=2", "--nodes=2 foo", "--nodes = 2", "--nodes=two", "--nodes=10", "-Nx", "-z"),
    *("--job-name", "--tasks-per-nodes=2", "--label", "--kill-on-bad-exit=1", "--ntasks-per-node=two"),
    "-N4 -n6 --ntasks-per-node=1",
    *(f"--time={time}" for time in ("1-1:30", "1.5", "1h", "0", "-1", "''", "25:00:00")),
    *("--signal=USR3@60", "--signal=USR1:60"),
    *(f"--array={tasks}" for tasks in ("4-1", "x", "1-", "1-1001", "1, 2")),
]
REFUSED_TEXTS = [
    *("echo hi\n", "\n#!/bin/bash\n", "#!/bin/bash\r\necho\r\n", "#! /bin/bash\n#SBATCH --nodes=99\n"),
    "#!/bin/bash\n# c\n\n  \n#SBATCH -N99\n",
]
# Tasks and nodes of a step in a job with --nodes=4 --ntasks-per-node=2, and in one with --ntasks=8.
STEPS = {
    **dict.fromkeys(["", "-K1", "--wait 60"], ((8, 4), (8, 1))),
    **{"-n2": ((2, 2), (2, 1)), "-N1": (None, (8, 1)), "--ntasks=4 --nodes=2": ((4, 2), None)},
    **dict.fromkeys(["--nodes=9", "--ntasks=20", "--kill-on-bad-exit=x", "--requeue", "--unknown"], (None, None)),
    **dict.fromkeys(["--wait=x", "--nodes=2 --ntasks-per-node=1", "--label --nt=3"], (None, None)),
}
VARIABLES = {
    **dict.fromkeys(["JOB_ID", "JOBID"], "17"),
    **dict.fromkeys(["JOB_NODELIST", "NODELIST"], "node[1-2]"),
    **dict.fromkeys(["JOB_NUM_NODES", "NNODES", "CPUS_PER_TASK", "NTASKS_PER_NODE"], "2"),
    **dict.fromkeys(["NTASKS", "NPROCS", "CPUS_ON_NODE"], "4"),
    **dict.fromkeys(["PROCID", "NODEID", "LOCALID"], "0"),
    **{"JOB_NAME": "ask", "JOB_PARTITION": "lab", "JOB_CPUS_PER_NODE": "4(x2)", "TASKS_PER_NODE": "2(x2)"},
}


@pytest.fixture
def as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"MOST_NODES": 9, "CPUS_PER_NODE": 64, "LONGEST": 24 * 3600}.items():
        monkeypatch.setattr(fake_slurm, name, value)


@pytest.mark.usefixtures("as_large")
def test_it_accepts_and_refuses_the_same_scripts() -> None:
    BatchJob("#!/bin/bash\n# SBATCH --nodes=99\n")
    for options in ACCEPTED:
        job_of(options)
    for text in [*REFUSED_TEXTS, *(f"#!/bin/bash\n#SBATCH {options}\ntrue\n" for options in REFUSED)]:
        with pytest.raises((Refused, WrongScript)):
            BatchJob(text)


@pytest.mark.usefixtures("as_large")
@pytest.mark.parametrize("options", STEPS)
def test_srun_starts_as_many_tasks_on_as_many_nodes(options: str) -> None:
    for header, expected in zip(["--nodes=4 --ntasks-per-node=2", "--ntasks=8"], STEPS[options], strict=True):
        found = None
        with suppress(Refused):
            step = fake_slurm.step([*options.split(), "hostname"], job_of(header))
            found = (step.tasks, step.nodes) if step.name == "hostname" else None
        assert found == expected, header


def test_a_script_finds_the_same_variables() -> None:
    job = job_of("--job-name=ask --nodes=2 --tasks-per-node=2 --cpus-per-task=2")
    assert job.environment(17) == {f"SLURM_{name}": value for name, value in VARIABLES.items()}


# What is left out of lab 15's `batch`, the program that fails, what is started, and the script's status.
PREPARE, TRAIN, EVALUATE = ("prepare.py", 1), ("train.py", 8), ("evaluate.py", 1)
RUNS = [
    ("", "none", [PREPARE, TRAIN, EVALUATE], 0),
    ("", "train.py", [PREPARE, TRAIN], 3),
    ("set -e\n", "prepare.py", [PREPARE, TRAIN, EVALUATE], 0),
    ("srun --kill-on-bad-exit=1 ", "train.py", [PREPARE, ("train.py", 1)], 3),
]


@pytest.mark.parametrize(("left_out", "failing", "started", "status"), RUNS)
def test_a_batch_job_runs_and_ends_alike(
    left_out: str, failing: str, started: list[tuple[str, int]], status: int
) -> None:
    script = Script(namespace_of("15", solved=True)["batch"].replace(left_out, ""), "batch")
    statuses = {name: 3 * (name == failing) for name, _ in (PREPARE, TRAIN, EVALUATE)}
    (run,) = script.attempts(OwnAnswer({}), [Circumstances(["--data", "set 1"], script.environment(17), statuses)])
    assert ([(program.name, program.tasks) for program in run.programs], run.status) == (started, status)
