"""The fake Slurm reads options, starts steps and ends jobs as a real one does, on a cluster of this machine."""

import os
import shlex
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from distlab import cluster
from distlab.labs import OwnAnswer, fake_slurm
from distlab.labs.fake_slurm import BatchJob, Circumstances, Refused, Script, WrongScript, run_script
from distlab.runtime import processes
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER, lines_of_ranks, until
from tests.distlab.labs.solutions import namespace_of

PROGRAMS = Path(__file__).parents[3] / "notebooks/programs/15_clusters/slurm"
NODES = 9


def job_of(options: str) -> BatchJob:
    return BatchJob(f"#!/bin/bash\n#SBATCH {options}\ntrue\n")


def runs_of(body: str, count: int = 1) -> list[fake_slurm.ScriptRun]:
    case = Circumstances(["one", "two words"], {"SLURM_NNODES": "2"}, {"train.py": 3})
    return run_script({}, f"#!/bin/bash\n{body}\n", [], [case] * count)


# Without a cluster ---------------------------------------------------------------------------------------------------


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


# Next to a real one --------------------------------------------------------------------------------------------------

OPTIONS = [
    *("--nodess=2", "--node=2", "--ntasks-per-n=2 --nodes 2", "-N2 -t5", "nodes=2", "--nodes=2 foo", "--nodes=2-4"),
    *("--nodes=2 # comment", "--nodes = 2", "--nodes=two", "--nodes=10", "-Nx", "-z", "--", "--job-name", "-J 'a b'"),
    *("--tasks-per-node=2 --nodes=2", "--tasks-per-nodes=2", "--exclusive", "--label", "--kill-on-bad-exit=1"),
    *("--cpus-per-task=3", "--ntasks-per-node=two", "--ntasks=2 --nodes=4", "-N4 -n6 --ntasks-per-node=1"),
    *(f"--time={time}" for time in ("90", "90:00", "1:30:00", "1-1:30", "1.5", "1h", "0", "-1", "''", "25:00:00")),
    *(f"--signal={name}" for name in ("USR1@60", "USR1", "usr1@60", "10@60", "B:USR1@60", "USR3@60", "USR1:60")),
    *(f"--array={tasks}" for tasks in ("1-4%2", "1,2,4,8%1", "0-7:2", "4-1", "x", "1-", "1-1001", "1, 2", "1-4%x")),
    *("--gpus-per-node=8 --mem=400G --account=me", "--gres=gpu:8 --mem=400GB", "-G16 -N2 --mem-per-gpu=50G"),
]
TEXTS = [
    *("echo hi\n", "\n#!/bin/bash\n", "#!/bin/bash\r\necho\r\n", "#! /bin/bash\n#SBATCH --nodes=99\n"),
    *("#!/bin/bash\n# SBATCH --nodes=99\n", "#!/bin/bash\n# c\n\n  \n#SBATCH -N99\n"),
]
STEPS = [
    *("", "-N1", "-n2", "--ntasks=4 --nodes=2", "--nodes=9", "--ntasks=20", "-K1", "--kill-on-bad-exit=x"),
    *("--requeue", "--wait 60", "--nodes=2 --ntasks-per-node=1", "--unknown", "--label --nt=3", "--wait=x"),
]
PROGRAM = """\
import os, pathlib, sys
name = pathlib.Path(sys.argv[0]).name
task = os.environ.get("SLURM_STEP_ID", "") and os.environ["SLURM_PROCID"]
pathlib.Path(f"did-{name}-{task}").write_text("\\0".join(sys.argv[1:]))
sys.exit(3 if open("failing").read() == name else 0)
"""
SOLVED = namespace_of("15", solved=True)
BATCH = SOLVED["batch"]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[cluster.Cluster]:
    mark = processes.new_mark()
    with pytest.MonkeyPatch.context() as patch, processes.guarded(mark), processes.marked(mark):
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
        with cluster.up(nodes=NODES) as own:
            yield own


def is_accepted(text: str) -> bool:
    try:
        BatchJob(text)
    except (Refused, WrongScript):
        return False
    return True


