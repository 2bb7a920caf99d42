"""Lab 15's fake Slurm reads options, starts steps and ends jobs as a real one does, on a cluster of this machine."""

import os
import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_15 import fake_slurm
from lab_15.observe import Circumstances
from lab_15.scripts import Script
from lab_15.slurm_options import Refused
from lab_15_tests.answers_15_scripts import ARRAY, BATCH, BY_LIST, LONG

from distlab import cluster
from distlab.labs import OwnAnswer
from distlab.runtime import processes
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER, until

pytestmark = [pytest.mark.slow, NEEDS_CLUSTER]

NODES = 9
OPTIONS = [
    *("--nodess=2", "--node=2", "--nodel=node1", "--ntasks-per-n=2 --nodes 2", "-N2 -t5", "nodes=2", "--nodes=2 foo"),
    *("--nodes=2 # comment", "--nodes=2#3", "--nodes = 2", "--nodes=two", "--nodes=10", "--nodes=2-4", "-N 2 -N 99"),
    *("-Nx", "-z", "--", "-- --nodes=2", "--requeue=1", "--requeue --no-requeue", "--job-name", "-J 'a b'"),
    *("--tasks-per-node=2 --nodes=2", "--tasks-per-nod=2", "--tasks-per-node=two", "--tasks-per-nodes=2"),
    *("--exclusive", "--exclusive=user", "--label", "--kill-on-bad-exit=1", "--cpus-per-task=3", "--ntasks-per-node=3"),
    *(
        "--ntasks-per-node=two",
        "--ntasks=8 --nodes=4",
        "--ntasks=2 --nodes=4",
        "--nodes=4 --ntasks=6 --ntasks-per-node=1",
    ),
    *(f"--time={time}" for time in ("90", "90:00", "1:30:00", "1-0", "1-1:30", "0-1:30:00", "1.5", "1h", "90m", "0")),
    *(f"--time={time}" for time in ("-1", "UNLIMITED", "''", "1:2:3:4", "1-2-3", "25:00:00", "00:90:00", "1:75")),
    *(f"--signal={name}" for name in ("USR1@60", "USR1", "SIGUSR1@60", "usr1@60", "10@60", "B:USR1@60", "R:USR1@60")),
    *(f"--signal={name}" for name in ("USR3@60", "USR1@x", "USR1@70000", "USR1@-1", "USR1:60", "@60", "'USR1 @60'")),
    *(f"--array={tasks}" for tasks in ("1-4%2", "1,2,4,8%1", "0-7:2", "4-1", "x", "1-", "-1", "1-1000", "1-1001", "0")),
    *(f"--array={tasks}" for tasks in ("1-2,2-3", "[1-4]", "1, 2", "1-4%0", "1-4%x", "1-4%")),
]
TEXTS = [
    *("echo hi\n", "\n#!/bin/bash\n", "#!/bin/bash\r\necho\r\n", "#! /bin/bash\n#SBATCH --nodes=99\n", "#!/bin/bash\n"),
    *("#!/bin/bash\n #SBATCH --nodes=99\n", "#!/bin/bash\n# SBATCH --nodes=99\n", "#!/bin/bash\n#SBATCH--nodes=99\n"),
    *("#!/bin/bash\n##SBATCH -N99\n", "#!/bin/bash\n# c\n\n  \n#SBATCH -N99\n", "#!/bin/bash\nset -e\n#SBATCH -N99\n"),
]
HEADERS = ["--nodes=4 --ntasks-per-node=2", "--nodes=4 --ntasks-per-node=1", "--nodes=4", "--ntasks=8"]
STEPS = [
    *("", "-N1", "--nodes=1 --ntasks=1", "-n2", "--ntasks=4 --nodes=2", "--nodes=9", "--ntasks=20", "-K", "-K1", "-l0"),
    *("--kill-on-bad-exit", "--kill-on-bad-exit=x", "--kill-on-bad-exit 1", "--requeue", "--wait 60", "-W60"),
    *("--nodes=2 --ntasks-per-node=1", "--unknown", "--label --nt=3", "--wait=x", "--wait=0"),
]
PROGRAM = """\
import os, pathlib, sys
name = pathlib.Path(sys.argv[0]).name
task = os.environ.get("SLURM_STEP_ID", "") and os.environ["SLURM_PROCID"]
job = os.environ["SLURM_JOB_ID"]
attempt = os.environ.get("SLURM_RESTART_COUNT", "0")
pathlib.Path(f"did-{job}-{attempt}-{name}-{task}").write_text("\\0".join(sys.argv[1:]))
statuses = dict(line.split() for line in open("statuses"))
key = f"{name}-{attempt}"
if os.environ.get("SLURM_ARRAY_TASK_ID", "") == statuses.get("fails", "none"):
    sys.exit(3)
sys.exit(int(statuses.get(key, 0)))
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[cluster.Cluster]:
    mark = processes.new_mark()
    with pytest.MonkeyPatch.context() as patch, processes.guarded(mark), processes.marked(mark):
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
        with cluster.up(nodes=NODES) as own:
            yield own


@pytest.fixture(autouse=True)
def as_large_as_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_slurm, "MOST_NODES", NODES)
    monkeypatch.setattr(fake_slurm, "CPUS_PER_NODE", 2)
    monkeypatch.setattr(fake_slurm, "LONGEST", 24 * 3600)


def is_accepted(text: str) -> bool:
    try:
        fake_slurm.submitted(text)
    except Refused:
        return False
    return True


def test_both_accept_and_refuse_the_same_scripts(slurm: cluster.Cluster, tmp_path: Path) -> None:
    texts = [f"#!/bin/bash\n#SBATCH {options}\ntrue\n" for options in OPTIONS] + TEXTS
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.sh").write_text(text, newline="")
    line = "sbatch --test-only $number.sh > /dev/null 2>&1; echo $?"
    command = f"cd {shlex.quote(str(tmp_path))}; for number in $(seq 0 {len(texts) - 1}); do {line}; done"
    statuses = slurm.run(["bash", "-c", command]).output.split()
    real = {text: status == "0" for text, status in zip(texts, statuses, strict=True)}
    assert {text for text in texts if real[text] != is_accepted(text)} == set()
    assert {*real.values()} == {True, False}


@pytest.mark.long
@pytest.mark.parametrize("header", HEADERS)
def test_srun_starts_as_many_tasks_on_as_many_nodes(slurm: cluster.Cluster, tmp_path: Path, header: str) -> None:
    lines = [f"srun {options} hostname 2> /dev/null | tr '\\n' ' '; echo" for options in STEPS]
    text = "\n".join(["#!/bin/bash", f"#SBATCH {header}", *lines, ""])
    (tmp_path / "steps.sh").write_text(text)
    output = tmp_path / "steps.out"
    slurm.run(["sbatch", "--wait", f"--output={output}", str(tmp_path / "steps.sh")])
    job = fake_slurm.submitted(text)
    different = {}
    for options, line in zip(STEPS, output.read_text().splitlines(), strict=True):
        hosts = Counter(word for word in line.split() if word.startswith("node"))
        try:
            step = fake_slurm.step([*options.split(), "hostname"], job)
            expected = (step.tasks, step.nodes) if step.program == ["hostname"] else (0, 0)
        except Refused:
            expected = (0, 0)
        if (hosts.total(), len(hosts)) != expected:
            different[options] = (hosts, expected)
    assert different == {}


@pytest.mark.parametrize("options", ["--nodes=2 --tasks-per-node=2", "--nodes=1 --ntasks-per-node=1 --cpus-per-task=2"])
def test_a_script_finds_the_same_variables(slurm: cluster.Cluster, tmp_path: Path, options: str) -> None:
    text = f"#!/bin/bash\n#SBATCH --job-name=ask {options}\n#SBATCH --output={tmp_path}/%x-%J.out\nenv\n"
    (tmp_path / "ask.sh").write_text(text)
    job = slurm.run(["sbatch", "--wait", "--parsable", str(tmp_path / "ask.sh")]).output.split()[0]
    real = dict(line.split("=", 1) for line in (tmp_path / f"ask-{job}.out").read_text().splitlines() if "=" in line)
    fake = fake_slurm.submitted(text).environment(int(job))
    ours = {"SLURM_CLUSTER_NAME", "SLURM_JOB_USER"}
    assert {name: real.get(name) for name in fake if name not in ours} == {
        name: value for name, value in fake.items() if name not in ours
    }
    assert ours <= set(real)


@pytest.mark.long
@pytest.mark.parametrize(
    ("setting", "seconds", "status"), [("SLURM_WAIT=1", 120, 137), ("SLURM_KILL_BAD_EXIT=1", 120, 143), ("A=1", 6, 85)]
)
def test_variables_of_srun_end_the_other_rank(
    slurm: cluster.Cluster, tmp_path: Path, setting: str, seconds: int, status: int
) -> None:
    rank = f"if [ $SLURM_PROCID = 1 ]; then sleep {seconds}; fi; exit 85"
    text = (
        f"#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=1\nexport {setting}\nsrun bash -c '{rank}'\necho status $?\n"
    )
    (tmp_path / "step.sh").write_text(text)
    output = tmp_path / "step.out"
    slurm.run(["sbatch", "--wait", f"--output={output}", str(tmp_path / "step.sh")])
    assert output.read_text().splitlines()[-1] == f"status {status}"


def real_programs(folder: Path, job: str, attempt: int = 0) -> Counter[str]:
    """How often each program ran in a job, and whether srun had started it."""
    return Counter(
        f"{match[1]}{' by srun' if match[2] else ''}"
        for file in folder.glob(f"did-{job}-{attempt}-*")
        if (match := re.fullmatch(r"did-\d+-\d+-(.*\.py)-(\d*)", file.name))
    )


def fake_programs(text: str, name: str, statuses: dict[str, int], task: int | None = None) -> tuple[Counter[str], int]:
    """The same by the fake, and the script's status."""
    answer = OwnAnswer({name: text})
    script = Script.of(answer, name)
    circumstances = Circumstances(["--data", "set 1"], script.job.environment(17, 0, task), statuses)
    (attempt,) = script.attempts(answer, [circumstances])
    count: Counter[str] = Counter()
    for program in attempt.programs:
        count[program.name + " by srun" * program.by_srun] += program.tasks
    return count, attempt.status


