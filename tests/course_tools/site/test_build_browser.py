"""The site in a browser, from a folder without a server: every page at several widths, light and dark, by keyboard."""

import io
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from PIL import Image, ImageChops, ImageStat
from playwright.sync_api import Browser, Page, expect, sync_playwright

from course_tools.site import build
from tests.course_tools.site import accessibility

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium, chromium-browser or google-chrome on PATH"),
]
RING = "notebooks/06_collectives_and_ring_all_reduce.html"
# They have all that the pages' frame, quizzes, films, folded solutions, signatures and lists of names can show.
ONE_OF_EACH_KIND = (
    "index.html",
    RING,
    "labs/06_collectives_and_ring_all_reduce/lab.html",
    "docs/glossary.html",
    "reference/distlab.draw.html",
    "genindex.html",
    "search.html",
)
MILLISECONDS = 300_000
expect.set_options(timeout=MILLISECONDS)
LONGEST_LINE = 90
MOST_BYTES_AT_ONCE = 1_500_000
COUNT_CHARACTERS = """() => {
  let longest = 0;
  for (const text of document.querySelectorAll(".bd-article p")) {
    const height = parseFloat(getComputedStyle(text).lineHeight);
    const box = text.getBoundingClientRect();
    const lines = Math.max(1, Math.round(box.height / height));
    if (lines > 3) longest = Math.max(longest, text.innerText.length / (lines - 0.5));
  }
  return longest;
}"""
CUT_OFF = """() => [...document.querySelectorAll(".bd-article :is(img, svg)")].filter((picture) => {
  const box = picture.getBoundingClientRect();
  return box.width && (box.right > innerWidth + 1 || box.left < -1);
}).map((picture) => picture.outerHTML.slice(0, 200))"""