@pytest.mark.slow
@NEEDS_CLUSTER
class TestReal:
    @pytest.fixture(autouse=True)
    def as_large_as_the_cluster(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in {"MOST_NODES": NODES, "CPUS_PER_NODE": 64, "LONGEST": 24 * 3600}.items():
            monkeypatch.setattr(fake_slurm, name, value)

    def test_both_accept_and_refuse_the_same_scripts(self, slurm: cluster.Cluster, tmp_path: Path) -> None:
        texts = [f"#!/bin/bash\n#SBATCH {options}\ntrue\n" for options in OPTIONS] + TEXTS
        for number, text in enumerate(texts):
            (tmp_path / f"{number}.sh").write_text(text, newline="")
        line = "sbatch --test-only $number.sh > /dev/null 2>&1; echo $?"
        command = f"cd {shlex.quote(str(tmp_path))}; for number in $(seq 0 {len(texts) - 1}); do {line}; done"
        statuses = slurm.run(["bash", "-c", command]).output.split()
        by_slurm = {text: status == "0" for text, status in zip(texts, statuses, strict=True)}
        assert {text for text in texts if by_slurm[text] != is_accepted(text)} == set()
        assert {*by_slurm.values()} == {True, False}

    @pytest.mark.parametrize("header", ["--nodes=4 --ntasks-per-node=2", "--ntasks=8"])
    def test_srun_starts_as_many_tasks_on_as_many_nodes(
        self, slurm: cluster.Cluster, tmp_path: Path, header: str
    ) -> None:
        lines = [f"srun {options} hostname 2> /dev/null | tr '\\n' ' '; echo" for options in STEPS]
        text = "\n".join(["#!/bin/bash", f"#SBATCH {header}", *lines, ""])
        (tmp_path / "steps.sh").write_text(text)
        output = tmp_path / "steps.out"
        slurm.run(["sbatch", "--wait", f"--output={output}", str(tmp_path / "steps.sh")])
        different = {}
        for options, line in zip(STEPS, output.read_text().splitlines(), strict=True):
            hosts = Counter(word for word in line.split() if word.startswith("node"))
            try:
                step = fake_slurm.step([*options.split(), "hostname"], BatchJob(text))
                expected = (step.tasks, step.nodes) if step.name == "hostname" else (0, 0)
            except Refused:
                expected = (0, 0)
            if (hosts.total(), len(hosts)) != expected:
                different[options] = (hosts, expected)
        assert different == {}

    def test_a_script_finds_the_same_variables(self, slurm: cluster.Cluster, tmp_path: Path) -> None:
        options = f"--job-name=ask --nodes=2 --tasks-per-node=2 --cpus-per-task=2 --output={tmp_path}/%x-%J.out"
        text = f"#!/bin/bash\n#SBATCH {options}\nenv\n"
        (tmp_path / "ask.sh").write_text(text)
        job = slurm.run(["sbatch", "--wait", "--parsable", str(tmp_path / "ask.sh")]).output.split()[0]
        lines = (tmp_path / f"ask-{job}.out").read_text().splitlines()
        by_slurm = dict(line.split("=", 1) for line in lines if "=" in line)
        fake = BatchJob(text).environment(int(job))
        assert {name: by_slurm.get(name) for name in fake} == fake

    def test_every_rank_of_lab_15_sees_the_eight_gpus_of_its_node(self, slurm: cluster.Cluster, tmp_path: Path) -> None:
        (tmp_path / "script").write_text(SOLVED["gpus"])
        ask = 'import os; print(os.environ["CUDA_VISIBLE_DEVICES"], os.environ["SLURM_LOCALID"], flush=True)'
        (tmp_path / "train.py").write_text(ask)
        slurm.run(["sbatch", "--wait", f"--chdir={tmp_path}", "--output=log", str(tmp_path / "script")])
        expected = [f"0,1,2,3,4,5,6,7 {local}" for local in range(8) for _ in range(2)]
        assert lines_of_ranks((tmp_path / "log").read_text()) == expected

    @pytest.mark.parametrize(
        ("left_out", "failing"),
        [("", "none"), ("", "train.py"), ("set -e\n", "prepare.py"), ("srun --kill-on-bad-exit=1 ", "train.py")],
    )
    def test_a_batch_job_runs_and_ends_alike(
        self, slurm: cluster.Cluster, tmp_path: Path, left_out: str, failing: str
    ) -> None:
        text = BATCH.replace(left_out, "")
        for program in ("prepare.py", "train.py", "evaluate.py"):
            (tmp_path / program).write_text(PROGRAM)
        (tmp_path / "failing").write_text(failing)
        (tmp_path / "script").write_text(text)
        send = ["sbatch", "--wait", "--parsable", f"--chdir={tmp_path}", str(tmp_path / "script"), "--data", "set 1"]
        run = slurm.run(send)
        script = Script(text, "script")
        statuses = {name: 3 * (name == failing) for name in ("prepare.py", "train.py", "evaluate.py")}
        circumstances = Circumstances(["--data", "set 1"], script.environment(17), statuses)
        (attempt,) = script.attempts(OwnAnswer({}), [circumstances])
        count: Counter[str] = Counter()
        for program in attempt.programs:
            count[program.name + " by srun" * program.by_srun] += program.tasks
        names = [file.name.split("-")[1:] for file in tmp_path.glob("did-*")]
        by_slurm = Counter(f"{name}{' by srun' if task else ''}" for name, task in names)
        if failing == "train.py" and "train.py by srun" in by_slurm:
            by_slurm["train.py by srun"] = count["train.py by srun"]  # the first may end others before they start
        assert by_slurm == count
        assert (run.status == 0) == (attempt.status == 0)
        assert (tmp_path / f"train-{run.output.split()[0]}.out").exists()
