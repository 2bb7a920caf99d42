"""Every deck of the course in a browser of 1280 × 720, from a folder without a server: each slide is measured."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from course_tools.chapters import chapter_notebooks
from course_tools.slides import build

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
NAMES = [file.stem for file in sorted((ROOT / "notebooks").glob("[0-9][0-9]*_*.ipynb"))]
WIDTH, HEIGHT = 1280, 720
FEWEST, MOST = 12, 25
SMALLEST_LETTERS = 13  # pixels; only in the widest tables
LETTERS_OF_QUESTIONS = 30
# Of each slide: what is outside the page or cut off, letters, pictures, notes, marks before and after a key.
MEASURE = """() => Array.from({length: Reveal.getTotalSlides()}, (_, number) => {
  Reveal.slide(number, 0, -1);
  const slide = Reveal.getCurrentSlide(), frame = slide.querySelector(".frame");
  const every = (what) => [...frame.querySelectorAll(what)];
  const marks = [every("li.right.visible").length];
  Reveal.slide(number, 0, 0);
  marks.push(every("li.right.visible").length);
  const short = (part) => part.outerHTML.slice(0, 150);
  const letters = (part) => parseFloat(getComputedStyle(part).fontSize);
  const words = (text) => text.trim().split(/\\s+/).length;
  const parts = [frame, ...every(":not(math *)")];
  const outside = parts.filter((part) => {
    const box = part.getBoundingClientRect();
    return box.width && (box.left < -1 || box.top < -1 || box.right > innerWidth + 1 || box.bottom > innerHeight + 1);
  });
  const cut = [frame, ...every(".body, .pictures, figure, pre, table")].filter(
    (part) => part.scrollWidth > part.clientWidth + 2 || part.scrollHeight > part.clientHeight + 2);
  const written = parts.filter((part) => [...part.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
  return {
    kind: slide.classList[0],
    heading: frame.querySelector("h1, h2").innerText,
    outside: outside.map(short),
    cut: cut.map(short),
    letters: Math.min(...written.map(letters)),
    asked: every(".asked > p").map(letters),
    pictures: every("img").map((picture) => ({
      words: words(picture.alt), loaded: picture.naturalWidth > 0, height: picture.getBoundingClientRect().height})),
    notes: words(slide.querySelector("aside.notes").textContent),
    marks,
  };
})"""


@pytest.fixture(scope="module")
def decks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("slides")
    build.build(chapter_notebooks(ROOT / "notebooks"), folder)
    return folder


def opened(browser: Browser, page_file: Path) -> tuple[Page, list[str]]:
    """The deck in a new window, and what the browser complains of from then on."""
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    page.set_default_timeout(300_000)
    complaints: list[str] = []
    folder = page_file.parent.resolve().as_uri()
    page.on("console", lambda message: message.type in ("error", "warning") and complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(f"{request.url} was not loaded"))
    page.on("request", lambda request: request.url.startswith(("data:", folder)) or complaints.append(request.url))
    page.goto(page_file.resolve().as_uri(), wait_until="load")
    page.wait_for_function("Reveal.isReady()")
    return page, complaints


@pytest.mark.parametrize("name", NAMES)
def test_a_deck_fits_the_screen_and_can_be_given(browser: Browser, decks: Path, name: str) -> None:
    page, complaints = opened(browser, decks / f"{name}.html")
    slides: list[dict[str, Any]] = page.evaluate(MEASURE)
    page.close()
    assert complaints == []
    assert FEWEST <= len(slides) <= MOST
    assert [slides[0]["kind"], slides[1]["kind"], slides[-1]["kind"]] == ["title", "questions", "recap"]
    kinds = [slide["kind"] for slide in slides]
    assert kinds.count("predict") >= 3 and kinds.count("predict") + kinds.count("quiz") >= 4
    for number, slide in enumerate(slides, start=1):
        where = f"{name}, slide {number}: {slide['heading']}"
        assert slide["outside"] == [] and slide["cut"] == [], where
        assert slide["letters"] >= SMALLEST_LETTERS, where
        assert min(slide["asked"], default=LETTERS_OF_QUESTIONS) >= LETTERS_OF_QUESTIONS, where
        assert all(picture["loaded"] and picture["words"] >= 5 for picture in slide["pictures"]), where
        assert all(picture["height"] >= 250 for picture in slide["pictures"]), where
        assert slide["notes"] > 8, where
        assert slide["marks"] == [0, int(slide["kind"] == "quiz")], where


def test_the_speaker_has_a_window_with_the_notes(browser: Browser, decks: Path) -> None:
    page, _ = opened(browser, decks / f"{NAMES[3]}.html")
    prediction = [slide["kind"] for slide in page.evaluate(MEASURE)].index("predict")
    page.evaluate(f"Reveal.slide({prediction})")
    with page.expect_popup() as popup:
        page.keyboard.press("s")
    notes = popup.value.locator(".speaker-controls-notes .value")
    notes.get_by_text("Let everybody write an answer down before you go on.").wait_for()
    page.close()
