"""The whole site in a browser, from a folder without a server: links, pictures, widths, colours, keyboard, paper."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from course_tools.site import build

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
START, RING = "notebooks/00_start_here.html", "notebooks/06_collectives_and_ring_all_reduce.html"
LAB = "labs/06_collectives_and_ring_all_reduce/lab.html"
# They have all that the pages' frame, quizzes, players, folded solutions, signatures and lists of names can show.
ONE_OF_EACH_KIND = (
    ("index.html", "light"),
    (START, "light"),
    (RING, "dark"),
    (LAB, "light"),
    ("docs/glossary.html", "dark"),
    ("reference/distlab.draw.html", "dark"),
    ("search.html", "light"),
)
MILLISECONDS = 300_000
MOST_BYTES_OF_HTML = 400_000
expect.set_options(timeout=MILLISECONDS)
CONTENTS = """() => ({
  links: [...document.querySelectorAll("a[href]")].map((link) => link.getAttribute("href")),
  ids: [...document.querySelectorAll("[id], [name]")].flatMap((part) => [part.id, part.getAttribute("name")]),
  pictures: [...document.querySelectorAll(".bd-article img")].map((picture) => picture.alt && picture.loading !== "lazy"
    && picture.getAttribute("width") ? "" : picture.outerHTML.slice(0, 200)).filter(Boolean),
  cut: [...document.querySelectorAll(".bd-article :is(img, svg), .prev-next-title")].filter((picture) => {
    const box = picture.getBoundingClientRect();
    const holder = picture.closest("a, p:has(> svg)");
    const scrolls = holder && getComputedStyle(holder).overflowX === "auto";
    return box.width && !scrolls && (box.right > innerWidth + 1 || box.left < -1);
  }).map((picture) => picture.outerHTML.slice(0, 200)),
  width: document.documentElement.scrollWidth,
})"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site of the committed notebooks, with solutions."""
    index, warnings = build.build(ROOT, tmp_path_factory.mktemp("whole"))
    assert warnings == []
    folder = index.parent
    assert "folded below each answer" in (folder / LAB).read_text()
    assert len(list(folder.rglob("solution.ipynb"))) == len(list(ROOT.glob("labs/*/solution.ipynb")))
    return folder


@pytest.fixture
def visitor(browser: Browser, site: Path) -> Iterator["Visitor"]:
    visitor = Visitor(browser, site)
    yield visitor
    assert visitor.complaints == []
    visitor.page.context.close()


class Visitor:
    """A reader with a window; remembers what the browser complained of, and what the pages asked for outside."""

    def __init__(self, browser: Browser, site: Path) -> None:
        self.site = site
        context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce", has_touch=True)
        context.set_default_timeout(MILLISECONDS)
        self.page = context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", lambda message: message.type == "error" and self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("requestfailed", lambda request: self.complaints.append(f"{request.url} was not loaded"))
        self.page.on(
            "request",
            lambda request: request.url.startswith(("file:", "data:")) or self.complaints.append(request.url),
        )

    def open(self, name: str) -> Page:
        self.page.goto(f"{self.site.resolve().as_uri()}/{name}", wait_until="load")
        return self.page


def test_every_page_fits_a_telephone_has_described_pictures_and_links_that_lead_somewhere(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 360, "height": 900})
    files = [file for file in visitor.site.rglob("*.html") if "_static" not in file.relative_to(visitor.site).parts]
    contents: dict[Path, dict[str, Any]] = {}
    for file in files:
        name = file.relative_to(visitor.site).as_posix()
        page = contents[file.resolve()] = visitor.open(name).evaluate(CONTENTS)
        assert (page["pictures"], page["cut"], page["width"]) == ([], [], 360), name
        assert file.stat().st_size <= MOST_BYTES_OF_HTML, name
    sources = [*ROOT.glob("notebooks/*.ipynb"), *ROOT.glob("labs/*/lab.ipynb"), *ROOT.glob("docs/*.md")]
    assert len(contents) > len(sources) > 30
    for source in sources:
        name = source.relative_to(ROOT)
        assert (visitor.site / "_sources" / name).read_bytes() == source.read_bytes()
        assert (visitor.site / name.with_suffix(".html")).is_file()
    for file, page in contents.items():
        for link in page["links"]:
            address = urlsplit(link)
            if not address.scheme and link not in ("", "#"):
                target = (file.parent / unquote(address.path)).resolve() if address.path else file
                assert target.is_file(), (file.name, link)
                if address.fragment and target in contents:
                    assert unquote(address.fragment) in contents[target]["ids"], (file.name, link)


