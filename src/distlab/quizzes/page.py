"""A quiz as HTML that marks itself: no server, no network, and readable where its script does not run or on paper.

The script adds the buttons, so that a page without it has none that do nothing. The explanations are in the page, in a
folded element, where the script reads them too.
"""

import html
import re
from collections.abc import Sequence

from distlab.quizzes import paper
from distlab.quizzes.item import Item, Kind

STYLE = """
.distlab-quiz { max-width: 46rem; line-height: 1.5; }
.distlab-quiz fieldset { border: 1px solid rgba(128, 128, 128, 0.6); border-radius: 6px; margin: 0 0 1rem;
  padding: 0.4rem 1rem 0.8rem; min-width: 0; break-inside: avoid; }
.distlab-quiz legend { font-weight: 600; padding: 0; float: left; width: 100%; margin: 0.4rem 0; }
.distlab-quiz legend + * { clear: both; }
.distlab-quiz pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 0.85em;
  padding: 0.5rem; margin: 0.3rem 0; background: rgba(128, 128, 128, 0.12); }
.distlab-quiz p { margin: 0.3rem 0; }
.distlab-quiz label { display: flex; gap: 0.6rem; align-items: baseline; padding: 0.25rem 0; }
.distlab-quiz label.number { display: block; }
.distlab-quiz input[type=text] { width: 8em; font: inherit; }
.distlab-quiz button { font: inherit; margin: 0.4rem 0; padding: 0.2rem 0.9rem; }
.distlab-quiz summary { cursor: pointer; }
.distlab-quiz ul { margin: 0.3rem 0; padding-left: 1.4rem; }
@media print { .distlab-quiz button, .distlab-quiz details, .distlab-quiz [role=status] { display: none; } }
"""
PAGE_STYLE = ":root { color-scheme: light dark; } body { font-family: system-ui, sans-serif; margin: 1rem; }"
SCRIPT = """
document.querySelectorAll('.distlab-quiz[data-quiz="IDENTIFIER"]').forEach(function (quiz) {
  if (quiz.dataset.ready) { return; }
  quiz.dataset.ready = "yes";
  var questions = Array.from(quiz.querySelectorAll("fieldset"));
  var score = quiz.querySelector(".score");
  function number(text) {
    text = text.trim().replace(/[\\s%]/g, "").replace("\\u2212", "-");
    text = /^-?\\d+,\\d+$/.test(text) && !/^-?[1-9]\\d{0,2},\\d{3}$/.test(text) ? text.replace(",", ".") :
      text.replace(/,/g, "");
    return text === "" ? NaN : Number(text);
  }
  function judged(question) {
    var notes = Array.from(question.querySelectorAll("li"));
    var field = question.querySelector("input[type=text]");
    if (field) {
      var value = number(field.value);
      if (isNaN(value)) { return [null, "Enter a number."]; }
      var tolerance = Number(question.dataset.tolerance) + 1e-9;
      var note = notes.find(function (note) {
        var expected = Number(note.dataset.value);
        return Math.abs(value - expected) <= tolerance * Math.abs(expected);
      });
      if (!note) { return [false, "Not right. Think again, or open the answer."]; }
      var isRight = note.dataset.right === "yes";
      return [isRight, (isRight ? "" : "Not right. ") + note.querySelector(".why").textContent];
    }
    var boxes = Array.from(question.querySelectorAll("input"));
    var chosen = boxes.filter(function (box) { return box.checked; });
    if (!chosen.length) { return [null, "Choose an answer first."]; }
    var wrong = boxes.findIndex(function (box, place) {
      return box.checked && notes[place].dataset.right !== "yes";
    });
    if (wrong >= 0) { return [false, "Not right. " + notes[wrong].querySelector(".why").textContent]; }
    var rights = notes.filter(function (note) { return note.dataset.right === "yes"; });
    if (chosen.length < rights.length) { return [false, "Right so far, but one or more are missing."]; }
    return [true, rights.map(function (note) { return note.querySelector(".why").textContent; }).join(" ")];
  }
  questions.forEach(function (question) {
    var status = question.querySelector("[role=status]");
    var button = document.createElement("button");
    button.type = "button";
    button.textContent = "Check";
    button.setAttribute("aria-label", "Check question " + question.dataset.number);
    question.insertBefore(button, status);
    function check() {
      var result = judged(question);
      status.textContent = result[1];
      question.dataset.state = result[0] === null ? "" : result[0] ? "right" : "wrong";
      var count = questions.filter(function (each) { return each.dataset.state === "right"; }).length;
      score.textContent = count + " of " + questions.length + " right";
    }
    button.addEventListener("click", check);
    question.addEventListener("keydown", function (event) {
      if (event.key === "Enter" && event.target.tagName === "INPUT") { event.preventDefault(); check(); }
    });
  });
});
"""


def fragment(items: Sequence[Item], identifier: str, with_answers: bool = True) -> str:
    """The questions as one element for a notebook's output or a page; without answers there is nothing to unfold.

    identifier: distinguishes the quizzes of a page.
    """
    name = re.sub(r"[^\w-]", "-", identifier)
    questions = "\n".join(
        _question(place, item, f"{name}-{place}", with_answers) for place, item in enumerate(items, 1)
    )
    marking = '\n<p class="score" role="status"></p>' if with_answers else ""
    script = f"\n<script>{SCRIPT.replace('IDENTIFIER', name)}</script>" if with_answers else ""
    return (
        # JupyterLab would take the arrow keys to move from cell to cell.
        f'<section class="distlab-quiz" data-quiz="{name}" aria-label="Quiz" data-lm-suppress-shortcuts="true">\n'
        f"<style>{STYLE}</style>\n"
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
        f'<label><input type="{kind}" name="{name}" value="{place}"> '
        f"<span>({paper.LETTERS[place]}) {_inline(option.text)}</span></label>"
        for place, option in enumerate(item.options)
    )


def _answers(item: Item) -> str:
    notes = []
    for letter, option in zip(paper.LETTERS, item.options, strict=False):
        label = option.text if item.kind is Kind.NUMBER else f"({letter})"
        value = "" if option.value is None else f' data-value="{option.value!r}"'
        right = ' data-right="yes"' if option.is_right else ""
        why = f'<span class="why">{_inline(paper.verdict(option))}</span>'
        notes.append(f"<li{value}{right}>{_inline(label)}: {why}</li>")
    return "<details><summary>Answer and explanations</summary>\n<ul>\n" + "\n".join(notes) + "\n</ul></details>"


def _inline(text: str) -> str:
    """Plain text as HTML, with `code` in backticks."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))
