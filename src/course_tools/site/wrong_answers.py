"""What a check answers: a line of a wrong answer on each lab's page, and the card that the lab's judge gives it.

Lab 06 has a picture of one in its text.
"""

import ast

import nbformat
from nbformat import NotebookNode

from course_tools.site.notebook_pages import names
from distlab.labs import OwnAnswer, registry
from distlab.labs.card import card

# By lab: the exercise, a piece of a line of its solution, and what a student may write instead.
PIECES = {
    "02": ("plan", 'per epoch"] = executions', 'per epoch"] = steps / together'),
    "03": ("numbers", "steps_per_epoch * epochs", "steps_per_epoch * epochs * replicas"),
    "04": ("factors", "1 / replicas", "1"),
    "05": ("housekeeping", 'files["index"] and all', "all"),
    "07": ("tf_config", "json.dumps(", "str("),
    "08": ("may_begin", "<= lead", "< lead"),
    "09": ("program", "pin by local rank", "pin by rank"),
    "10": ("plan", "global_batch / known_batch", "ranks"),
    "11": ("alpha_beta", "steps / ranks * sizes", "steps * sizes"),
    "12": ("by_rows", "inputs @ rows) + bias", "inputs @ rows + bias)"),
    "13": ("plan", "interval / 2 / between_faults", "interval / between_faults"),
    "14": ("uneven", "len(counts) * counts[rank]", "counts[rank]"),
    "15": ("rent", "jobs * offer", "offer"),
    "16": ("throughput", "np.median", "np.mean"),
}


def show(lab: NotebookNode, number: str) -> None:
    """Put a wrong answer and what its check says below the first cell's text, if this lab has one."""
    if number not in PIECES:
        return
    name, right, wrong = PIECES[number]
    solution = nbformat.read(registry.JUDGES[number] / "solution.ipynb", as_version=4)
    code = [cell for cell in solution.cells if cell.cell_type == "code"]
    [answer] = [cell.source for cell in code if cell.metadata.get("nbgrader", {}).get("grade_id") == name]
    changed = answer.replace(right, wrong)
    namespace: dict[str, object] = {}
    exec(_imports(code[0].source, names(answer)[1]), namespace)
    exec(changed, namespace)
    exercise = registry.lab(number)[name]
    said = card(name, exercise.verdict(OwnAnswer(namespace)), exercise.points, None)
    line = next(new for old, new in zip(answer.split("\n"), changed.split("\n"), strict=True) if new != old)
    example = f"So a check answers, where `{name}` has this line:\n\n```python\n{line.strip()}\n```"
    lab.cells[0].source += f'\n\n{example}\n\n<div style="margin-bottom: 1.5rem">{said}</div>'


def _imports(source: str, used: set[str]) -> str:
    """The imports of a cell that bring one of the names."""
    imports = [node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)]
    return "\n".join(ast.unparse(node) for node in imports if {each.asname or each.name for each in node.names} & used)
