"""A quiz as HTML that marks itself: no server, no network, and readable where its script does not run or on paper.

The script adds the buttons, so that a page without it has none that do nothing. The explanations are in the page, in a
folded element, where the script reads them too.
"""

import html
import re
from collections.abc import Sequence
from pathlib import Path

from distlab.quizzes import paper
from distlab.quizzes.item import Item, Kind

STYLE, SCRIPT = Path(__file__).with_suffix(".css"), Path(__file__).with_suffix(".js")
PAGE_STYLE = ":root { color-scheme: light dark; } body { font-family: system-ui, sans-serif; margin: 1rem; }"


def fragment(items: Sequence[Item], identifier: str, with_answers: bool = True) -> str:
    """The questions as one element for a notebook's output or a page; without answers there is nothing to unfold.

    identifier: distinguishes the quizzes of a page.
    """
    name = re.sub(r"[^\w-]", "-", identifier)
    questions = "\n".join(
        _question(place, item, f"{name}-{place}", with_answers) for place, item in enumerate(items, 1)
    )
    marking = '\n<p class="score" role="status"></p>' if with_answers else ""
    script = f"\n<script>\n{SCRIPT.read_text().replace('IDENTIFIER', name)}</script>" if with_answers else ""
    return (
        # JupyterLab would take the arrow keys to move from cell to cell.
        f'<section class="distlab-quiz" data-quiz="{name}" aria-label="Quiz" data-lm-suppress-shortcuts="true">\n'
        f"<style>\n{STYLE.read_text()}</style>\n"
        f"{questions}{marking}{script}\n</section>"
    )


def document(items: Sequence[Item], title: str, identifier: str, with_answers: bool) -> str:
    """The same as a whole page."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n"
        f"<style>{PAGE_STYLE}</style>\n"
        f"</head>\n<body>\n<main>\n<h1>{html.escape(title)}</h1>\n"
        f"{fragment(items, identifier, with_answers)}\n</main>\n</body>\n</html>"
    )


def _question(place: int, item: Item, name: str, with_answers: bool) -> str:
    block = f"\n<pre>{html.escape(item.block)}</pre>" if item.block else ""
    tolerance = f' data-tolerance="{item.tolerance:g}"' if with_answers and item.kind is Kind.NUMBER else ""
    return (
        f'<fieldset data-number="{place}"{tolerance}>\n<legend>{place}. {_inline(item.text)}</legend>{block}\n'
        f"<p>{html.escape(paper.task(item))}</p>\n{_fields(item, name)}"
        + ('\n<p role="status"></p>\n' + _answers(item) if with_answers else "")
        + "\n</fieldset>"
    )


def _fields(item: Item, name: str) -> str:
    if item.kind is Kind.NUMBER:
        return (
            f'<label class="number">Answer: <input type="text" inputmode="decimal" autocomplete="off" name="{name}"> '
            f"{html.escape(item.unit)}</label>"
        )
    kind = "radio" if item.kind is Kind.ONE else "checkbox"
    return "\n".join(
        f'<label>({letter}) <input type="{kind}" name="{name}" value="{place}"> '
        f"<span>{_inline(option.text)}</span></label>"
        for place, (letter, option) in enumerate(paper.lettered(item))
    )


def _answers(item: Item) -> str:
    notes = []
    for letter, option in paper.lettered(item):
        value = "" if option.value is None else f' data-value="{option.value!r}"'
        right = ' data-right="yes"' if option.is_right else ""
        why = f'{"Right. " * option.is_right}<span class="why">{_inline(option.explanation)}</span>'
        notes.append(f"<li{value}{right}>{_inline(paper.label(item, letter, option))}: {why}</li>")
    return "<details><summary>Answer and explanations</summary>\n<ul>\n" + "\n".join(notes) + "\n</ul></details>"


def _inline(text: str) -> str:
    """Plain text as HTML, with `code` in backticks."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))
