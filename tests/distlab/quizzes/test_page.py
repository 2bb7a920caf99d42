"""The HTML of a quiz: accessible, without requests, and marking itself in a browser."""

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

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


DRIVER = """
<script>
document.querySelectorAll("fieldset").forEach(function (question) {
  var notes = Array.from(question.querySelectorAll("li"));
  var inputs = Array.from(question.querySelectorAll("input"));
  var chosen = notes.filter(function (note) { return (note.dataset.right === "yes") === RIGHT; });
  if (inputs[0].type === "text") {
    inputs[0].value = Number(chosen[0].dataset.value).toLocaleString("en-US", {maximumSignificantDigits: 3});
  }
  else if (inputs[0].type === "radio") { inputs[notes.indexOf(chosen[0])].checked = true; }
  else { chosen.forEach(function (note) { inputs[notes.indexOf(note)].checked = true; }); }
  question.querySelector("button").click();
});
document.title = document.querySelector(".score").textContent;
</script>
"""


@pytest.mark.slow
@pytest.mark.parametrize(("is_right", "score"), [("true", "10 of 10 right"), ("false", "0 of 10 right")])
def test_a_browser_marks_right_answers_also_rounded_and_with_commas_and_usual_mistakes(
    tmp_path: Path, is_right: str, score: str
) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        pytest.skip("there is no Chromium on this machine")
    driver = DRIVER.replace("RIGHT", is_right)
    text = page.document(quizzes.ask("06").items, TITLE, "quiz", True).replace("</body>", f"{driver}</body>")
    file = tmp_path / "quiz.html"
    file.write_text(text)
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    command = [browser, *options, file.as_uri()]
    finished = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    assert f"<title>{score}</title>" in finished.stdout