@pytest.mark.parametrize(("name", "scheme"), ONE_OF_EACH_KIND)
def test_everybody_can_use_a_page_of_each_kind(visitor: Visitor, name: str, scheme: str) -> None:
    visitor.page.set_viewport_size({"width": {"light": 1280, "dark": 390}[scheme], "height": 900})
    visitor.page.emulate_media(color_scheme=scheme)
    page = visitor.open(name)
    page.wait_for_function("scheme => document.documentElement.dataset.theme === scheme", arg=scheme)
    # Words of code are most of the largest page, look alike on all, and cost axe minutes.
    context = {"exclude": [["article pre span"]]} if name == RING else {}
    options = {"resultTypes": ["violations"], "preload": False}
    found = Axe().run(page, context=context, options=options).response["violations"]
    grave = [each for each in found if each["impact"] in ("serious", "critical")]
    assert [(each["id"], each["nodes"][0]["html"][:160]) for each in grave] == []


def test_the_search_finds_a_page_without_a_server(visitor: Visitor) -> None:
    page = visitor.open("search.html?q=deadlock")
    first = page.locator(".search-results li").first
    expect(first).to_contain_text("06 Collectives")  # chapters come before distlab.simulate.DeadlockError
    expect(first.locator("p mark").first).to_have_text("deadlock")
    expect(page.locator(".meaning")).to_contain_text("deadlock: ")
    visitor.open("search.html?q=how+often+should+I+save+a+checkpoint")
    expect(first.get_by_role("link")).to_contain_text(["13 Fault tolerance", "How often to save"])
    visitor.open("search.html?q=what+is+the+loss+scaling")
    expect(first).to_contain_text("02 One device")
    for query, topic in (
        ("run on two machines", "15 Clusters"),
        ("port in use", "Troubleshooting"),
        ("OOM", "Troubleshooting"),
        ("checkpoint corrupt", "Troubleshooting"),  # which says "half-written"
        ("Horovod hangs at start", "Troubleshooting"),
        ("overlap communication with backward", "Hide it behind the backward pass"),
    ):
        visitor.open(f"search.html?q={query}")
        expect(first).to_contain_text(topic)
    visitor.open(LAB)
    page.keyboard.press("Control+k")
    page.keyboard.type("ring all-red")  # and no Enter
    expect(first.locator("a").first).to_have_text("06 Collectives and ring all-reduce")
    page.keyboard.press("ArrowDown")
    expect(first.get_by_role("link").last).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("dialog").get_by_role("searchbox")).to_be_focused()
    for typed, said in (
        ("umpyq", "check the spelling"),  # only inside of words
        ("alreduce", "Showing results for all-reduce: "),
        ("checkpiont", "Showing results for checkpoint: "),
        ("bariers", "Showing results for barrier: "),
        ("tomogrm", "Showing results for tomogram: "),  # neither a term nor in a heading
        ("the gradient accumlation", "Showing results for gradient accumulation: "),
        ("gradient umpyq", "pages, without: umpyq"),
        ("who invented the ring", "pages, without: invented"),  # "indented" finds no page with a ring
    ):
        page.get_by_role("dialog").get_by_role("searchbox").fill(typed)
        expect(page.get_by_role("status").filter(has_text=said)).to_be_visible()


