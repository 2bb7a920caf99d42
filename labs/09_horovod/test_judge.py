"""Lab 09: every card of the puzzle matters, and the fake does what Horovod does."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from lab_09 import given
from lab_09.judge import LAB, PROGRAM, put, without

from course_tools import lab_cells, lab_sources
from distlab import launch, programs
from distlab.labs.fake_horovod import FakeJob, hvd, run_ranks
from tests.distlab.labs.known_wrong import right_answers, verdict_on

SECONDS = 900
needs_horovod = pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem()))


def test_every_card_is_needed_or_spoils_the_layout():
    for card in given.CARDS:
        layout = without(card) if card in PROGRAM else [*PROGRAM[:2], card, *PROGRAM[2:]]
        assert not verdict_on(LAB, "program", {"program": layout}).is_right, card


EARLY = ("init", "pin by local rank")


test_a_step_may_have_several_right_places = right_answers(
    LAB,
    ("program", [*EARLY, *without(*EARLY)]),
    ("program", put("init", "pin by local rank")),
    ("program", [*PROGRAM[:8], "only rank 0", *PROGRAM[8:]]),
    ("program", tuple(put("broadcast", "steps"))),
)


def test_nobody_waits_for_a_rank_that_has_ended_or_failed():
    seen = run_ranks(FakeJob(3, 3), lambda: hvd.rank() == 0 and hvd.allgather_object(0))
    waits = "rank 0 waits in allgather_object for ranks 1, 2, which never come"
    assert seen.errors == [("Stalled", waits), None, None]
    seen = run_ranks(FakeJob(2, 2), lambda: hvd.allgather_object(0) if hvd.rank() else 1 / 0)
    assert [error[0] for error in seen.errors] == ["ZeroDivisionError", "Abandoned"]


BOTH = """
import json, sys
import distlab
import tensorflow as tf
from unittest import mock
from distlab.labs.fake_horovod import FakeJob, hvd as fake, run_ranks
import horovod.tensorflow as horovod

def program(hvd):
    rank = hvd.rank()
    x, w = tf.constant([1.0, 2.0]) * (rank + 1), tf.Variable([0.5, -1.0 * rank])
    found = [hvd.allreduce(x), hvd.allreduce(x, op=hvd.Sum), hvd.allreduce(x, op=hvd.Max)]
    found += [hvd.broadcast(x, root_rank=1), hvd.allgather(tf.reshape(x, (1, 2)))]
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(w * w * x)
    found += hvd.DistributedGradientTape(tape).gradient(loss, [w])
    with hvd.DistributedGradientTape(tf.GradientTape()) as tape:
        loss = tf.reduce_sum(w * x)
    found += tape.gradient(loss, [w])
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.5))
    optimizer.build([w])
    optimizer.apply_gradients([(x, w)])
    found.append(w)
    other = tf.Variable([3.0 * rank])
    hvd.broadcast_variables([w, other], root_rank=1)
    found += [w, other]
    return [one.numpy().tolist() for one in found] + [hvd.size(), rank, hvd.local_rank(), hvd.local_size()]

horovod.init()
missing = [name for name in dir(fake) if not name.startswith("_") and not hasattr(horovod, name)]
real = horovod.allgather_object(program(horovod))
if horovod.rank() == 0:
    seen = run_ranks(FakeJob(2, 2), lambda: program(fake))
    print("BOTH " + json.dumps([missing, real, seen.values, seen.errors]), flush=True)
"""


@pytest.mark.slow
@needs_horovod
def test_the_fake_computes_what_horovod_does(tmp_path: Path):
    program = tmp_path / "both.py"
    program.write_text(BOTH)
    run = launch.mpirun(program, ranks=2, seconds=SECONDS, start_seconds=SECONDS, echo=False)
    (line,) = [line for line in run.output["rank 0"].splitlines() if "BOTH " in line]
    missing, real, values, errors = json.loads(line.partition("BOTH ")[2])
    assert (missing, errors) == ([], [None, None])
    assert values == real


@pytest.mark.slow
@needs_horovod
def test_the_lab_s_functions_run_on_two_ranks_of_horovod(tmp_path: Path):
    solved = lab_sources.solved(lab_sources.convert(Path(__file__).with_name("lab.py")))
    cells = [cell.source for name, cell in lab_cells.answer_cells(solved.cells) if name != "program"]
    file = tmp_path / "steps.py"
    file.write_text(given.HEAD + "\n".join(cells))
    command = [sys.executable, str(programs.FOLDER / "09_horovod/two_ranks.py"), str(file)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    assert "forgotten: nothing" in run.stdout and "2 ranks took 20 steps" in run.stdout, run.stdout
