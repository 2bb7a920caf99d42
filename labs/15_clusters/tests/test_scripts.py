"""Lab 15's fake Slurm and what it accepts; `test_fake_slurm.py` compares it with the real one."""

import re
from pathlib import Path

import psutil
import pytest
from lab_15 import fake_slurm, lab, observe
from lab_15.slurm_options import Refused
from lab_15_tests.answers_15_scripts import ARRAY, BATCH, LONG

from distlab.labs import OwnAnswer
from distlab.runtime import processes
from tests.distlab.labs.known_wrong import verdict_on

LAB = lab.LAB
ROOT = Path(__file__).parents[3]
SCRIPTS = {"batch": BATCH, "array": ARRAY, "long": LONG}
CIRCUMSTANCES = observe.Circumstances([], {"SLURM_NNODES": "2"}, {"train.py": 0})


def changes(script: str) -> dict[str, str]:
    """The script without one line, or with one number changed, or with one word left out, by what was done."""
    lines = script.splitlines(keepends=True)
    changed = {}
    for place, line in enumerate(lines):
        rest = lines[:place], lines[place + 1 :]
        if line.strip():
            changed[f"without {line.strip()}"] = "".join([*rest[0], *rest[1]])
        for match in re.finditer(r"\d+", line):
            number = str(int(match[0]) + 1).zfill(len(match[0]))
            text = line[: match.start()] + number + line[match.end() :]
            changed[f"{text.strip()}"] = "".join([*rest[0], text, *rest[1]])
        for match in re.finditer(r" \S+", line):
            text = line[: match.start()] + line[match.end() :]
            changed.setdefault(f"{text.strip()} without{match[0]}", "".join([*rest[0], text, *rest[1]]))
    return changed


# Each of these does the same, or what the text allows.
EQUIVALENT = {
    "batch": {'srun --kill-on-bad-exit=2 python train.py "$@"'},  # all but 0 is yes
    "array": {
        # One task per node is what srun gives without it; names of jobs and logs are free here.
        "without #SBATCH --job-name=scaling",
        "#SBATCH without --job-name=scaling",
        "without #SBATCH --ntasks-per-node=1",
        "#SBATCH without --ntasks-per-node=1",
        "without #SBATCH --output=%x-%A-%a.out",
        "#SBATCH without --output=%x-%A-%a.out",
        # srun distributes tasks over nodes one by one, and is the last command.
        "srun --ntasks=$nodes --kill-on-bad-exit=1 python train.py --result scaling/$nodes.json without --nodes=$nodes",
        "without set -e",
        "set without -e",
        "srun --nodes=$nodes --ntasks=$nodes --kill-on-bad-exit=2 python train.py --result scaling/$nodes.json",
    },
    "long": {
        "without #SBATCH --ntasks-per-node=1",
        "#SBATCH without --ntasks-per-node=1",
        "without status=0",  # nothing is not 85, and `exit` without a number gives 0 here
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("exercise", SCRIPTS)
def test_a_script_with_one_line_or_number_changed_is_rejected(exercise: str) -> None:
    accepted = {
        change
        for change, text in changes(SCRIPTS[exercise]).items()
        if verdict_on(LAB, exercise, {exercise: text}).is_right
    }
    assert accepted == EQUIVALENT[exercise]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("exercise", "before", "after"),
    [
        ("batch", "#SBATCH --time", "# SBATCH --time"),
        ("batch", "python evaluate.py\n", "python evaluate.py || true\n"),
        ("batch", "-exit=1", "-exit=0"),
        ("array", ".json\n", ".json || true\n"),
        ("array", "set -e\n", "set +e\ntrap 'exit 0' EXIT\n"),
        ("array", "$SLURM_ARRAY_TASK_ID", "$SLURM_JOB_NUM_NODES"),
        ("long", '"$@"', "$*"),
        ("long", "status=0\n", "status=0\nexport SLURM_KILL_BAD_EXIT=1\n"),
        ("long", "--requeue\n", "--no-requeue\n"),
        ("long", "--open-mode=append", "--open-mode=truncate"),
        ("long", "-eq 85", "-ne 85"),
        ("long", "-eq 85", "-eq 84"),
        ("long", "=USR1", "=USR3"),
        ("long", "status=0\n", "set -e\ntrap 'exit 0' EXIT\nstatus=0\n"),
    ],
)
def test_other_wrong_scripts_are_rejected(exercise: str, before: str, after: str) -> None:
    changed = SCRIPTS[exercise].replace(before, after)
    assert changed != SCRIPTS[exercise]
    assert not verdict_on(LAB, exercise, {exercise: changed}).is_right


@pytest.mark.parametrize(
    "script",
    sorted((ROOT / "notebooks/programs/15_clusters/slurm").glob("*.sbatch")),
    ids=lambda path: path.stem,
)
def test_the_scripts_of_the_chapter_are_accepted(script: Path) -> None:
    job = fake_slurm.submitted(script.read_text())
    assert (job.late, job.name, job.interpreter) == (
        [],
        script.name.removesuffix(".sbatch").replace("_", "-"),
        ["/bin/bash"],
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 5400),
        ("90:30", 5430),
        ("1:30:00", 5400),
        ("1-0", 86_400),
        ("1-6:30", 109_800),
        ("0-1:30:05", 5405),
        ("00:90:00", 5400),
    ],
)
def test_time_limits_are_read_as_the_manual_says(text: str, seconds: int) -> None:
    assert fake_slurm.submitted(f"#!/bin/bash\n#SBATCH --time={text}\n").seconds == seconds


