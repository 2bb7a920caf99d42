"""Lab 15: other right answers, wrong job scripts and what is said to them, the judge's numbers by hand."""

import re

import numpy as np
import pytest
from lab_15 import given, judge
from lab_15.judge import (
    EXAMPLE,
    LAB,
    NAMES,
    OFFERED,
    attempt_with,
    pays_up_to,
)

from distlab.labs import OwnAnswer
from tests.distlab.labs.known_wrong import SEEDS, assert_not_done, assert_right, verdict_on
from tests.distlab.labs.solutions import namespace_of

SOLVED = namespace_of("15", solved=True)
SCRIPTS = {name: SOLVED[name] for name in ("batch", "array", "long", "gpus")}


def script(name, changes):
    """The solution's script with other lines, written as "before → after <> before → after", ⏎ for a line break."""
    text = SCRIPTS[name]
    for before, after in (change.split(" → ") for change in changes.split(" <> ")):
        before, after = before.replace("⏎", "\n"), after.replace("⏎", "\n")
        assert before in text, before
        text = text.replace(before, after)
    return text


TASK = "nodes=$SLURM_ARRAY_TASK_ID⏎"
RIGHT_SCRIPTS = [
    ("batch", 'set -e⏎ →  <> .py⏎srun → .py &&⏎srun <> "$@"⏎ → "$@" &&⏎'),
    ("batch", 'set -e⏎ →  <> .py⏎ → .py || exit 1⏎ <> "$@"⏎ → "$@" || exit⏎'),
    ("batch", "#!/bin/bash → #!/bin/bash -e <> set -e⏎ → "),
    ("batch", "--nodes=4⏎ → --ntasks=8⏎ <> %x → train <> -bad-exit=1  → -bad-exit "),
    ("batch", "--ntasks-per-node → --tasks-per-node"),
    ("batch", "%x-%j → ./train-%J"),
    ("batch", " --kill-on-bad-exit=1 →  <> set -e⏎ → set -e⏎export SLURM_KILL_BAD_EXIT=1⏎"),
    ("batch", "⏎python → ⏎srun --nodes=1 --ntasks=1 python <> --kill-on-bad-exit=1 → -K"),
    ("batch", "--nodes=4 → --nodes=7 # no:⏎#SBATCH -N4-4 -t90 <> #SBATCH --time=01:30:00⏎ → "),
    ("batch", "set -e⏎ → set -euo pipefail⏎echo $SLURM_CPUS_ON_NODE $SLURM_TASKS_PER_NODE $SLURM_JOB_USER⏎"),
    ("array", "1,2,4,8%1 → 0-3%1 <> =$SLURM_ARRAY_TASK_ID → =$((2 ** SLURM_ARRAY_TASK_ID))"),
    ("array", "set -e⏎ →  <> %A-%a → %j <> -bad-exit=1 → -bad-exit"),
    ("array", "#SBATCH --ntasks-per-node=1⏎ →  <>  --ntasks=$nodes → "),
    ("array", "%x-%A-%a → scaling/%A-%a <> --nodes=$nodes  → "),
    ("array", "set -e⏎ →  <> srun → exec srun <> --result  → --result="),
    ("long", 'srun → srun --wait=0 <> saved "$@" → saved "${@}" <> status=0⏎ → set -euo pipefail⏎status=0⏎'),
    ("long", 'srun → srun -W300 <> --checkpoints saved "$@" → "$@" --checkpoints=saved'),
    ("long", "=USR1 → =10 <> if [ $status -eq 85 ]; then → case $status in 85) <> ; fi → ;;esac"),
    ("long", "status=0⏎ →  <>  || status=$? → ⏎status=$? <> USR1@600 → SIGUSR1@600"),
]
RIGHT_SCRIPTS += [
    ("gpus", "export SRUN_CPUS_PER_TASK= → set -u⏎cores= <> srun --cpu-bind= → srun -c $cores --cpu-bind=verbose,"),
    ("gpus", "--gpus-per-node=8 → --gres=gpu:a100:8 <> --mem=400G → --mem-per-cpu=6400"),
    (
        "gpus",
        "--gpus-per-node=8 → -G 16 <> --mem=400G → --mem-per-gpu=50G <> -node=8⏎#SBATCH --cpus → -node=8 -c8 # --c",
    ),
]
WRONG_SCRIPTS = [
    ("batch", "#!/bin/bash → ⏎#!/bin/bash", 0, "What does the backslash in the example do?"),
    ("batch", "#!/bin/bash⏎ → ", 0, "This does not look like a batch script."),
    ("batch", "#!/bin/bash → #!/usr/bin/env python", 0, "this check needs bash"),
    ("batch", "--nodes=4 → --nodes = 4", 0, "Invalid directive found in batch script: 4"),
    ("batch", "--nodes=4 → --node=4", 0, "not a unique prefix"),
    ("batch", "01:30:00 → 5400", 0, "--time=5400 is 90 hours"),
    ("batch", "set -e⏎ → set -e⏎#SBATCH --mem=4G⏎", 0, "comes after the first command"),
    ("batch", "srun --kill-on-bad-exit=1 → mpirun", 0, "Which command of Slurm starts the ranks?"),
    ("batch", "-exit=1 → -exit 1", 0, "takes 1 for the program"),
    ("batch", "set -e → if true", 0, "no program is started, and bash says"),
    ("batch", "set -e → while true; do :; done", 0, "the script does not end."),
    ("batch", "--nodes=4 → --nodes=8", 0.5, "the job gets 8 nodes, and should get 4."),
    ("batch", "#SBATCH --ntasks-per-node=2⏎ → ", 0.5, "a plain srun would start 4 ranks, and 8 are asked for."),
    ("batch", "01:30:00 → 01:30", 0.75, "the limit is 1 minute 30 seconds, not 1 hour 30 minutes. What is a number"),
    ("batch", "#SBATCH --job → # SBATCH --job", 0.75, "`# SBATCH --job-name=train` is a comment for sbatch."),
    ("batch", "#SBATCH --nodes=4 → #PBS -l nodes=4", 0.5, "`#PBS -l nodes=4` is a comment for sbatch."),
    ("batch", "--nodes=4⏎ → --nodes=4 --array=1-4⏎", 0.75, "this is an array, not one job."),
    ("batch", "#SBATCH --job-name=train⏎ → ", 0.75, "%x is script here. Which option names the job?"),
    ("batch", "python prepare.py⏎ → ", 0.5, "it starts train.py evaluate.py, and should start prepare.py"),
    ("batch", "srun --kill-on-bad-exit=1  → ", 0.5, "failure: wrong: this needs the right programs first."),
    ("batch", "⏎python  → ⏎srun python ", 0.75, "`prepare.py` runs 8 times, and once is enough."),
    ("batch", "⏎python prep → ⏎srun -N1 -n1 -r1 python prep", 0.75, "`prepare.py` does not run on the first node."),
    ("batch", ' "$@" → ', 0.75, "`train.py` gets no arguments, and should get the arguments --data 'set"),
    ("batch", '"$@" → $@', 0.75, "an argument with a space in it becomes two."),
    ("batch", 'prepare.py → prepare.py "$@"', 0.75, "and should get no arguments."),
    ("batch", "set -e⏎ → ", 0.75, "`prepare.py` fails, and `train.py` is started all the same."),
    ("batch", "evaluate.py⏎ → evaluate.py || echo failed⏎", 0.75, "the script ends with 0, so the state is COMPLETED."),
    ("batch", " --kill-on-bad-exit=1 → ", 0.75, "the others wait for it until the time is over."),
    (
        "array",
        f"#SBATCH --array=1,2,4,8%1⏎ →  <> {TASK} → for nodes in 1 2 4 8; do⏎ <> .json⏎ → .json⏎done⏎",
        0,
        "sizes one",
    ),
    ("array", f"#SBATCH --array=1,2,4,8%1⏎ →  <> {TASK} → nodes=8⏎", 0.25, "this is one job, not an array."),
    ("array", "%1 → ", 0.75, "4 may run at the same time"),
    ("array", "1,2,4,8%1 → 1-8%1", 0.75, "the array trains on 1, 2, 3, 4, 5, 6, … nodes"),
    ("array", "1,2,4,8%1 → 0-3%1 <> =$SLURM_ARRAY_TASK_ID → =$((2 ^ SLURM_ARRAY_TASK_ID))", 0, "^ compares bits"),
    ("array", "--nodes=8 → --nodes=16", 0.75, "each task holds 16 nodes."),
    ("array", "%x-%A-%a → logs/%x-%A-%a", 0.75, "without the folder logs the script does not begin."),
    ("array", "%x-%A-%a → %x-%a", 0.75, "two of its tasks, or of two such arrays, write into one log, scaling-1.out."),
    ("array", "--nodes=$nodes --ntasks=$nodes  → ", 0.75, "the array trains on 8, 8, 8, 8 nodes"),
    (
        "array",
        " --ntasks=$nodes →  <> -per-node=1 → -per-node=1 --exclusive",
        0.75,
        "task 1 runs train.py as 8 tasks on 1",
    ),
    ("array", "$SLURM_ARRAY_TASK_ID → $SLURM_ARRAY_TASK", 0, "`$nodes` is empty there."),
    ("array", ".json⏎ → .json || echo failed⏎", 0.75, "the task's script ends with 0"),
    (
        "array",
        ".json⏎ → .json || { scancel $SLURM_ARRAY_JOB_ID; exit 1; }⏎",
        0.75,
        "has the state CANCELLED, not FAILED.",
    ),
    ("long", "=USR1@600 → =B:USR1@600", 0.75, "with B: only the script gets the signal."),
    ("long", "=USR1@600 → =TERM@600", 0.75, "the signal has number 15"),
    ("long", "=USR1@600 → =USR1@10", 0.75, "10 seconds before the limit, not 600. In which unit is it?"),
    ("long", "--open-mode=append → --open-mode=truncate", 0.75, "each attempt overwrites the log"),
    ("long", "srun  → srun --kill-on-bad-exit=1 ", 0.75, "takes the others with it."),
    ("long", '"$@" || → "$@" | tee log ||', 0.75, "the script ends with 0. Whose status does it look at?"),
    ("long", "status=0⏎ → set -e⏎ <>  || status=$? → ⏎status=$?", 0.75, "Does the script get that far?"),
    ("long", "scontrol requeue  → scontrol requeuehold ", 0.75, "does not start the job again by itself."),
    ("long", "-eq 85 → -ne 0", 0.75, "and the job is queued again. Which status asks for that?"),
    ("long", " $SLURM_JOB_ID → ", 0.75, "`scontrol requeue` does not name this job"),
    ("long", 'scontrol requeue $SLURM_JOB_ID → sbatch "$0" "$@"', 0.75, "sbatch submits another job"),
    ("long", "exit $status⏎ → ", 0.75, "and the script with 0. When does a script still know it?"),
    ("long", "status=0⏎ → set -e⏎trap 'exit 0' EXIT⏎status=0⏎", 0.75, "and the script with 0."),
    ("gpus", "account=course → account=me", 0.8, "the account is not course."),
    ("gpus", "#SBATCH --partition=lab⏎ → ", 0.8, "the partition is not lab."),
    ("gpus", "--ntasks-per-node=8⏎ → --ntasks-per-node=1⏎", 0.6, "`train.py` runs as 2 tasks on 2 nodes"),
    ("gpus", "--gpus-per-node=8 → --gpus-per-task=1", 0.8, "each rank sees its own GPU only."),
    ("gpus", "srun  → srun --gpus-per-task=1 ", 0.8, "each rank sees its own GPU only."),
    ("gpus", "--gpus-per-node=8 → --gpus=8", 0.8, "a node gives 4 GPUs, and should give 8."),
    ("gpus", "#SBATCH --gpus-per-node=8⏎ → ", 0.8, "no GPU is asked for."),
    ("gpus", "--mem=400G → --mem=400", 0.8, "the ranks of a node get 0.390625 GB, and should get 400."),
    ("gpus", "--mem=400G → --mem-per-cpu=400G", 0.8, "get 25600 GB"),
    ("gpus", "#SBATCH --mem=400G⏎ → ", 0.8, "no memory is asked for"),
    ("gpus", "-task=8 → -task=64", 0.0, "sbatch refuses"),
    ("gpus", "-task=8 → -task=4", 0.8, "a rank gets 4 cores."),
    ("gpus", "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK⏎ → ", 0.8, "srun does not take --cpus-per-task over"),
    ("gpus", "--cpu-bind=cores  → ", 0.8, "nothing keeps a rank on its cores."),
    ("gpus", "python train.py → python other.py", 0.6, "it starts other.py, and should start train.py."),
    ("gpus", "--kill-on-bad-exit=1  → ", 0.8, "the others wait for it until the time is over."),
]


