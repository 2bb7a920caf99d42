"""Lab 15: other right answers, wrong job scripts and what is said to them, attempts in a row."""

import numpy as np
import pytest
from lab_15 import given, judge
from lab_15.judge import LAB, NAMES, attempt_with, pays_up_to

from distlab.labs import OwnAnswer
from tests.distlab.labs.known_wrong import right_answers, wrong_answers
from tests.distlab.labs.solutions import edited, namespace_of

SOLVED = namespace_of("15", solved=True)
SCRIPTS = {name: SOLVED[name] for name in ("batch", "array", "long", "gpus")}
TASK = "nodes=$SLURM_ARRAY_TASK_ID⏎"
RIGHT_SCRIPTS = [
    ("batch", 'set -e⏎ →  <> .py⏎srun → .py &&⏎srun <> "$@"⏎ → "$@" &&⏎'),
    ("batch", "--nodes=4⏎ → --ntasks=8⏎ <> %x → train <> -bad-exit=1  → -bad-exit "),
    ("batch", " --kill-on-bad-exit=1 →  <> set -e⏎ → set -e⏎export SLURM_KILL_BAD_EXIT=1⏎"),
    ("batch", "--nodes=4 → --nodes=7 # no:⏎#SBATCH -N4-4 -t90 <> #SBATCH --time=01:30:00⏎ → "),
    ("array", "1,2,4,8%1 → 0-3%1 <> =$SLURM_ARRAY_TASK_ID → =$((2 ** SLURM_ARRAY_TASK_ID))"),
    ("array", "%x-%A-%a → scaling/%A-%a <> --nodes=$nodes  → "),
    ("long", 'srun → srun --wait=0 <> saved "$@" → saved "${@}" <> status=0⏎ → set -euo pipefail⏎status=0⏎'),
    ("gpus", "export SRUN_CPUS_PER_TASK= → set -u⏎cores= <> srun --cpu-bind= → srun -c $cores --cpu-bind=verbose,"),
]
WRONG_SCRIPTS = [
    ("batch", "#!/bin/bash → ⏎#!/bin/bash", 0, "What does the backslash in the example do?"),
    ("batch", "#!/bin/bash⏎ → ", 0, "This does not look like a batch script."),
    ("batch", "--nodes=4 → --nodes = 4", 0, "Invalid directive found in batch script: 4"),
    ("batch", "01:30:00 → 5400", 0, "--time=5400 is 90 hours"),
    ("batch", "set -e⏎ → set -e⏎#SBATCH --mem=4G⏎", 0, "comes after the first command"),
    ("batch", "srun --kill-on-bad-exit=1 → mpirun", 0, "Which command of Slurm starts the ranks?"),
    ("batch", "#SBATCH --ntasks-per-node=2⏎ → ", 0.5, "a plain srun would start 4 ranks, and 8 are asked for."),
    ("batch", "01:30:00 → 01:30", 0.75, "the limit is 1 minute 30 seconds, not 1 hour 30 minutes. What is a number"),
    ("batch", "#SBATCH --nodes=4 → #PBS -l nodes=4", 0.5, "`#PBS -l nodes=4` is a comment for sbatch."),
    ("batch", "python prepare.py⏎ → ", 0.5, "it starts train.py evaluate.py, and should start prepare.py"),
    ("batch", "⏎python  → ⏎srun python ", 0.75, "`prepare.py` runs 8 times, and once is enough."),
    ("batch", '"$@" → $@', 0.75, "an argument with a space in it becomes two."),
    ("batch", "set -e⏎ → ", 0.75, "`prepare.py` fails, and `train.py` is started all the same."),
    ("batch", "evaluate.py⏎ → evaluate.py || echo failed⏎", 0.75, "the script ends with 0, so the state is COMPLETED."),
    ("batch", " --kill-on-bad-exit=1 → ", 0.75, "the others wait for it until the time is over."),
    (
        "array",
        f"#SBATCH --array=1,2,4,8%1⏎ →  <> {TASK} → for nodes in 1 2 4 8; do⏎ <> .json⏎ → .json⏎done⏎",
        0,
        "sizes one",
    ),
    ("array", "%1 → ", 0.75, "4 may run at the same time"),
    ("array", "1,2,4,8%1 → 1-8%1", 0.75, "the array trains on 1, 2, 3, 4, 5, 6, … nodes"),
    ("array", "1,2,4,8%1 → 0-3%1 <> =$SLURM_ARRAY_TASK_ID → =$((2 ^ SLURM_ARRAY_TASK_ID))", 0, "^ compares bits"),
    ("array", "%x-%A-%a → logs/%x-%A-%a", 0.75, "without the folder logs the script does not begin."),
    ("array", "$SLURM_ARRAY_TASK_ID → $SLURM_ARRAY_TASK", 0, "`$nodes` is empty there."),
    ("long", "=USR1@600 → =B:USR1@600", 0.75, "with B: only the script gets the signal."),
    ("long", "--open-mode=append → --open-mode=truncate", 0.75, "each attempt overwrites the log"),
    ("long", '"$@" || → "$@" | tee log ||', 0.75, "the script ends with 0. Whose status does it look at?"),
    ("long", "-eq 85 → -ne 0", 0.75, "and the job is queued again. Which status asks for that?"),
    ("long", "exit $status⏎ → ", 0.75, "and the script with 0. When does a script still know it?"),
    ("gpus", "account=course → account=me", 0.8, "the account is not course."),
    ("gpus", "--ntasks-per-node=8⏎ → --ntasks-per-node=1⏎", 0.6, "`train.py` runs as 2 tasks on 2 nodes"),
    ("gpus", "--gpus-per-node=8 → --gpus-per-task=1", 0.8, "each rank sees its own GPU only."),
    ("gpus", "--gpus-per-node=8 → --gpus=8", 0.8, "a node gives 4 GPUs, and should give 8."),
    ("gpus", "--mem=400G → --mem=400", 0.8, "the ranks of a node get 0.390625 GB, and should get 400."),
    ("gpus", "-task=8 → -task=4", 0.8, "a rank gets 4 cores."),
    ("gpus", "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK⏎ → ", 0.8, "srun does not take --cpus-per-task over"),
    ("gpus", "--cpu-bind=cores  → ", 0.8, "nothing keeps a rank on its cores."),
]