@pytest.mark.parametrize(
    ("pattern", "name"),
    [("%x-%j.out", "job-17.out"), ("%5j%%", "00017%"), ("a.out", "a.out"), ("%u/%q", "student/%q")],
)
def test_names_of_logs_are_patterns(pattern: str, name: str) -> None:
    assert fake_slurm.submitted(f"#!/bin/bash\n#SBATCH -J job -o {pattern}\n").log(17) == name


def test_the_tasks_of_an_array_have_default_logs_and_numbers_of_their_own() -> None:
    job = fake_slurm.submitted("#!/bin/bash\n#SBATCH --array=0-6:3%2\n")
    assert (job.array, job.at_once) == ([0, 3, 6], 2)
    assert [job.log(20, task) for task in job.array] == ["slurm-20_0.out", "slurm-20_3.out", "slurm-20_6.out"]
    assert len({job.environment(20, 0, task)["SLURM_JOB_ID"] for task in job.array}) == 3


def test_bash_runs_the_script_and_commands_are_recorded() -> None:
    text = '#!/bin/bash\nfor size in 1 2; do srun -n $size python train.py "a b"; done\ncd / && exit 7\n'
    (run,) = observe.run_script({}, text, [], [vars(CIRCUMSTANCES)])
    calls = [["srun", "-n", size, "python", "train.py", "a b"] for size in ("1", "2")]
    assert (run["calls"], run["status"], run["printed"]) == (calls, 7, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    "body", ["while true; do :; done", "while true; do sleep 1; done", "(/bin/sleep 1000; :) & wait", "yes"]
)
def test_a_script_that_does_not_end_is_stopped(body: str) -> None:
    runs = observe.run_script({}, f"#!/bin/bash\n{body}\n", [], [vars(CIRCUMSTANCES)] * 2)
    assert [run["status"] for run in runs] == [None]
    assert all(len(run["printed"]) <= observe.MOST_PRINTED for run in runs)


@pytest.mark.slow
def test_nothing_that_a_script_starts_survives() -> None:
    mark = processes.new_mark()
    with processes.marked(mark):
        text = "#!/bin/bash\nsetsid /bin/sleep 1000 > /dev/null 2>&1 &\nexit 0\n"
        (run,) = observe.run_script({}, text, [], [vars(CIRCUMSTANCES)])
    assert run["status"] == 0
    assert not [process for process in processes.alive(mark) if process.status() != psutil.STATUS_ZOMBIE]


def test_a_machine_without_bash_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe.shutil, "which", lambda *arguments, **keywords: None)
    verdict = LAB["batch"].verdict(OwnAnswer({"batch": BATCH}))
    assert "no bash on this machine" in verdict.text and not verdict.fault


def test_a_forged_record_is_no_right_answer() -> None:
    class Forged(OwnAnswer):
        def inside(self, *arguments: object, **keywords: object) -> object:
            return [{"calls": [], "status": 0, "printed": ""}]

    verdict = LAB["batch"].verdict(Forged({"batch": BATCH}))
    assert verdict.share == 0 and not verdict.fault


def test_options_are_read_as_getopt_does() -> None:
    with pytest.raises(Refused, match="ambiguous"):
        fake_slurm.submitted("#!/bin/bash\n#SBATCH --node=2\n")
    job = fake_slurm.submitted(
        "#!/bin/bash\n#SBATCH --ntasks-per-n=2 -N3 # four\n\n# c\n#SBATCH -t 5 --exclusive\nset -e\n"
    )
    assert (job.nodes, job.ranks, job.seconds, job.cpus_per_node) == (3, 6, 300, fake_slurm.CPUS_PER_NODE)