# A picture without a text, a button without a name; in the dark a pale text and a link known by its colour alone; on a
# narrow window something that scrolls and two targets that are small and near.
FAULTS = """<style>
  html[data-theme=dark] .pale { color: #444 }
  html[data-theme=dark] .bd-article .like-text { text-decoration: none; color: #ddd }
  .wide { overflow-x: auto; white-space: nowrap }
  .narrow { display: inline-block; width: 30px; height: 30px; padding: 0; border: 0; overflow: hidden }
  @media (max-width: 600px) { .narrow { width: 10px; height: 10px } }
</style>
<img src="x.png"><button></button><p>Good. <b class="pale">Pale.</b> See <a class="like-text" href="#x">there</a>.</p>
<div class="wide">A line that fits into the window of a computer, and not into that of a telephone.</div>
<p><button class="narrow">a</button><button class="narrow">b</button></p>"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


class Visitor:
    """A reader with a window and a colour scheme; remembers what the browser complained of and asked for outside."""

    def __init__(self, browser: Browser, site: Path, width: int, scheme: str = "light", **settings: Any) -> None:
        self.site = site
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **settings)  # type: ignore[arg-type]
        context.set_default_timeout(MILLISECONDS)
        self.page = context.new_page()
        self.complaints: list[str] = []
        self.asked: set[str] = set()
        self.page.on("console", lambda message: message.type == "error" and self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("requestfailed", lambda request: self.complaints.append(f"{request.url} was not loaded"))
        self.page.on("request", self._ask)

    def open(self, name: str) -> Page:
        """Open the page in the window; `asked` then has all it asked for until it was loaded."""
        self.asked.clear()
        self.page.goto(f"{self.site.resolve().as_uri()}/{name}", wait_until="load")
        return self.page

    def bytes_asked(self) -> int:
        """The bytes of the files that the page has asked for, itself included."""
        files = {Path(unquote(urlsplit(address).path)) for address in self.asked if address.startswith("file:")}
        return sum(file.stat().st_size for file in files)

    def _ask(self, request: Any) -> None:
        self.asked.add(request.url)
        if not request.url.startswith(("file:", "data:")):
            self.complaints.append(f"asked for {request.url}")


@pytest.fixture(scope="module")
def names(built: build.Site) -> list[str]:
    """Every page of the site."""
    folder = built.index.parent
    files = [file.relative_to(folder) for file in folder.rglob("*.html")]
    return sorted(file.as_posix() for file in files if "_static" not in file.parts)


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1920, "dark")])
def test_every_page_fits_the_window_and_asks_for_nothing_outside(
    browser: Browser, built: build.Site, names: list[str], width: int, scheme: str
) -> None:
    visitor = Visitor(browser, built.index.parent, width, scheme)
    for name in names:
        page = visitor.open(name)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert page.evaluate(CUT_OFF) == [], name
        assert page.evaluate(COUNT_CHARACTERS) <= LONGEST_LINE, name
        assert visitor.complaints == [], name
    assert len(names) > 40
    visitor.page.context.close()


def test_a_page_is_small_and_its_pictures_come_when_the_reader_does(
    browser: Browser, built: build.Site, names: list[str]
) -> None:
    sizes = {}
    for name in names:
        visitor = Visitor(browser, built.index.parent, 1280)  # a new one has nothing in its memory
        visitor.open(name)
        sizes[name] = visitor.bytes_asked()
        if name == RING:
            before = len(visitor.asked)
            visitor.page.locator(".bd-article img").last.scroll_into_view_if_needed()
            visitor.page.wait_for_function("[...document.querySelectorAll('.bd-article img')].at(-1).naturalWidth > 0")
            assert len(visitor.asked) > before
        visitor.page.context.close()
    assert {name: size for name, size in sizes.items() if size > MOST_BYTES_AT_ONCE} == {}
    assert min(sizes.values()) > 500_000  # style sheets and scripts are counted


def test_the_smaller_figures_look_like_the_ones_they_are_made_of(
    browser: Browser, built: build.Site, root: Path
) -> None:
    page = browser.new_page(viewport={"width": 700, "height": 600})
    compared = 0
    for small in sorted((built.index.parent / "_images").glob("[0-9][0-9]_*.svg")):
        images = []
        for file in (root / "figures" / small.name, small):
            page.goto(file.resolve().as_uri())
            images.append(Image.open(io.BytesIO(page.screenshot())).convert("L"))
        difference = ImageChops.difference(*images)
        # The edge of a line that moves by a hundredth of a point is a little darker or lighter.
        assert difference.getextrema()[1] < 80, small.name
        assert ImageStat.Stat(difference).mean[0] < 0.1, small.name
        assert images[1].getextrema() == images[0].getextrema() != (255, 255), small.name
        compared += 1
    assert compared > 30
    page.close()


def test_everybody_can_use_every_page(browser: Browser, built: build.Site, names: list[str]) -> None:
    assert set(ONE_OF_EACH_KIND) <= set(names)
    # Colours that are on their way from light to dark would be neither.
    visitor = Visitor(browser, built.index.parent, 1280, reduced_motion="reduce")
    for name in names:
        page = visitor.open(name)
        is_generated = name.startswith("reference/")
        looks = accessibility.ONE_LOOK if is_generated else accessibility.LOOKS
        looks = accessibility.EVERY_LOOK if name in ONE_OF_EACH_KIND else looks
        assert [*accessibility.violations(page, looks)] == [], name
    visitor.page.context.close()


def test_what_not_everybody_can_use_is_noticed_where_it_is(browser: Browser, built: build.Site) -> None:
    visitor = Visitor(browser, built.index.parent, 1280, reduced_motion="reduce")
    page = visitor.open("docs/glossary.html")
    page.evaluate("faults => document.querySelector('article').insertAdjacentHTML('beforeend', faults)", FAULTS)
    noticed = {(width, scheme, fault["id"]) for width, scheme, fault in accessibility.violations(page)}
    assert noticed == {
        (1280, "light", "image-alt"),
        (1280, "light", "button-name"),
        (390, "dark", "color-contrast"),
        (390, "dark", "link-in-text-block"),
        (390, "dark", "scrollable-region-focusable"),
        (390, "dark", "target-size"),
    }
    visitor.page.context.close()


def test_the_search_finds_a_page_without_a_server(browser: Browser, built: build.Site) -> None:
    visitor = Visitor(browser, built.index.parent, 1280)
    page = visitor.open("search.html?q=Karp-Flatt")
    expect(page.locator("#search-results a").filter(has_text="01 Why distribute").first).to_be_visible()
    page = visitor.open("search.html?q=xyzzyplugh")
    expect(page.locator("#search-results")).to_contain_text("did not match any documents")
    assert visitor.complaints == []
    visitor.page.context.close()


def test_a_quiz_marks_a_choice_made_by_keyboard(browser: Browser, built: build.Site) -> None:
    visitor = Visitor(browser, built.index.parent, 1280)
    page = visitor.open(RING)
    quiz = page.locator(".quiz").first
    first = quiz.get_by_role("radio").first
    first.focus()
    page.keyboard.press("Space")
    expect(quiz.get_by_role("status")).to_contain_text(
        "Not this one. Gather, then broadcast. No: rank 0 handles everything."
    )
    expect(quiz.locator("details")).not_to_have_attribute("open", "")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(quiz.get_by_role("status")).to_contain_text("Right.")
    expect(quiz.locator("details")).to_have_attribute("open", "")
    visitor.page.context.close()


def test_the_stepper_goes_through_the_steps_of_any_number_of_ranks_by_keyboard(
    browser: Browser, built: build.Site
) -> None:
    visitor = Visitor(browser, built.index.parent, 390, reduced_motion="reduce")
    page = visitor.open(RING)
    film = page.locator(".course-film")
    film.get_by_role("combobox", name="Ranks").select_option("8")
    slider = film.get_by_role("slider", name="Step")
    expect(slider).to_have_attribute("max", "14")
    film.get_by_role("button", name="Step on").focus()
    page.keyboard.press("Enter")
    expect(film.get_by_role("status")).to_contain_text("After step 1 of 14. In it rank 0 sends chunk 0 to rank 1")
    slider.focus()
    page.keyboard.press("End")
    expect(film.get_by_role("status")).to_contain_text("After step 14 of 14.")
    expect(film.get_by_role("button", name="Step on")).to_be_disabled()
    visible = "svg => [...svg.querySelectorAll('.state')].map(g => g.getAttribute('visibility'))"
    assert film.locator("svg").evaluate(visible) == ["hidden"] * 14 + ["visible"]
    page.keyboard.press("Home")
    expect(film.get_by_role("status")).to_contain_text("The start; 14 steps follow.")
    assert visitor.complaints == []
    visitor.page.context.close()


def test_the_film_plays_and_stops(browser: Browser, built: build.Site) -> None:
    visitor = Visitor(browser, built.index.parent, 1280)
    page = visitor.open(RING)
    film = page.locator(".distlab-animation")
    film.get_by_role("button", name="Play").click()
    expect(film.get_by_role("status")).to_contain_text("After step ")
    film.get_by_role("button", name="Stop").click()
    expect(film.get_by_role("button", name="Play")).to_be_visible()
    visitor.page.context.close()


def test_on_paper_answers_are_open_and_code_is_whole(browser: Browser, built: build.Site) -> None:
    visitor = Visitor(browser, built.index.parent, 794)
    page = visitor.open(RING)
    page.emulate_media(media="print")
    answer = page.locator("details.quiz-answer li").first
    assert answer.evaluate("item => item.checkVisibility({contentVisibilityAuto: true, visibilityProperty: true})")
    wide = "[...document.querySelectorAll('pre')].filter(pre => pre.scrollWidth > pre.clientWidth + 1).length"
    assert page.evaluate(wide) == 0
    visitor.page.context.close()
