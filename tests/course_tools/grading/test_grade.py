"""A notebook of the sample lab is run and judged: which cells count, what is said of those that fail."""

# ruff: noqa: E501  # one line for each case of a table

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from course_tools.grading import notebook
from course_tools.grading.grade import grade
from course_tools.grading.notebook import Cell, Material, Role, Unreadable, fit, read
from course_tools.grading.submissions import Submission
from course_tools.sandbox import Kind
from distlab.labs import Answer, Verdict
from distlab.labs.verdict import NOT_DONE
from tests.distlab.labs import sample_lab
from tests.distlab.labs.graded_sample import Grading
from tests.distlab.labs.sample_lab import points

pytestmark = pytest.mark.slow
ALL = {"mean": 2, "steps": 1, "all_gather": 3}


def test_right_answers_get_all_points_untouched_ones_none(graded: Grading, sample: Material) -> None:
    report = graded()
    assert (points(report), report.note, report.troubles) == (ALL, "", [])
    report = graded(list(sample.steps))
    assert (report.score, report.note) == (0, "")
    assert all(each.verdict.state is NOT_DONE for each in report.exercises)


SYNTAX = """
%matplotlib inline
%timeit -n 1 -r 1 0
!ls
files = !ls
np?
import asyncio
await asyncio.sleep(0)
display({'text/plain': 'x'}, raw=True)
h = display(1, display_id='x')
h.update(2)
breakpoint()
open('x', 'w').write('6')
steps = int(open('x').read())
"""


@pytest.mark.parametrize("text", [SYNTAX, "%%time\nsteps = 6"], ids=["in a cell", "a measured cell"])
def test_an_answer_written_as_in_jupyter_counts(graded: Grading, text: str) -> None:
    assert points(graded(steps=text))["steps"] == 1


def test_a_mistake_in_a_cell_is_told_with_class_and_line_and_noted(graded: Grading) -> None:
    report = graded(steps="x = 1\nx / 0\n", mean="def mean(values:")
    assert "The cell stopped in line 2 with ZeroDivisionError: division by zero" in report.exercises[1].verdict.text
    assert report.note == "the cell of mean failed; the cell of steps failed"


MEAN, STEPS, GATHER = (Cell(Role.ANSWER, name, text) for name, text in sample_lab.ANSWERS.items())
CHECKED, WRONG = Cell(Role.JUDGE, "steps"), replace(STEPS, text="steps = 7")
UNTOUCHED = replace(STEPS, text="steps = None\n# Write your answer here.\n...")
HALF, FAILS, TOO_LATE = (Cell(Role.OWN, "", text) for text in ("def half(): return 3", "1 / 0", "steps = 7"))
MISSING = "the cell of {} is missing: what other cells define was judged"
COPIED = "steps is answered in 2 cells, the last one counts"
OLDER = "steps is answered in several cells, and the last one is not right"
# Cells, the points for steps, and what is noted; a note that begins with ! is to be looked at.
CHANGES = {
    "own cells": (
        [FAILS, MEAN, HALF, replace(STEPS, text="steps = half() * 2"), CHECKED, TOO_LATE, GATHER],
        1,
        ["code cell 1 failed"],
    ),
    "lost metadata": (
        [replace(each, role=Role.OWN, name="") for each in (MEAN, STEPS, GATHER)],
        1,
        [MISSING.format(name) for name in ALL],
    ),
    "deleted": ([MEAN, GATHER], 0, [MISSING.format("steps")]),
    "no code": (
        [MEAN, replace(STEPS, is_code=False), GATHER],
        0,
        [MISSING.format("steps"), "!the cell of steps is no code cell any more"],
    ),
    "rewritten": ([FAILS, MEAN, WRONG, replace(CHECKED, text="print('right')"), GATHER], 0, ["code cell 1 failed"]),
    "copied": ([MEAN, WRONG, CHECKED, GATHER, STEPS, UNTOUCHED], 1, [COPIED]),
    "older copy below": ([MEAN, STEPS, CHECKED, GATHER, WRONG, UNTOUCHED], 0, [COPIED, f"!{OLDER}"]),
}


@pytest.mark.parametrize(("cells", "steps", "notes"), CHANGES.values(), ids=CHANGES)
def test_a_notebook_with_added_lost_and_copied_cells_is_judged_by_what_it_defines_and_noted(
    cells: list[Cell], steps: int, notes: list[str], graded: Grading
) -> None:
    report = graded(cells)
    assert (points(report), report.note) == (ALL | {"steps": steps}, "; ".join(note.strip("!") for note in notes))
    assert report.look_at == [note[1:] for note in notes if note.startswith("!")]


def test_the_notebook_of_another_lab_is_to_be_looked_at(sample: Material, root: Path) -> None:
    submission = Submission("", "")
    fit(read(next((root / "labs").glob("06_*/solution.ipynb"))), sample, submission)
    assert submission.look_at == ["this is the notebook of another lab"]