test_a_wrong_script_gets_its_hint = pytest.mark.slow(
    wrong_answers(
        LAB,
        *((name, edited(SCRIPTS[name], changes), *said) for name, changes, *said in WRONG_SCRIPTS),
        *((name, SCRIPTS[name].splitlines(), 0, "between triple quotation marks") for name in SCRIPTS),
    )
)


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


def is_alone(run, peer):
    return run is peer or run["end"] <= peer["start"] or peer["end"] <= run["start"]


def table_in_arrays(runs):
    trusted = [
        number
        for number, run in enumerate(runs)
        if run["state"] == "COMPLETED" and all(is_alone(run, peer) for peer in runs)
    ]
    chosen = sorted((runs[number] for number in trusted), key=lambda run: run["nodes"])
    rates = np.array([run["nodes"] * run["batch"] / run["step"] for run in chosen])
    sizes = np.array([run["nodes"] for run in chosen])
    gains = dict(zip(sizes.tolist(), rates / rates[0], strict=True))
    return dict(zip(NAMES, (trusted, rates / rates[0], rates / rates[0] / sizes, pays_up_to(gains)), strict=True))


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


test_another_right_answer_gets_full_marks = right_answers(
    LAB,
    *((name, edited(SCRIPTS[name], changes)) for name, changes in RIGHT_SCRIPTS),
    ("attempt", saves_after_the_loop),
    ("read_table", table_in_arrays),
    ("rent", rent_sorted_by_cost),
)


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