def test_a_symptom_is_found_by_words_of_its_message_and_has_an_address(visitor: Visitor) -> None:
    page = visitor.open("docs/troubleshooting.html")
    page.get_by_role("searchbox").fill("ModuleNotFoundError: No module named 'numpy'")
    expect(page.locator("tbody tr[id]:visible")).to_contain_text(["“No module named ‘numpy’”"])
    page.get_by_role("searchbox").fill("there is no C++ COMPILER")
    expect(page.get_by_role("status")).to_have_text("1 row")
    expect(page.get_by_role("heading", name="Setting up")).to_be_hidden()
    expect(page.locator("tbody tr[id]:visible")).to_have_count(1)  # of those with a symptom
    expect(page.get_by_role("link", name="Setting up")).to_be_hidden()
    page.get_by_role("searchbox").fill("conection refused")
    expect(page.get_by_role("status")).to_have_text("Showing results for connection refused: 1 row")
    page.get_by_role("searchbox").fill("umpyq refused")
    expect(page.get_by_role("status")).to_have_text("1 row, without: umpyq")
    page.get_by_role("searchbox").fill("umpyq")
    expect(page.get_by_role("link", name="Search the whole course")).to_have_attribute("href", "../search.html?q=umpyq")
    page.get_by_role("searchbox").fill("hangs")
    expect(page.locator("tbody tr[id]:visible").filter(has_text="prints nothing and waits")).to_be_visible()
    page.get_by_role("searchbox").fill("there is no C++ COMPILER")
    page.get_by_title("Link to this row").locator("visible=true").click()
    expect(page.locator("tr:target")).to_contain_text("there is no C++ compiler")
    page.emulate_media(media="print")
    expect(page.get_by_title("Link to this row").locator("visible=true")).to_have_count(0)
    page.emulate_media(media="screen")
    visitor.open("docs/glossary.html")
    page.get_by_role("searchbox").fill("adding up gradients")
    expect(page.get_by_role("status")).to_have_text("1 term")
    expect(page.locator("#term-gradient-accumulation")).to_be_visible()


def test_an_output_waits_for_a_guess_made_by_keyboard_and_stands_on_paper(visitor: Visitor) -> None:
    page = visitor.open(START)
    cards = page.locator(".predict", has=page.locator(".guess"))
    first, second = cards.nth(0), cards.nth(1)
    outputs = page.locator(".cell_output.is-waiting")
    output, before = outputs.first.element_handle(), outputs.count()
    expect(page.locator(".waits + .cell_output.is-waiting")).to_have_count(cards.count())
    explanation = page.locator(".cell:has(.is-waiting) + p").first.element_handle()
    assert before >= 2 and not output.is_visible() and not explanation.is_visible()
    page.emulate_media(media="print")
    assert output.is_visible() and explanation.is_visible()
    page.emulate_media(media="screen")
    first.get_by_role("textbox", name="Your guess").focus()
    page.keyboard.press("Enter")  # nothing is typed
    assert not output.is_visible()
    page.keyboard.type("no; yes")
    page.keyboard.press("Enter")
    expect(first.locator("span.guess")).to_be_focused()
    expect(first).to_contain_text("Your guess: no; yes.")
    expect(page.locator(".guessed + .cell_output")).to_be_visible()
    expect(page.locator(".guessed")).to_have_text("You guessed: no; yes. ")
    assert output.is_visible() and explanation.is_visible()
    second.get_by_role("button", name="Show", exact=True).click()
    expect(outputs).to_have_count(before - 2)
    expect(page.locator(".waits:visible")).to_have_count(cards.count() - 2)
    second.get_by_role("button", name="Guess again").click()
    expect(second.get_by_role("textbox", name="Your guess")).to_be_focused()
    expect(page.locator(".waits:visible")).to_have_count(cards.count() - 1)
    everything = cards.last.get_by_role("button", name="Show all on this page")
    everything.scroll_into_view_if_needed()
    place = cards.last.bounding_box()["y"]
    everything.click()
    expect(outputs).to_have_count(0)
    assert abs(cards.last.bounding_box()["y"] - place) < 2
    page.reload()
    expect(page.locator(".guessed")).to_have_text("You guessed: no; yes. ")
    first.get_by_role("button", name="Guess again").click()
    page.reload()
    expect(page.locator(".guessed")).to_have_count(0)