def test_a_judge_that_fails_is_a_fault_for_the_instructor(sample_source: Path, graded: Grading) -> None:
    def judge(answer: Answer, generator: object) -> Verdict:
        raise KeyError("unforeseen")

    report = graded(of=notebook.load(sample_source, sample_lab.lab(judge)))
    assert report.troubles == ["mean: KeyError: 'unforeseen'"]


def test_when_the_time_for_the_lab_is_used_up_earlier_points_stay(sample_source: Path, graded: Grading) -> None:
    short = notebook.load(sample_source, sample_lab.lab(seconds_per_cell=3, seconds=4))
    report = graded(of=short, steps="while True: pass", all_gather="while True: pass")
    assert points(report) == {"mean": 2, "steps": 0, "all_gather": 0}
    assert "stopped after 4 s in all" in report.note


UNREADABLE = ["", "null", '{"cells": [3]}', json.dumps({"cells": [{"cell_type": "code", "source": "x"}] * 501})]


@pytest.mark.parametrize("form", ["utf-8-sig", "utf-16", "utf-32-be"])
def test_a_notebook_is_read_in_each_form_of_unicode_and_up_to_its_end(form: str, tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "metadata": {}, "source": "answer = 1"}]
    file = tmp_path / "lab.ipynb"
    file.write_bytes((json.dumps({"cells": cells}) + ' of a longer file"}').encode(form))
    assert [cell.text for cell in read(file)] == ["answer = 1"]


def test_what_is_no_notebook_or_too_large_or_a_pipe_is_unreadable(tmp_path: Path) -> None:
    for content in UNREADABLE:
        (tmp_path / "lab.ipynb").write_text(content)
        with pytest.raises(Unreadable, match=r"format 4|more than 500"):
            read(tmp_path / "lab.ipynb")
    os.mkfifo(tmp_path / "pipe.ipynb")
    with pytest.raises(Unreadable, match="not a plain file"):
        read(tmp_path / "pipe.ipynb")


RING = "from distlab import collectives\nasync def ring_all_reduce(rank, array):\n"
RING += "    return await collectives.ring_all_reduce(rank, array)\n"
SAVE = "import sys\nsys.modules['lab_07.observe'].call_save = save = lambda *anything: {}"
SLOW = "def train(records, decode, augment, model, batch, together, epochs):\n    slow(**locals())\n"
FORGERIES = {
    "replaces the function that looks": ("07", "save", SAVE, "changes the checker's own functions"),
    "takes the course's own function": ("06", "ring_all_reduce", RING, "AttributeError: module"),
    "hides executions": ("02", "train", f"{SLOW}tf.keras.callbacks.CallbackList.on_train_batch_end = lambda *step: None", ""),
}  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="jails are Linux's")
@pytest.mark.usefixtures("isolated")
@pytest.mark.parametrize(("number", "exercise", "answer", "said"), FORGERIES.values(), ids=FORGERIES)
def test_what_is_seen_beside_a_student_s_code_cannot_easily_be_forged(
    number: str, exercise: str, answer: str, said: str, root: Path, kind: Kind
) -> None:
    lab = notebook.load(next((root / "labs").glob(f"{number}_*/lab.py")))
    solved = read(next((root / "labs").glob(f"{number}_*/solution.ipynb")))
    cells = [replace(cell, text=answer) if cell.name == exercise else cell for cell in solved]
    report = Submission("", lab.lab.name)
    grade(report, cells, lab, kind, seed=3)
    assert report.troubles == []
    for each in report.exercises:
        if each.name == exercise:
            assert each.verdict.share == 0 and said in f"{each.verdict.text} {each.error}", each
        else:
            assert each.points == each.most, each


HABITS = """
import builtins, os, shutil, tempfile, threading, time
from pathlib import Path
import numpy as np
from distlab import collectives, data, draw
import matplotlib.pyplot as plt
sum = sorted = None
print = builtins.print
np.random.seed(1), np.set_printoptions(precision=3), draw.apply_style(), plt.plot([1, 2])
os.environ["X"] = "1"
shutil.copy(Path("/etc/hosts"), tempfile.mkdtemp())
threading.Thread(target=time.sleep, args=[0]).start()
import tensorflow as tf
from distlab import models
class Own(tf.keras.Model):
    def train_step(self, data):
        return {}
tf.keras.utils.set_random_seed(1)
model = models.mlp()
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
batches = tf.data.Dataset.from_tensor_slices((np.zeros((9, 28, 28)), np.zeros(9))).shuffle(9).batch(4)
model.fit(batches, verbose=0, callbacks=[tf.keras.callbacks.LambdaCallback()])
model.save("model.keras"), tf.keras.models.load_model("model.keras").evaluate(batches, verbose=0)
step = tf.function(lambda x: model(x, training=True))(np.zeros((1, 28, 28)))
"""


def test_what_students_usually_do_changes_nothing_of_the_checker(root: Path, kind: Kind) -> None:
    lab = notebook.load(next((root / "labs").glob("03_*/lab.py")))
    cells = read(next((root / "labs").glob("03_*/solution.ipynb")))
    report = Submission("", lab.lab.name)
    grade(report, [*cells, Cell(Role.OWN, "", HABITS)], lab, kind, seed=3)
    assert (report.score, report.note) == (lab.lab.points, "")
