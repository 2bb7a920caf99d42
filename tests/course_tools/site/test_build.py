"""The site as files: no warning, links that lead somewhere, texts of pictures, small pages, nothing from outside."""

import json
import re
import shutil
import signal
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from course_tools.site import build

MOST_BYTES_OF_HTML = 400_000
LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src")}

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Page(HTMLParser):
    """Links, ids, pictures and loaded files of a page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.loaded: list[str] = []
        self.without_text: list[str] = []
        self.pictures: list[dict[str, str]] = []
        self.text = ""
        self.feed(file.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "link" and values.get("rel") == "stylesheet":
            self.loaded.append(values["href"])
        self.loaded += [value for name, value in values.items() if (tag, name) in LOADED]
        if tag == "img":
            self.pictures.append(values)
        if tag == "img" and not values.get("alt"):
            self.without_text.append(values.get("src", ""))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="session")
def pages(built: build.Site) -> dict[Path, Page]:
    """The pages of the whole site, by their files."""
    folder = built.index.parent
    files = [file for file in folder.rglob("*.html") if "_static" not in file.relative_to(folder).parts]
    return {file: Page(file) for file in files}


def broken(pages: dict[Path, Page]) -> list[str]:
    """The links of these pages that lead to no file, or to no place in a page."""
    wrong = []
    for file, page in pages.items():
        for link in page.links:
            address = urlsplit(link)
            if address.scheme or link in ("", "#"):
                continue
            target = (file.parent / unquote(address.path)).resolve() if address.path else file
            ids = pages[target].ids if target in pages else None
            if not target.is_file() or (address.fragment and ids is not None and unquote(address.fragment) not in ids):
                wrong.append(f"{file.name}: {link}")
    return wrong


@pytest.mark.slow
def test_the_whole_site_is_built_without_a_warning(built: build.Site) -> None:
    assert built.warnings == []


@pytest.mark.slow
def test_every_notebook_lab_and_handbook_has_a_page_and_can_be_downloaded(built: build.Site, root: Path) -> None:
    folder = built.index.parent
    sources = [*root.glob("notebooks/*.ipynb"), *root.glob("labs/*/lab.ipynb"), *root.glob("docs/*.md")]
    assert len(sources) > 30
    for source in sources:
        name = source.relative_to(root)
        assert (folder / name.with_suffix(".html")).is_file()
        assert (folder / "_sources" / name).read_bytes() == source.read_bytes()


@pytest.mark.slow
def test_every_link_leads_somewhere(pages: dict[Path, Page]) -> None:
    assert sum(len(page.links) for page in pages.values()) > 1_000
    assert broken({file.resolve(): page for file, page in pages.items()}) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text('<h1 id="top"><a href="#top">a</a><a href="#no">b</a><a href="no.html">c</a></h1>')
    assert broken({file: Page(file)}) == ["page.html: #no", "page.html: no.html"]


@pytest.mark.slow
def test_every_picture_has_a_text(pages: dict[Path, Page]) -> None:
    assert sum(len(page.loaded) for page in pages.values()) > 100
    assert {file.name: page.without_text for file, page in pages.items() if page.without_text} == {}


@pytest.mark.slow
def test_a_page_alone_is_small_and_loads_nothing_from_outside(pages: dict[Path, Page]) -> None:
    for file, page in pages.items():
        assert not [address for address in page.loaded if urlsplit(address).netloc], file
        assert file.stat().st_size <= MOST_BYTES_OF_HTML, f"{file.name} has {file.stat().st_size} bytes"
    with_index = {file.name for file, page in pages.items() if any("searchindex" in each for each in page.loaded)}
    assert with_index == {"search.html"}


@pytest.mark.slow
def test_every_picture_waits_for_the_reader_and_keeps_its_room(pages: dict[Path, Page]) -> None:
    pictures = [picture for page in pages.values() for picture in page.pictures]
    assert len(pictures) > 70
    assert [picture for picture in pictures if picture.get("loading") != "lazy"] == []
    assert [picture for picture in pictures if not {"width", "height"} <= set(picture)] == []


@pytest.mark.slow
def test_a_term_has_its_meaning_as_hover_text(built: build.Site) -> None:
    page = (built.index.parent / "notebooks" / "06_collectives_and_ring_all_reduce.html").read_text()
    titles = re.findall(
        r'<a class="[^"]*\bterm\b[^"]*" href="\.\./docs/glossary\.html#term-[^"]+" title="([^"]+)"', page
    )
    assert len(titles) > 5
    assert all(len(title) > 10 and not re.match(r".*\(\d\d\): ", title) for title in titles)


@pytest.mark.slow
def test_a_site_is_built_again_only_where_something_has_changed(course: Path, tmp_path: Path) -> None:
    first = build.build(course, tmp_path / "build")
    page = first.index.parent / "notebooks" / "01_rings.html"
    assert first.warnings == []
    assert 'title="The sum for every rank."' in page.read_text()
    assert "answer = 42" in Page(first.index.parent / "labs" / "01_rings" / "lab.html").text
    before = page.stat().st_mtime_ns
    build.build(course, tmp_path / "build")
    assert page.stat().st_mtime_ns == before
    glossary = course / "docs" / "glossary.md"
    glossary.write_text(glossary.read_text().replace("The sum for", "The mean for"))
    build.build(course, tmp_path / "build")
    assert 'title="The mean for every rank."' in page.read_text()


BUILDS = """
import sys
from pathlib import Path
from course_tools.site import build
build.build(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def files_of(site: Path) -> dict[str, int]:
    """The files of a site by name, with their sizes."""
    return {file.relative_to(site).as_posix(): file.stat().st_size for file in site.rglob("*") if file.is_file()}


@pytest.mark.slow
def test_a_site_whose_build_was_interrupted_is_whole_after_the_next(course: Path, tmp_path: Path) -> None:
    whole, interrupted = tmp_path / "whole", tmp_path / "interrupted"
    for number in range(12):  # so that the signal comes while pages are written
        shutil.copy(course / "notebooks" / "01_rings.ipynb", course / "notebooks" / f"{number + 20}_rings.ipynb")
    build.build(course, whole)
    with subprocess.Popen([sys.executable, "-c", BUILDS, str(course), str(interrupted)]) as process:
        while process.poll() is None and not list(interrupted.glob("site/notebooks/*.html")):
            pass
        process.send_signal(signal.SIGINT)
    assert process.returncode != 0
    build.build(course, interrupted)
    assert files_of(interrupted / "site") == files_of(whole / "site")


@pytest.mark.slow
def test_where_the_site_is_a_link_to_a_web_folder_only_pages_go_there(course: Path, tmp_path: Path) -> None:
    web = tmp_path / "server" / "web"
    web.mkdir(parents=True)
    (web / "robots.txt").touch()
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "site").symlink_to(web)
    picture = {"output_type": "display_data", "data": {"image/png": PIXEL}, "metadata": {}}
    file = course / "notebooks" / "01_rings.ipynb"
    notebook = json.loads(file.read_text())
    notebook["cells"][-1]["outputs"].append(picture)
    file.write_text(json.dumps(notebook))
    site = build.build(course, tmp_path / "build")
    assert site.warnings == [] and len(list((web / "_images").glob("*.png"))) == 1
    assert [entry.name for entry in (tmp_path / "server").iterdir()] == ["web"]
    assert (web / "robots.txt").exists() and (web / "notebooks" / "01_rings.html").exists()