def test_a_calculator_needs_no_guess(visitor: Visitor) -> None:
    page = visitor.open(RING)
    outputs, calculator = page.locator(".cell_output.is-waiting"), page.locator(".distlab-calculator")
    before = outputs.count()
    expect(calculator).to_be_hidden()
    page.get_by_role("button", name="Show the calculator").press("Enter")
    expect(calculator.get_by_role("slider").first).to_be_focused()
    expect(outputs).to_have_count(before - 1)


def test_a_quiz_checks_a_choice_made_by_keyboard(visitor: Visitor) -> None:
    page = visitor.open(RING)
    quiz = page.locator(".quiz").first
    status, check = quiz.get_by_role("status"), quiz.get_by_role("button", name="Check")
    check.click()
    expect(status).to_have_text("Choose an answer first.")
    quiz.get_by_role("radio").first.focus()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    expect(status).to_have_text("Choose an answer first.")  # the arrow keys choose, and reveal nothing
    page.keyboard.press("ArrowUp")
    check.focus()  # a choice may have links, which Tab reaches first
    page.keyboard.press("Enter")
    expect(status).not_to_have_text("Choose an answer first.")
    expect(quiz.locator("li.is-wrong")).to_have_count(1)
    expect(quiz.locator("details")).not_to_have_attribute("open", "")
    quiz.get_by_role("radio").nth(2).check()
    check.click()
    expect(status).to_contain_text("Right.")
    expect(status).to_contain_text(f"1 of the {page.locator('.quiz').count()} questions in the text answered.")
    expect(quiz.locator("details")).to_have_attribute("open", "")


def test_a_finger_opens_the_meaning_of_a_term_and_a_large_picture(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 800})
    page = visitor.open(RING)
    term, card = page.locator("a[href*='#term-']").first, page.get_by_role("tooltip")
    term.tap()
    expect(card).to_contain_text("rank: ")
    page.locator(".bd-article h1").tap()
    expect(card).to_be_hidden()
    picture, large = page.get_by_title("Enlarge the picture").first, page.locator("dialog.enlarged img")
    for close in (page.go_back, lambda: page.keyboard.press("Escape"), large.tap):
        picture.tap()
        assert large.bounding_box()["width"] >= 2 * picture.locator("img").bounding_box()["width"] >= 2 * 390
        close()
        expect(large).to_be_hidden()
    term.tap()
    term.tap()
    page.wait_for_url("**/docs/glossary.html#term-rank")


def test_the_map_leads_to_the_chapters(visitor: Visitor) -> None:
    visitor.open(START).get_by_role("link", name="06 ring all-reduce").click()
    visitor.page.wait_for_url(f"**/{RING}")


def test_paper_has_answers_and_one_picture_of_the_ring(visitor: Visitor) -> None:
    page = visitor.open(RING)
    player, strip = page.locator(".distlab-player > svg"), page.locator(".cell_output:has(.distlab-player) img")
    assert player.is_visible() and not strip.is_visible()
    page.emulate_media(media="print")
    assert strip.is_visible() and not player.is_visible()
    questions = page.locator(".quiz, .distlab-quiz fieldset").count()
    expect(page.locator(".answers > div:visible")).to_have_count(questions)
    expect(page.locator(".quiz-answer:visible, .distlab-quiz :is(button, summary):visible")).to_have_count(0)
    visitor.open(LAB)
    expect(page.get_by_text("Write your answer here.").first).to_be_visible()
    assert page.locator(".cell details").count() and not page.locator(".cell details:visible").count()


def test_the_player_goes_through_the_steps_of_any_number_of_ranks_by_keyboard(visitor: Visitor) -> None:
    page = visitor.open("index.html")
    player = page.locator(".distlab-player")
    player.get_by_role("combobox", name="Ranks").select_option("8")
    slider = player.get_by_role("slider", name="Step")
    expect(slider).to_have_attribute("max", "14")
    player.get_by_role("button", name="Step on").focus()
    page.keyboard.press("Enter")
    expect(player.get_by_role("status")).to_contain_text("Step 1 of 14: rank 0 sends chunk 0 to rank 1")
    slider.focus()
    page.keyboard.press("End")
    expect(player.get_by_role("status")).to_contain_text("Step 14 of 14: rank 0 sends finished chunk")