@pytest.mark.parametrize(("name", "changes"), RIGHT_SCRIPTS)
def test_a_right_script_in_another_style_gets_full_marks(name, changes):
    for seed in SEEDS:
        assert_right(verdict_on(LAB, name, {name: script(name, changes)}, seed))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "changes", "share", "words"), WRONG_SCRIPTS)
def test_a_wrong_script_gets_its_hint(name, changes, share, words):
    for seed in SEEDS:
        verdict = verdict_on(LAB, name, {name: script(name, changes)}, seed)
        assert words in verdict.text and verdict.share == share, verdict.text


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_solution_is_right_and_nothing_is_not_done(name):
    assert_right(verdict_on(LAB, name, SOLVED))
    assert_not_done(LAB, name, {name: None})
    assert "between triple quotation marks" in verdict_on(LAB, name, {name: SCRIPTS[name].splitlines()}).text


EQUIVALENT = {
    "batch": {'srun --kill-on-bad-exit=2 python train.py "$@"'},  # all but 0 is yes
    "array": {  # one rank per node is what srun gives, names are free, srun is the last command
        "#SBATCH --job-name=scaling → ",
        "#SBATCH --ntasks-per-node=1 → ",
        "#SBATCH --output=%x-%A-%a.out → ",
        "set -e → ",
        "srun --nodes=$nodes --ntasks=$nodes --kill-on-bad-exit=2 python train.py --result scaling/$nodes.json",
    },
    "gpus": {'srun --cpu-bind=cores --kill-on-bad-exit=2 python train.py "$@"', "#SBATCH --job-name=gpus → "},
    "long": {"#SBATCH --ntasks-per-node=1 → ", "status=0 → "},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_without_a_line_or_with_another_number_is_rejected(name):
    accepted, lines = set(), SCRIPTS[name].splitlines(keepends=True)
    for place, line in enumerate(lines):
        others = {f"{line.strip()} → ": ""} if line.strip() else {}
        for match in re.finditer(r"\d+", line):
            number = str(int(match[0]) + 1).zfill(len(match[0]))
            other = line[: match.start()] + number + line[match.end() :]
            others[other.strip()] = other
        for change, other in others.items():
            text = "".join([*lines[:place], other, *lines[place + 1 :]])
            accepted |= {change} if verdict_on(LAB, name, {name: text}).is_right else set()
    assert accepted == EQUIVALENT[name]


async def saves_after_the_loop(rank, job):
    step = job["saved"]
    notices = 0
    while step < job["steps"] and not notices:
        step = step + 1
        await given.train_step(rank, job, step)
        notices = await given.add_up(rank, int(given.has_notice(rank, job)))
    if step == job["steps"]:
        return 0
    if rank.index == 0:
        await given.save(rank, job, step)
    await given.add_up(rank, 0)
    return 85


ASKS_NO_MORE = attempt_with(("notices = await", 'notices = 0 if step == job["steps"] else await'))


def table_by(alone):
    def read_table(runs):
        trusted = [
            number
            for number, run in enumerate(runs)
            if run["state"] == "COMPLETED" and all(alone(run, peer) for peer in runs if peer is not run)
        ]
        chosen = sorted((runs[number] for number in trusted), key=lambda run: run["nodes"])
        rates = np.array([run["nodes"] * run["batch"] / run["step"] for run in chosen])
        [base] = [rate for run, rate in zip(chosen, rates, strict=True) if run["nodes"] == 1][:1] or [next(iter(()))]
        sizes = np.array([run["nodes"] for run in chosen])
        gains = dict(zip(sizes.tolist(), rates / base, strict=True))
        return dict(zip(NAMES, (trusted, rates / base, rates / base / sizes, pays_up_to(gains)), strict=True))

    return read_table


def rent_sorted_by_cost(offers, images, deadline):
    in_time = []
    for offer in offers:
        for nodes in offer["efficiency"]:
            seconds = images / offer["images_per_second"] / nodes / offer["efficiency"][nodes]
            waits = offer["wait"] * np.ceil(seconds / 3600 / offer["limit"])
            cost = seconds / 3600 * offer["price"] * nodes
            in_time.append({"cost": cost, "nodes": nodes, "name": offer["name"], "done": waits + seconds / 3600})
    in_time = [choice for choice in in_time if choice["done"] <= deadline]
    return min(in_time, key=lambda choice: choice["cost"]) if in_time else None


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("attempt", saves_after_the_loop),
        ("attempt", ASKS_NO_MORE),
        ("read_table", table_by(lambda run, peer: run["end"] <= peer["start"] or peer["end"] <= run["start"])),
        ("rent", rent_sorted_by_cost),
    ],
)
def test_another_right_answer_gets_full_marks(name, answer):
    for seed in SEEDS:
        assert_right(verdict_on(LAB, name, {name: answer}, seed))