@pytest.mark.slow
def test_solutions_are_left_out_on_demand(course: Path, tmp_path: Path) -> None:
    build.build(course, tmp_path / "build")
    site = build.build(course, tmp_path / "build", solutions=False)
    assert site.warnings == []
    folder = site.index.parent
    assert "answer = ..." in Page(folder / "labs" / "01_rings" / "lab.html").text
    assert not [page for page in folder.rglob("*.html") if "answer = 42" in Page(page).text]
    notebooks = [file.read_text() for file in folder.rglob("*.ipynb")]
    assert not [text for text in notebooks if "answer = 42" in text or "solution.ipynb" in text]


@pytest.mark.slow
@pytest.mark.parametrize("removed", ["nothing", "site"])
def test_solutions_come_back_on_demand(course: Path, tmp_path: Path, removed: str) -> None:
    build.build(course, tmp_path / "build", solutions=False)
    shutil.rmtree(tmp_path / "build" / removed, ignore_errors=True)
    site = build.build(course, tmp_path / "build")
    assert site.warnings == []
    assert "answer = 42" in Page(site.index.parent / "labs" / "01_rings" / "lab.html").text
    assert len(list(site.index.parent.rglob("solution.ipynb"))) == 1


@pytest.mark.slow
def test_a_solution_that_a_lab_gets_later_is_shown(course: Path, tmp_path: Path) -> None:
    solution = course / "labs" / "01_rings" / "solution.ipynb"
    solution.rename(tmp_path / "later.ipynb")
    build.build(course, tmp_path / "build")
    (tmp_path / "later.ipynb").rename(solution)
    site = build.build(course, tmp_path / "build")
    assert "answer = 42" in Page(site.index.parent / "labs" / "01_rings" / "lab.html").text


@pytest.mark.slow
def test_a_broken_link_is_a_warning_and_the_page_is_there(course: Path, tmp_path: Path) -> None:
    page = course / "docs" / "glossary.md"
    page.write_text(page.read_text() + "\nSee [what](missing.md).\n")
    site = build.build(course, tmp_path / "build")
    assert len(site.warnings) == 1 and "missing.md" in site.warnings[0]
    assert (site.index.parent / "docs" / "glossary.html").is_file()


@pytest.mark.slow
def test_a_damaged_notebook_is_one_sentence_and_the_others_have_pages(course: Path, tmp_path: Path) -> None:
    shutil.copy(course / "notebooks" / "01_rings.ipynb", course / "notebooks" / "02_more.ipynb")
    (course / "notebooks" / "01_rings.ipynb").write_text("<<<<<<< HEAD\n")
    site = build.build(course, tmp_path / "build")
    assert "notebooks/01_rings.ipynb cannot be read as a notebook" in site.warnings[0]
    assert (site.index.parent / "notebooks" / "02_more.html").is_file()


def test_another_title_of_a_page_makes_every_page_again(tmp_path: Path) -> None:
    (tmp_path / "labs").mkdir()
    page, notebook = tmp_path / "page.md", tmp_path / "labs" / "lab.ipynb"

    def digest(title: str, text: str) -> str:
        page.write_text(f"(place)=\n# {title}\n\n{text}\n# no title\n")
        notebook.write_text(json.dumps({"cells": [{"source": ["# A lab\n", text]}]}, indent=1))
        return build._digest(tmp_path)

    before = digest("First", "text")
    assert digest("First", "other text") == before
    assert digest("Second", "text") != before
    assert digest("First", "text") == before
    notebook.write_text(notebook.read_text().replace("# A lab", "# Another"))
    assert build._digest(tmp_path) != before
