"""The verdict of a check as a card in a notebook: green or amber, the points, the hint, and what comes next.

Of an exercise in parts each hint comes first, and in grey its part and place; last the parts that wait for others.
"""

import html
import re
from collections.abc import Iterable
from itertools import groupby

from distlab.labs.verdict import NOT_DONE, RIGHT, WRONG, Verdict

SIGNS = {RIGHT: "✔ right", WRONG: "✘ not right yet", NOT_DONE: "… not done yet"}
_COLOURS = {RIGHT: "#2e7d32", WRONG: "#b26a00", NOT_DONE: "#757575"}
_PLACE = re.compile(r"(with|for|on|in) [^:`'{]+: ")  # a context that reads well after the hint
_HINT, _GREY = "margin: .4em 0 0; font-size: 1.1em", "margin: .2em 0 0; opacity: .75"
_ALIGNED = re.compile(r"^ |\S {2,}\S")  # columns, which need letters of one width


def card(name: str, verdict: Verdict, points: float, next_name: str | None) -> str:
    """HTML of the verdict on the exercise `name`, worth `points`; `next_name` is the exercise after it, if any."""
    colour, (sign, state) = _COLOURS[verdict.state], SIGNS[verdict.state].split(" ", 1)
    reached = f"{points * verdict.share:g} of {points:g} {'point' if points == 1 else 'points'}"
    style = f"border-left: 5px solid {colour}; background: {colour}14; padding: .6em 1em; max-width: 44em"
    head = f'<p style="margin: 0"><strong>{sign} {html.escape(name)} is {state}</strong>, {reached}</p>'
    if not verdict.is_right:
        return f'<div style="{style}">{head}{_hints(verdict)}</div>'
    following = f"<code>{html.escape(next_name)}</code>" if next_name else "that was the last exercise of this lab"
    below = f'<p style="margin: .5em 0 0">Next: {following}.</p>'
    return f'<div style="{style}">{head}{_paragraphs(verdict.text.split(chr(10)))}{below}</div>'


def _hints(verdict: Verdict) -> str:
    """Each hint, with its part and place in grey below its first line; last, in one line, the parts not reached yet."""
    if not verdict.parts:
        first, *more = verdict.text.split("\n")
        return _paragraphs([first], _HINT) + _paragraphs(more)
    shown = ""
    for names, part in verdict.parts:
        if part.waits:
            continue
        is_place = _PLACE.fullmatch(part.context)
        where = f"{names}, {part.context.removesuffix(': ')}" if is_place else names
        first, *more = (part.hint if is_place else part.text or part.state).split("\n")
        shown += _paragraphs([first], _HINT) + _paragraphs([where], _GREY) + _paragraphs(more)
    shown += _paragraphs(verdict.below.split("\n"))
    waiting = ", ".join(names for names, part in verdict.parts if part.waits)
    return shown + _paragraphs([f"Not reached yet: {waiting}."] if waiting else [], _GREY)


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