def submitted(slurm: cluster.Cluster, folder: Path, text: str, statuses: dict[str, object]) -> str:
    """The number of a job of this script, in a folder with its programs."""
    for program in ("prepare.py", "train.py", "evaluate.py"):
        (folder / program).write_text(PROGRAM)
    (folder / "scaling").mkdir()
    (folder / "statuses").write_text("".join(f"{key} {value}\n" for key, value in statuses.items()))
    (folder / "script").write_text(text)
    run = slurm.run(["sbatch", "--parsable", f"--chdir={folder}", str(folder / "script"), "--data", "set 1"])
    assert run.status == 0, run.output
    return run.output.strip()


def states(slurm: cluster.Cluster, job: str) -> list[str]:
    ended = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"}
    shown: list[str] = []

    def are_over() -> bool:
        shown[:] = re.findall(r"JobState=(\w+)", slurm.run(["scontrol", "show", "job", job]).output)
        return set(shown) <= ended

    until(are_over, f"job {job} has not ended")
    return shown


@pytest.mark.parametrize("failing", ["none", "prepare.py", "train.py", "evaluate.py"])
@pytest.mark.parametrize(
    "text",
    [
        BATCH,
        BATCH.replace("set -e\n", ""),
        BATCH.replace("srun --kill-on-bad-exit=1 ", ""),
    ],
    ids=["solution", "without set -e", "without srun"],
)
def test_a_batch_job_runs_and_ends_alike(slurm: cluster.Cluster, tmp_path: Path, text: str, failing: str) -> None:
    job = submitted(slurm, tmp_path, text, {f"{failing}-0": 3})
    (state,) = states(slurm, job)
    statuses = dict.fromkeys(("prepare.py", "train.py", "evaluate.py"), 0)
    count, status = fake_programs(text, "batch", statuses | ({failing: 3} if failing in statuses else {}))
    real = real_programs(tmp_path, job)
    if failing == "train.py" and "train.py by srun" in real:  # the first that fails may end others before they start
        real["train.py by srun"] = count["train.py by srun"]
    assert real == count
    assert state == ("COMPLETED" if status == 0 else "FAILED")
    assert (tmp_path / f"train-{job}.out").exists()


