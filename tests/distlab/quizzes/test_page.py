"""The HTML of a quiz: accessible, without requests, and marking itself in a browser."""

import re
from collections import Counter

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Browser, expect

from distlab import quizzes
from distlab.quizzes import Kind, page

TITLE = "Questions"


@pytest.mark.parametrize("chapter", ["06", "08b"])
def test_each_question_is_a_fieldset_with_labelled_fields_and_requests_nothing(chapter: str) -> None:
    items = quizzes.ask(chapter).items
    text = page.document(items, TITLE, "a b", True)
    tree = BeautifulSoup(text, "html.parser")
    assert len(tree("fieldset")) == len(tree.select("fieldset > legend")) == len(tree("details")) == 10
    assert len(tree.select("fieldset label input")) == len(tree("input"))
    assert len(tree(role="status")) == 11 and tree.html["lang"] == "en"
    # The buttons of one question share a name that no other has.
    names = Counter(field["name"] for field in tree("input"))
    assert sorted(names.values()) == sorted(1 if item.kind is Kind.NUMBER else len(item.options) for item in items)
    assert not re.search(r"https?://|@import|url\(|\bfetch\(|XMLHttp|<link|<img|<iframe", text)
    assert not tree(src=True) and not tree(href=True)


def test_a_sheet_without_answers_contains_none() -> None:
    items = quizzes.ask("06").items
    text = page.document(items, TITLE, "quiz", False)
    assert "<details" not in text and "<script" not in text
    assert "data-right" not in text and "data-value" not in text and "data-tolerance" not in text
    assert not any(page._inline(option.explanation) in text for item in items for option in item.options)


ANSWER = """(isRight) => document.querySelectorAll("fieldset").forEach((question) => {
  const notes = [...question.querySelectorAll("li")], inputs = [...question.querySelectorAll("input")];
  const chosen = notes.filter((note) => (note.dataset.right === "yes") === isRight);
  if (inputs[0].type === "text") {
    inputs[0].value = Number(chosen[0].dataset.value).toLocaleString("en-US", {maximumSignificantDigits: 3})
      + inputs[0].nextSibling.textContent;
  } else {
    chosen.slice(0, inputs[0].type === "radio" ? 1 : undefined).forEach(
      (note) => { inputs[notes.indexOf(note)].checked = true; });
  }
  question.querySelector("button").click();
})"""


@pytest.mark.slow
@pytest.mark.parametrize(("is_right", "score"), [(True, "10 of 10 right"), (False, "0 of 10 right")])
def test_a_browser_marks_right_answers_also_rounded_with_commas_and_units_and_usual_mistakes(
    browser: Browser, is_right: bool, score: str
) -> None:
    window = browser.new_page()
    window.set_content(page.document(quizzes.ask("06").items, TITLE, "quiz", True))
    window.evaluate(ANSWER, is_right)
    expect(window.locator(".score")).to_have_text(score)