@pytest.mark.parametrize("seed", range(20))
def test_attempts_in_a_row_lose_no_step_and_do_none_twice(seed):
    generator, right = np.random.default_rng(seed), OwnAnswer({"attempt": attempt_with()})
    done, saved, steps = [], 0, 12
    while saved < steps:
        notices = [int(notice) if notice > saved else None for notice in generator.integers(1, 13, 3)]
        seen = judge.observed(right, judge.Planned(judge.NEXT, steps, saved, notices))
        done += seen["steps"]
        saved = seen["saves"][0][1] if seen["saves"] else steps
    assert done == [*range(1, steps + 1)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("job, step)\n        n", 'job, job["saved"])\n        n'), "is done again and again"),
        (('"steps"] + 1', '"steps"]'), "the last one is missing"),
        (('"steps"] + 1', '"steps"] + 2'), "When is no step left?"),
        (("return 85", "return 85.0"), "A rank gives its exit status, a whole number."),
        (("    for", "    return 85\n    for"), "nobody has had a notice before step"),
    ],
)
def test_other_wrong_attempts_are_told_what_they_do(change, words):
    verdict = verdict_on(LAB, "attempt", {"attempt": attempt_with(change)})
    assert words in verdict.text and verdict.share < 1


def test_what_follows_from_other_trusted_runs_is_said_once():
    verdict = verdict_on(LAB, "read_table", {"read_table": table_by(lambda run, peer: True)})
    assert verdict.share == 0 and "run 4 was not alone: run 5 ran at the same time." in verdict.text
    assert verdict.text.count("it follows from the wrong trusted.") == 1


def test_a_table_that_fails_where_runs_touch_is_told_so():
    gap = table_by(lambda run, peer: run["end"] < peer["start"] or peer["end"] < run["start"])
    assert judge.NO_BASE in verdict_on(LAB, "read_table", {"read_table": gap}).text


def test_the_examples_by_hand():
    table = judge.read_table(*EXAMPLE)
    assert (table["trusted"], table["pays"]) == ([0, 1, 2], 2)
    assert table["speedup"] == pytest.approx([1, 2 * 0.1 / 0.11, 4 * (32 / 0.08) / (64 / 0.1)])
    choice = judge.rent(*OFFERED)  # 60 h on one small node; two: 60 / 1.9 h, two jobs
    assert (choice["name"], choice["nodes"]) == ("small", 2)
    assert (choice["done"], choice["cost"]) == pytest.approx((60 / 1.9 + 2, 2 * 2 * 60 / 1.9))
    assert pays_up_to({1: 1.0, 2: 2.0, 6: 4.0, 10: 5.0}) == 6  # exactly half pays
