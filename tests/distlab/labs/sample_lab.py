"""A small lab for the tests of grading: a function, a value and a rank program, and their right answers."""

import re

import numpy as np

from course_tools.grading.submissions import Submission
from distlab.labs import Answer, Exercise, Lab, Verdict, right, wrong
from distlab.labs.lab import Judge
from distlab.simulate import Network, World

STEPS = Network(latency=1.0, seconds_per_byte=0.0)


def judge_mean(answer: Answer, generator: np.random.Generator) -> Verdict:
    values = generator.normal(size=7)
    given = answer.call("mean", values)
    if not isinstance(given, float):
        return wrong("mean gives a number")
    return right() if np.isclose(given, values.mean()) else wrong("it is not the mean")


def judge_steps(answer: Answer, generator: np.random.Generator) -> Verdict:
    given = answer.value("steps")
    return right() if type(given) is int and given == 6 else wrong("count again")


def judge_ring(answer: Answer, generator: np.random.Generator) -> Verdict:
    for size in (2, 3, 5):
        inputs = generator.integers(0, 100, (size, 6)).astype(float)
        run = answer.run("all_gather", World(size, STEPS), list(inputs))
        if not all(isinstance(got, np.ndarray) and np.array_equal(got, inputs) for got in run.results):
            return wrong("a rank does not hold all inputs in order")
        if run.elapsed != size - 1 or run.bytes_sent != size * (size - 1) * 48:
            return wrong(f"{size} ranks took {run.elapsed:g} steps and {run.bytes_sent} bytes")
    return right()


def lab(judge_of_mean: Judge = judge_mean, seconds_per_cell: float = 6.0, seconds: float = 60.0) -> Lab:
    """The lab; its limits are short for answers that never end, and long enough for a loaded machine."""
    exercises = [
        Exercise("mean", 2, judge_of_mean),
        Exercise("steps", 1, judge_steps),
        Exercise("all_gather", 3, judge_ring),
    ]
    return Lab("90_sample", exercises, seconds_per_cell=seconds_per_cell, seconds=seconds)


_MARKED = {
    "mean": """def mean(values):
    ### BEGIN SOLUTION
    return float(sum(values) / len(values))
    ### END SOLUTION
""",
    "steps": """steps = None
### BEGIN SOLUTION
steps = 6
### END SOLUTION
""",
    "all_gather": """async def all_gather(rank, array):
    ### BEGIN SOLUTION
    gathered = np.zeros((rank.size, array.size))
    gathered[rank.index] = part = array
    for step in range(1, rank.size):
        part = await rank.exchange((rank.index + 1) % rank.size, part, (rank.index - 1) % rank.size)
        gathered[(rank.index - step) % rank.size] = part
    return gathered
    ### END SOLUTION
""",
}
ANSWERS = {name: re.sub(r" *### (BEGIN|END) SOLUTION\n", "", text) for name, text in _MARKED.items()}
"""The right answers, by exercise."""


def source() -> str:
    """The lab's text, as a lab.py has it."""
    parts = [
        "# %% [markdown]\n# # Lab 90: a sample\n",
        "# %%\nfrom types import SimpleNamespace\n\nimport numpy as np\n\n"
        "lab = SimpleNamespace(check=print)\nPROGRAM = 'given.py'\n",
    ]
    parts += [f'# %% answer="{exercise.name}"\n{_MARKED[exercise.name]}' for exercise in lab()]
    return "\n".join(parts)


def points(submission: Submission) -> dict[str, float]:
    """The points by exercise."""
    return {each.name: each.points for each in submission.exercises}
