"""The verdict of a check as a card in a notebook: green or amber, the points, the hint, and what comes next.

`verdict.parts` writes `NAME: wrong: PLACE: HINT` below a line that counts the parts. The card has the points instead of
that line, the hint first, and in grey its part and place, and the parts that wait for others.
"""

import html
import re
from collections.abc import Iterable
from itertools import groupby

from distlab.labs.verdict import NOT_DONE, RIGHT, WRONG, Verdict

SIGNS = {RIGHT: "✔ right", WRONG: "✘ not right yet", NOT_DONE: "… not done yet"}
_COLOURS = {RIGHT: "#2e7d32", WRONG: "#b26a00", NOT_DONE: "#757575"}
_COUNT = re.compile(r"\d+ of \d+ parts (?:is|are) right\.")
_PART = re.compile(r"(.+?): (wrong|not done yet)(?:: ((?:with|for|on|in) [^:`'{]+: )?(.+))?")
_WAITS = "must be right first"
_HINT, _GREY = "margin: .4em 0 0; font-size: 1.1em", "margin: .2em 0 0; opacity: .75"
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
    said = _paragraphs(verdict.text.split("\n")) if verdict.is_right else _hints(verdict.text)
    return f'<div style="{style}">{head}{said}{below}</div>'


def _hints(text: str) -> str:
    """Each hint, with its part and place in grey below its first line; last, in one line, the parts not reached yet."""
    first, *lines = text.split("\n")
    if not _COUNT.fullmatch(first):
        return _paragraphs([first], _HINT) + _paragraphs(lines)
    shown, unreached, below = "", list[str](), list[str]()
    for line in lines:
        if (part := _PART.fullmatch(line)) is None:
            below.append(line)
            continue
        name, state, place, hint = part.groups("")
        if hint.endswith(_WAITS):
            unreached.append(name)
            continue
        where = f"{name}, {place.removesuffix(': ')}" if place else name
        shown += _paragraphs(below) + _paragraphs([hint or state], _HINT) + _paragraphs([where], _GREY)
        below = []
    shown += _paragraphs(below)
    return shown + _paragraphs([f"Not reached yet: {', '.join(unreached)}."] if unreached else [], _GREY)


def _paragraphs(text: Iterable[str], style: str = "margin: .4em 0 0") -> str:
    """Lines of text as paragraphs, with `code`; lines in columns stay below each other."""
    parts = []
    for is_aligned, lines in groupby(text, lambda line: bool(_ALIGNED.search(line))):
        if is_aligned:
            parts.append(f'<pre style="margin: .4em 0; overflow-x: auto">{html.escape(chr(10).join(lines))}</pre>')
        else:
            parts += [f'<p style="{style}">{_with_code(line)}</p>' for line in lines if line]
    return "".join(parts)


def _with_code(line: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(line[:1].upper() + line[1:]))
