"""The labs: exercises, checks that answer at once, and grading. What an author of a lab has to know stands here.

A lab is two files:

- `labs/src/NN_topic.py`, its text: a notebook (jupytext, py:percent) in nbgrader's format, with the solutions in it.
  `make labs` makes the student's `labs/NN_topic/lab.ipynb` and the executed `solution.ipynb` from it.
- `src/distlab/labs/lab_NN.py`, its judges: what each exercise demands, written once, for the check in the student's
  notebook and for the grading alike. It ends with `LAB = Lab("NN_topic", [exercise, …])`, in the notebook's order.

**The text.** A given code cell near the top makes the check, and each exercise has two code cells, one after the other:

    # %%
    from distlab.labs import checker

    check = checker("06")

    # %% nbgrader={"grade": false, "grade_id": "mean", "locked": false, "schema_version": 3, "solution": true, "task": false}
    def mean(values):
        ### BEGIN SOLUTION
        return sum(values) / len(values)
        ### END SOLUTION

    # %% nbgrader={"grade": true, "grade_id": "check_mean", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
    check("mean")
    ### BEGIN HIDDEN TESTS
    check.points("mean")
    ### END HIDDEN TESTS

The answer cell's grade_id is the exercise's name, the check cell's is `check_` and the name; points are the exercise's
points. What stands between BEGIN and END SOLUTION becomes a comment and `...` in the student's notebook, so that an
untouched cell runs: a function then gives None, and for a value write `answer = None` before BEGIN SOLUTION. Every
other code cell is given: it runs in the grading too, from the source and not from the student's copy. Keep given cells
fast (no figure, no training) and import TensorFlow only in a lab that needs it, which says so: `Lab(…,
tensorflow=True)`. A course module that holds what an exercise asks for is named in `Lab(…, solved_in=[…])`: in grading,
cells that use it, or of the labs' modules what no given cell uses, are not run. Grading starts in a folder of its own
with copies of the lab's other files (`labs/NN_topic/*.py`, *.json), may write there, and has no network.

**The judge.** A function of the student's answer and a random generator that gives a verdict:

    def judge_mean(answer: Answer, generator: np.random.Generator) -> Verdict:
        values = generator.normal(size=7)
        given = answer.call("mean", values)
        if not isinstance(given, float):
            return wrong("mean gives a number, not an array: add up first, then divide.")
        if np.isclose(given, values.sum() / 2):
            return wrong("The sum is divided by 2: how many values are there?")
        return right() if np.isclose(given, values.mean()) else wrong("It is not the mean; try [1, 2, 6] by hand.")

    LAB = Lab("06_collectives_and_ring_all_reduce", [Exercise("mean", points=2, judge=judge_mean)])

The check hands in a generator with a fixed seed, grading one with a secret seed: draw every input from it. Expect hints
to be read while the student looks at the answer: one or two sentences that fit the mistake, never the solution.
Verdicts: `right()`, `wrong(hint)`, `not_done(why)`; for parts that are independent `parts({"first": verdict, …})`, with
points in proportion. `wrong(…, picture=…)` and `right(picture=…)` take a function that gives a `Picture` (SVG and its
description); it is called only where the picture is shown.

**The answer.** A judge asks for the student's work through `Answer` alone; in grading the work lives in another
process.

- `answer.value("name")`: a variable.
- `answer.call("name", *arguments, **keywords)`: what the student's function gives for them.
- `answer.run("name", world, inputs)`: the student's coroutine as rank program on a `distlab.simulate.World`; gives the
  `Run`, whose events, steps and bytes are the world's own books, which the student's code cannot reach.
- `answer.inside(function, *arguments)`: `function(namespace, *arguments)`, a function of the lab's own module, runs
  beside the student's code, for what cannot be asked otherwise (train a model, start a program). What it gives can be
  forged by a student who takes the trouble (`sandbox.unchanged` finds the easy ways). So let it work on hidden inputs
  and give raw data, arrays and not verdicts, which the judge compares with what it has computed by itself. What can only
  be seen when it happens, a call or a moment, the judge takes down in its own process: with `respond=…` the function
  gets an `ask` too, and what it asks the judge answers (`stopwatch.Stopwatch`, `rehearsal.Collectives`).
- `answer.source("name")`: the text of the student's function or class, without running it.

What crosses is plain: None, truth values, numbers, texts, bytes, NumPy arrays of numbers, and lists, tuples and
dictionaries of these (`distlab.labs.plain_data`). NumPy's scalars become Python's numbers, other arrays (TensorFlow's
tensors) NumPy's. Arguments are copies. Every question can raise an `AnswerError`; a judge lets it pass unless it has a
better hint (a judge's own error is caught too, but is a fault, which tests should not find: `verdict.fault`): what raised, what is not there yet, what gave None (`NotDone`) or what took too long becomes a fitting
verdict by itself. So do the errors of `distlab.simulate` (a deadlock, say).

**Trying a judge** in a test, without a notebook:

    verdict = LAB["mean"].verdict(OwnAnswer({"mean": lambda values: sum(values) / len(values)}))
    assert verdict.is_right and verdict.share == 1

`verdict.state` is RIGHT, WRONG or NOT_DONE, `verdict.text` the hint, `verdict.share` the part of the points, 0 to 1.
"""  # noqa: E501  (a cell's marker is one line)

from distlab.labs.answer import Answer, OwnAnswer
from distlab.labs.answer_errors import AnswerError, NotDone, NotPlain, Raised, TookTooLong
from distlab.labs.check import Checker, checker
from distlab.labs.lab import Exercise, Lab
from distlab.labs.verdict import NOT_DONE, RIGHT, WRONG, Picture, Verdict, not_done, parts, right, wrong

__all__ = [
    "NOT_DONE",
    "RIGHT",
    "WRONG",
    "Answer",
    "AnswerError",
    "Checker",
    "Exercise",
    "Lab",
    "NotDone",
    "NotPlain",
    "OwnAnswer",
    "Picture",
    "Raised",
    "TookTooLong",
    "Verdict",
    "checker",
    "not_done",
    "parts",
    "right",
    "wrong",
]
