"""The capstone: other right answers to its smaller exercises, job scripts, reports, real ranks."""

import itertools
import json
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from lab_16 import given, training
from lab_16.judge import LAB, NAMES

from distlab import launch
from distlab.data import topics
from tests.distlab.labs.known_wrong import assert_not_done, right_answers, verdict_on, wrong_answers
from tests.distlab.labs.slopes import assert_are_slopes
from tests.distlab.labs.solutions import edited, namespace_of, solved_cells

SECONDS = 600
FOLDER = Path(__file__).parent
SOLVED = namespace_of("16", solved=True)
SCRIPT, REPORT = SOLVED["job_script"], SOLVED["report"]
needs_horovod = pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem()))


def test_the_gradient_is_that_of_the_loss():
    words, labels = topics.texts(5, 1)
    weights = np.random.default_rng(2).normal(size=sum(np.prod(shape) for shape in training.SHAPES))
    _, gradient = training.loss_and_gradient(weights, words, labels)
    assert_are_slopes([gradient], lambda moved: training.loss_and_gradient(moved[0], words, labels)[0], [weights])


def sorted_by_hand(measured, warm_up):
    numbers = {}
    for ranks, steps in measured.items():
        rates = sorted(texts / seconds for texts, seconds in steps[warm_up:])
        numbers[ranks] = (rates[(len(rates) - 1) // 2] + rates[len(rates) // 2]) / 2
    return {
        ranks: {"efficiency": rate / numbers[1] / ranks, "speed-up": rate / numbers[1], "texts/s": rate}
        for ranks, rate in numbers.items()
    }


def by_moments(events):
    """Between two moments where something begins or ends nothing changes."""
    own = [event for event in events if event["step"] > 0]
    values = dict.fromkeys(NAMES, 0.0)
    moments = sorted({event[side] for event in own for side in ("start", "end")})
    for start, end in itertools.pairwise(moments):
        running = {event["name"] for event in own if event["start"] <= start and event["end"] >= end}
        for name in running - ({"all-reduce"} if "computing" in running else set()):
            values[name] += end - start
    spans = [[event for event in own if event["step"] == step] for step in {event["step"] for event in own}]
    total = sum(max(e["end"] for e in span) - min(e["start"] for e in span) for span in spans)
    return {**{name: value / total for name, value in values.items()}, "bottleneck": max(values, key=values.get)}


def by_a_formula(ranks, batch, fixed, each, nbytes, latency, seconds_per_byte, at_least):
    def step(count):
        ring = 2 * (count - 1) * (latency + nbytes / count * seconds_per_byte)
        return fixed + each * -(-batch // count) + ring

    most = 1
    while 2 * most <= ranks and step(1) / step(2 * most) / 2 / most >= at_least:
        most *= 2
    return {
        "step": step(ranks),
        "texts/s": batch / step(ranks),
        "efficiency": step(1) / step(ranks) / ranks,
        "most ranks": most,
    }


test_another_right_answer_gets_full_marks = right_answers(
    LAB,
    ("throughput", sorted_by_hand),
    ("profile", by_moments),
    ("predict", by_a_formula),
    ("report", dict(reversed(REPORT.items()))),
)


def script(changes):
    """The solution with other lines; <n> in them is the number of nodes, and so on."""

    def job_script(nodes, tasks, cores, minutes):
        names = {"n": nodes, "t": tasks, "nt": nodes * tasks, "c": cores, "m": minutes, "s": 60 * minutes}
        names |= {"limit": f"{minutes // 60}:{minutes % 60:02}:00", "delta": timedelta(minutes=minutes)}
        filled = re.sub(r"<(\w+)>", lambda match: str(names[match[1]]), changes)
        return edited(SCRIPT(nodes, tasks, cores, minutes), filled)

    return job_script


RIGHT_SCRIPTS = [
    "--time=<limit> → -t <m> <> --cpus-per-task=<c> python → -c ${SLURM_CPUS_PER_TASK:-1} python3 -u",
    "--nodes=<n> → --nodes=<n>-<n> <> srun --mpi=pmix --kill-on-bad-exit=1 --cpus-per-task → SRUN_CPUS_PER_TASK"
    " <> =<c> python → =<c> srun python",
    "srun → if ! srun <> train.py → train.py; then exit 1; fi",
    "srun → for run in 1 2 3; do⏎  srun <> train.py → train.py && exit 0⏎  sleep 60⏎done⏎exit 1",
    "without set -euo <> train.py⏎ → train.py⏎status=$?⏎echo done⏎exit $status⏎",
    "train.py → train.py | tee log",
    "train.py⏎ → train.py &⏎wait $!⏎",
]
LOST = "the script goes on and ends as its last command does."
WRONG_SCRIPTS = [
    ("train.py⏎ → train.py || echo failed⏎", LOST),
    ("train.py⏎ → train.py &⏎wait⏎", "a plain `wait` ends with 0 all the same."),
    ("without set -euo <> train.py⏎ → train.py⏎if [ $? -ne 0 ]; then echo failed; fi⏎", LOST),
    ("without set -euo <> train.py → train.py | tee log", "the pipe ends as its last command does."),
    ("#SBATCH --nodes → #SBATCH --array=1-2⏎#SBATCH --nodes", "--array=1-2 makes an array of it"),
    ("-per-node=<t> → -per-node=<nt>", "this many tasks are needed on all nodes together."),
    ("--ntasks-per-node=<t> → --ntasks=<nt>", "unevenly over"),
    ("without #SBATCH --cpus", "nothing says how many cores a task gets"),
    (" --cpus-per-task=<c> python →  python", "srun does not take the cores over from sbatch."),
    ("without --time", "there is no time limit."),
    ("<limit> → 0:<m>", "Slurm takes the last number of"),
    ("train.py⏎ → train.py⏎srun --cpus-per-task=<c> python train.py⏎", "the program is started 2 times."),
]
REFUSED = [
    ("--nodes=<n> → --nodes={nodes}", "Which letter before the quotes lets Python fill in the value?"),
    ("#!/bin/bash⏎ → ", "This does not look like a batch script."),
]


test_a_right_script_in_another_style_gets_full_marks = pytest.mark.slow(
    right_answers(LAB, *(("job_script", script(changes)) for changes in RIGHT_SCRIPTS))
)
test_a_wrong_script_gets_its_hint = pytest.mark.slow(
    wrong_answers(
        LAB,
        *(("job_script", script(changes), 0.75, words) for changes, words in WRONG_SCRIPTS),
        *(("job_script", script(changes), 0, words) for changes, words in REFUSED),
    )
)


test_a_wrong_report_gets_its_hint = wrong_answers(
    LAB,
    *(
        ("report", REPORT | {name: text}, count / 6, words)
        for name, text, count, words in (
            ("limits", "I tested at most 4 ranks.", 5, "it has 6 words; 25 are the least"),
            ("limits", re.sub(r"\d", "", REPORT["limits"]), 5, "it has no number in digits."),
            ("prediction", "1 rank and 64 ranks " * 10, 5, "it says the same words again and again."),
            ("throughput", REPORT["profile"], 4, "another part has the same sentences."),
        )
    ),
)


def test_an_empty_report_is_not_done():
    assert_not_done(LAB, "report", {"report": dict.fromkeys(REPORT, " ")})
    assert "a text for each of" in verdict_on(LAB, "report", {"report": REPORT["job"]}).text


@pytest.mark.slow
@pytest.mark.parametrize("way", ["strategy", pytest.param("horovod", marks=needs_horovod)])
def test_a_right_program_trains_on_three_real_ranks_as_one_process_does(tmp_path, way):
    file, head = tmp_path / "train.py", given.HEAD
    if way == "horovod":
        head = head.replace("import tensorflow as tf\n", given.HOROVOD + "import tensorflow as tf\n")
    known = (FOLDER / "known_answers.py").read_text()
    by_strategy = known.split('BY_STRATEGY = """\\\n')[1].split('"""')[0]
    file.write_text(head + (solved_cells("16")["train"] if way == "horovod" else by_strategy))
    command = [sys.executable, "real_ranks.py", str(file), "--ranks", "3", "--texts", "130", "--batch", "60"]
    command += ["--epochs", "2"]
    run = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=SECONDS, check=True)
    line, steps = run.stdout.splitlines()
    assert float(line.split()[-3]) < 1e-6, line
    by_ranks = json.loads(steps.removeprefix("measured = {3: ").removesuffix("}").replace("(", "[").replace(")", "]"))
    assert [texts for texts, _ in by_ranks] == 2 * [60, 60, 10]
