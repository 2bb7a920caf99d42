"""The site of a small course without solutions: what is on its pages, and what is left of an earlier build."""

import re
from html import unescape
from pathlib import Path

import pytest

from course_tools.site import build


@pytest.mark.slow
def test_a_site_has_terms_and_formulas_no_solutions_and_no_page_of_an_earlier_build(
    course: Path, tmp_path: Path
) -> None:
    web = tmp_path / "server" / "web"  # the site's folder may be a link to that of a web server
    (web / "notebooks").mkdir(parents=True)
    for file in ("robots.txt", "notebooks/02_older.html"):
        (web / file).touch()
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "site").symlink_to(web)
    assert build.build(course, tmp_path / "build", no_solutions=True) == (tmp_path / "build/site/index.html", [])
    page = unescape((web / "notebooks" / "01_rings.html").read_text())
    assert 'title="The sum for "every" rank."' in page and "<math" in page and 'href="#next-step"' in page
    assert {page.name for page in (web / "notebooks").iterdir()} == {"01_rings.html"}
    assert [entry.name for entry in (tmp_path / "server").iterdir()] == ["web"] and (web / "robots.txt").exists()
    texts = [file.read_text() for file in web.rglob("*") if file.suffix in (".html", ".ipynb")]
    assert not [text for text in texts if re.search("answer = 42|solution.ipynb", text)]