@pytest.mark.parametrize("text", [ARRAY, BY_LIST], ids=["by size", "by place"])
def test_the_tasks_of_an_array_run_and_one_fails_alone(slurm: cluster.Cluster, tmp_path: Path, text: str) -> None:
    tasks = fake_slurm.submitted(text).array
    job = submitted(slurm, tmp_path, text, {"fails": tasks[1]})
    real = sorted(states(slurm, job))
    fake = [fake_programs(text, "array", {"train.py": 3 * (task == tasks[1])}, task) for task in tasks]
    assert real == sorted("FAILED" if status else "COMPLETED" for _, status in fake) == ["COMPLETED"] * 3 + ["FAILED"]
    assert {file.name for file in tmp_path.glob("*.out")} == {f"scaling-{job}-{task}.out" for task in tasks}
    sizes = Counter(file.read_text().split("\0")[-1] for file in tmp_path.glob("did-*"))
    expected = {f"scaling/{size}.json": size for size in (1, 2, 4, 8)}
    assert {result: sizes[result] for result in expected if result != "scaling/2.json"} == {
        result: size for result, size in expected.items() if size != 2
    }


@pytest.mark.long
def test_a_long_job_goes_on_after_85_and_ends_with_the_status_of_its_program(
    slurm: cluster.Cluster, tmp_path: Path
) -> None:
    job = submitted(slurm, tmp_path, LONG, {"train.py-0": 85, "train.py-1": 7})
    until(lambda: real_programs(tmp_path, job, attempt=1).total() == 2, "no second attempt")
    (state,) = states(slurm, job)
    assert "srun: error" in (tmp_path / f"long-{job}.out").read_text()
    show = slurm.run(["scontrol", "show", "job", job]).output
    assert (state, "ExitCode=7:0" in show, "Restarts=1" in show) == ("FAILED", True, True)
    count, status = fake_programs(LONG, "long", {"train.py": 7})
    assert (real_programs(tmp_path, job, attempt=1), status) == (count, 7)
