"""The capstone: known answers to `train`, real ranks, Slurm's times, what the drawn inputs distinguish."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from lab_16 import classifier, given, job_script, measured, prediction, slurm_script
from lab_16_tests import answers_16

from distlab import launch
from distlab.data import topics
from tests.distlab.labs.judged_apart import assert_told_apart, judged_apart
from tests.distlab.labs.solutions import solved_cells

SECONDS = 600
FOLDER = Path(__file__).parents[3] / "labs" / "16_capstone"
needs_horovod = pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem()))


@pytest.mark.long
def test_programs_are_told_apart_the_worked_examples_among_them() -> None:
    same_mistakes = ("strategy_mean", "strategy_all_save", "weights_broadcast_alone")
    assert_told_apart(judged_apart("16", "lab_16_tests.answers_16_training"), same_mistakes)


def test_the_gradient_is_that_of_the_loss() -> None:
    words, labels = topics.texts(5, 1)
    generator = np.random.default_rng(2)
    shapes = [(len(topics.VOCABULARY), 3), (3, 4), (4,)]
    weights = [generator.normal(size=shape) for shape in shapes]
    for place, part in enumerate(classifier.gradient(weights, words, labels)):
        index = np.unravel_index(np.abs(part).argmax(), part.shape)
        ends = []
        for step in (1e-6, -1e-6):
            moved = [array.copy() for array in weights]
            moved[place][index] += step
            ends.append(classifier.loss(moved, words, labels))
        assert part[index] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("90", 90),
        ("90:30", 90.5),
        ("1:30:00", 90),
        ("1-2", 1560),
        ("1-2:30", 1590),
        ("1-2:30:30", 1590.5),
        ("2h", None),
    ],
)
def test_a_time_is_read_as_slurm_reads_it(text: str, minutes: float | None) -> None:
    assert job_script.minutes(text) == minutes


def test_the_example_timeline_is_that_of_the_text() -> None:
    shares = measured.profile([measured.TimelineEvent(*event.values()) for event in given.TIMELINE])
    assert shares == pytest.approx({"input": 0.1, "computing": 0.7, "all-reduce": 0.15})


def test_every_timeline_has_another_bottleneck_when_the_hidden_part_counts() -> None:
    """Else an answer that counts all of the all-reduce would name the same one."""
    for seed in range(20):
        generator = np.random.default_rng(seed)
        for slow in measured.PARTS:
            shares = measured.profile(measured.drawn_timeline(generator, slow))
            assert max(shares, key=lambda name: shares[name]) == slow
            assert sum(shares.values()) < 0.99


def test_clusters_differ_in_how_many_ranks_are_worth_it() -> None:
    for seed in range(20):
        most = [case.most_ranks() for case in prediction.drawn(np.random.default_rng(seed))]
        assert 1 in most and 64 in most and len(set(most)) >= 4, most


def test_the_report_of_the_solution_has_the_form() -> None:
    assert set(answers_16.REPORT) == set(given.REPORT)


@pytest.mark.long
@pytest.mark.parametrize("way", ["strategy", pytest.param("horovod", marks=needs_horovod)])
def test_a_right_program_trains_on_three_real_ranks_as_one_process_does(tmp_path: Path, way: str) -> None:
    file = tmp_path / "train.py"
    if way == "horovod":
        head = given.HEAD.replace("import tensorflow as tf\n", given.HOROVOD + "import tensorflow as tf\n")
        file.write_text(head + solved_cells("16")["train"])
    else:
        file.write_text((Path(__file__).parent / "answers_16_good.py").read_text())
    command = [sys.executable, "real_ranks.py", str(file), "--ranks", "3", "--texts", "130", "--batch", "60"]
    command += ["--epochs", "2"]
    run = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=SECONDS, check=True)
    line, steps = run.stdout.splitlines()
    assert float(line.split()[-3]) < 1e-6, line
    by_ranks = json.loads(steps.removeprefix("measured = {3: ").removesuffix("}").replace("(", "[").replace(")", "]"))
    assert [texts for texts, _ in by_ranks] == 2 * [60, 60, 10]


@pytest.mark.long
@pytest.mark.parametrize(
    ("train", "sentence"),
    [
        ("raise SystemExit(0)", "1 of 1 ended before `train` returned: it must not exit itself."),
        ("raise ValueError('mine')", "ValueError: mine"),
    ],
)
def test_ranks_that_fail_are_named_and_the_status_is_1(tmp_path: Path, train: str, sentence: str) -> None:
    file = tmp_path / "train.py"
    file.write_text(f"def train(options):\n    {train}\n")
    command = [sys.executable, FOLDER / "real_ranks.py", "train.py", "--ranks", "1", "--texts", "60", "--batch", "60"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert run.returncode == 1 and "Traceback" not in run.stderr
    assert run.stdout.startswith("The ranks did not come to an end: ") and sentence in run.stdout


LOOPS = {
    "for run in 1 2 3; do\n  srun python train.py\ndone": True,
    "while true\ndo\n  srun python train.py\n  sleep 1\ndone": True,
    "for rank in $(seq 4); do srun python train.py & done; wait": True,
    "for run in 1 2; do\n  for host in a b; do true; done\n  srun python train.py\ndone": True,
    "for run in 1 2 3; do\n  srun python train.py && break\ndone": False,
    "for run in 1 2 3; do\n  if srun python train.py; then exit 0; fi\ndone": False,
    "while ! srun python train.py; do sleep 1; done": False,
    "for host in a b; do echo $host; done\nsrun python train.py": False,
}


@pytest.mark.parametrize("text", LOOPS)
def test_a_loop_starts_the_program_again_unless_it_is_left(text: str) -> None:
    script = slurm_script.read(f"#!/bin/bash\n{text}\n")
    [step] = script.steps()
    assert script.repeats(step) == LOOPS[text]
