"""The verdict of a check as a card in a notebook: green or amber, the points, the hint, and what comes next."""

import html
import re
from itertools import groupby

from distlab.labs.verdict import NOT_DONE, RIGHT, WRONG, Verdict

SIGNS = {RIGHT: "✔ right", WRONG: "✘ not right yet", NOT_DONE: "… not done yet"}
_COLOURS = {RIGHT: "#2e7d32", WRONG: "#b26a00", NOT_DONE: "#757575"}
_ALIGNED = re.compile(r"^ |\S {2,}\S")  # columns, which need letters of one width


def card(name: str, verdict: Verdict, points: float, next_name: str | None) -> str:
    """HTML of the verdict on the exercise `name`, worth `points`; `next_name` is the exercise after it, if any."""
    colour, (sign, state) = _COLOURS[verdict.state], SIGNS[verdict.state].split(" ", 1)
    reached = f"{points * verdict.share:g} of {points:g} {'point' if points == 1 else 'points'}"
    style = f"border-left: 5px solid {colour}; background: {colour}14; padding: .6em 1em; max-width: 44em"
    head = f'<p style="margin: 0"><strong>{sign} {html.escape(name)} is {state}</strong>, {reached}</p>'
    below = ""
    if verdict.is_right:
        following = f"<code>{html.escape(next_name)}</code>" if next_name else "that was the last exercise of this lab"
        below = f'<p style="margin: .5em 0 0">Next: {following}.</p>'
    return f'<div style="{style}">{head}{_paragraphs(verdict.text)}{below}</div>'


def _paragraphs(text: str) -> str:
    """Lines of text as paragraphs, with `code`; lines in columns stay below each other."""
    parts = []
    for is_aligned, lines in groupby(text.split("\n") if text else [], lambda line: bool(_ALIGNED.search(line))):
        if is_aligned:
            parts.append(f'<pre style="margin: .4em 0; overflow-x: auto">{html.escape(chr(10).join(lines))}</pre>')
        else:
            parts += [f'<p style="margin: .4em 0 0">{_with_code(line)}</p>' for line in lines if line]
    return "".join(parts)


def _with_code(line: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(line[:1].upper() + line[1:]))
