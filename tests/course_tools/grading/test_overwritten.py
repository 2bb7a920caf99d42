"""Names of the lab that a student's cell has overwritten, by the text of the cells."""

import pytest

from course_tools.grading import overwritten
from course_tools.grading.material import LabStep, StepKind

OPENED = 'import numpy as np\nfrom distlab import labs\n\nlab = labs.open("11")'


@pytest.mark.parametrize("kind", [StepKind.GIVEN, StepKind.OWN])  # in grading, and in a check
@pytest.mark.parametrize(
    ("between", "cell", "said"),
    [
        ("lab = 11", "lab.given", "code cell 2 has overwritten `lab`"),
        ("(np, x) = 1, 2", "np.zeros(3)", "code cell 2 has overwritten `np`"),
        ("lab = 11", "np.zeros(3)", ""),
        ("labels = 11", "lab.given", ""),
        ('lab = labs.open("11")', "lab.givven", ""),
        ("np = 1\nimport numpy as np", "np.zeroes(3)", ""),
        ("x = 1", "x.given", ""),
        ("def lab(: no Python", "lab.given", ""),
    ],
)
def test_the_cell_is_named_whose_name_the_failed_one_needs(kind: StepKind, between: str, cell: str, said: str) -> None:
    steps = [
        LabStep(kind, "code cell 1", OPENED),
        LabStep(StepKind.OWN, "code cell 2", between),
        LabStep(kind, "code cell 3", cell),
    ]
    assert overwritten.where(steps, steps[2]) == said


def test_an_answer_that_has_overwritten_a_name_is_named_and_a_given_cell_is_not() -> None:
    steps = [
        LabStep(StepKind.GIVEN, "cell 1", OPENED),
        LabStep(StepKind.ANSWER, "audit", "lab = 11"),
        LabStep(StepKind.GIVEN, "cell 3", "lab.given"),
    ]
    assert overwritten.where(steps, steps[2]) == "the cell of audit has overwritten `lab`"
    given = [steps[0], LabStep(StepKind.GIVEN, "cell 2", "lab = 11"), steps[2]]
    assert overwritten.where(given, given[2]) == ""
