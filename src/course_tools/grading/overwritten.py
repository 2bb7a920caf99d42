"""Names of the lab, such as `lab` or `np`, to which a student's cell has given something else."""

import ast
import re
from collections.abc import Iterator, Sequence

from course_tools.grading.material import LabStep, StepKind
from course_tools.grading.misplaced import defined, statements

ERRORS = ("AttributeError", "TypeError")
"""What a cell raises that finds something else under such a name."""


def where(steps: Sequence[LabStep], failed: LabStep) -> str:
    """Which cell has overwritten a name that a failed one needs, such as "code cell 5 has overwritten `lab`"; or "".

    Such names are `lab` and those that an earlier cell imports. Given cells overwrite nothing.
    """
    own, overwritten = set[str](), dict[str, str]()
    for step in steps:
        if step is failed:
            break
        cell = f"the cell of {step.name}" if step.kind == StepKind.ANSWER else step.name
        is_of_lab = step.kind == StepKind.GIVEN or "labs.open" in step.text
        assigned, imported = set(defined(step.text)), set(_imported(step.text))
        of_student = set() if is_of_lab else assigned & own
        overwritten |= dict.fromkeys(of_student, cell)
        renewed = imported | (assigned & {"lab"}) - of_student
        own |= renewed
        overwritten = {name: cell for name, cell in overwritten.items() if name not in renewed}
    name = next((name for name in overwritten if re.search(rf"\b{name}\b", failed.text)), None)
    return f"{overwritten[name]} has overwritten `{name}`" if name else ""


def _imported(text: str) -> Iterator[str]:
    """The names that a cell imports at its top level."""
    for statement in statements(text):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            for alias in statement.names:
                yield alias.asname or alias.name.partition(".")[0]
