"""The page of feedback for one student and lab. Everything that came from the student is shown as text."""

import base64
from html import escape
from pathlib import Path

from distlab.grading.grade import Graded, Report
from distlab.grading.grades import Grade
from distlab.labs.verdict import NOT_DONE, RIGHT

_SIGNS = {RIGHT: "✔ right", NOT_DONE: "… not done"}

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; color: #222; }}
h2 {{ margin-top: 2rem; border-top: 1px solid #ddd; padding-top: 1rem; }}
pre {{ background: #f6f6f6; padding: .75rem; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; }}
p.verdict {{ white-space: pre-wrap; padding: .5rem .75rem; border-left: .3rem solid #767676; }}
p.right {{ border-color: #009e73; }}
p.wrong {{ border-color: #d55e00; }}
table {{ border-collapse: collapse; }}
th, td {{ text-align: left; padding: .25rem .75rem; border-bottom: 1px solid #ddd; }}
td.number {{ text-align: right; font-variant-numeric: tabular-nums; }}
img {{ max-width: 100%; }}
</style></head><body>
<h1>{title}</h1>
<p><strong>{score:g} of {most:g} points.</strong>{note}</p>
{table}
{exercises}
<p><small>{protections}</small></p>
</body></html>
"""


def write(grade: Grade, report: Report, protections: str, folder: Path) -> Path:
    """Write `folder`/STUDENT/NN_topic.html; `protections` says in a sentence what the sandbox held off."""
    file = folder / grade.student / f"{grade.lab}.html"
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = "".join(
        f"<tr><td>{escape(graded.exercise.name)}</td><td>{_sign(graded)}</td>"
        f'<td class="number">{graded.points:g}</td><td class="number">{graded.exercise.points:g}</td></tr>'
        for graded in report.exercises
    )
    page = _PAGE.format(
        title=escape(f"{grade.student}: lab {grade.lab}"),
        score=grade.score,
        most=grade.max_score,
        note=f" {escape(grade.note)}" if grade.note else "",
        table=f"<table><tr><th>exercise</th><th></th><th>points</th><th>of</th></tr>{rows}</table>" if rows else "",
        exercises="\n".join(map(_exercise, report.exercises)),
        protections=escape(protections),
    )
    file.write_text(page, encoding="utf-8", errors="backslashreplace")
    return file


def _exercise(graded: Graded) -> str:
    kind = {RIGHT: "right", NOT_DONE: "open"}.get(graded.verdict.state, "wrong")
    parts = [
        f"<h2>{escape(graded.exercise.name)}: {graded.points:g} of {graded.exercise.points:g}</h2>",
        f'<p class="verdict {kind}">{_sign(graded)}{_rest(graded.verdict.text)}</p>',
    ]
    if graded.error and graded.error not in graded.verdict.text:
        parts.append(f"<p>{escape(graded.error)}</p>")
    if graded.picture is not None:
        # As an image, so that nothing in it can run.
        data = base64.b64encode(graded.picture.svg.encode()).decode()
        parts.append(f'<img alt="{escape(graded.picture.description)}" src="data:image/svg+xml;base64,{data}">')
    if graded.text and graded.verdict.state != NOT_DONE:
        parts.append(f"<details><summary>The answer</summary><pre>{escape(graded.text)}</pre></details>")
    if graded.printed.strip():
        parts.append(
            f"<details><summary>What it printed at last</summary><pre>{escape(graded.printed)}</pre></details>"
        )
    return "\n".join(parts)


def _sign(graded: Graded) -> str:
    return _SIGNS.get(graded.verdict.state, "✘ not right")


def _rest(text: str) -> str:
    return f". {escape(text)}" if text else ""
