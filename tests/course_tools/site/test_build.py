"""The site of a small course: what is on its pages, with and without solutions; what is left of an earlier build."""

import re
import shutil
from html import unescape
from pathlib import Path

import pytest

from course_tools.site import build

pytestmark = pytest.mark.slow


def test_a_site_has_terms_formulas_and_folded_solutions_and_is_made_anew_as_a_whole(
    course: Path, tmp_path: Path
) -> None:
    web = tmp_path / "server" / "web"  # the site's folder may be a link to that of a web server
    web.mkdir(parents=True)
    (web / "robots.txt").touch()
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "site").symlink_to(web)
    first, second = (course / "notebooks" / f"{number}_rings.ipynb" for number in ("01", "02"))
    shutil.copyfile(first, second)
    assert build.build(course, tmp_path / "build").warnings == []
    page = unescape((web / "notebooks" / "01_rings.html").read_text())
    assert 'title="The sum for "every" rank."' in page and "<math" in page and 'href="#next-step"' in page
    lab = (web / "labs" / "01_rings" / "lab.html").read_text()
    assert "folded below each answer" in lab and "42" in lab
    assert len(list(web.rglob("solution.ipynb"))) == 1
    second.unlink()
    assert build.build(course, tmp_path / "build", solutions=False).warnings == []
    assert {page.name for page in (web / "notebooks").iterdir()} == {"01_rings.html"}
    assert [entry.name for entry in (tmp_path / "server").iterdir()] == ["web"] and (web / "robots.txt").exists()
    texts = [file.read_text() for file in web.rglob("*") if file.suffix in (".html", ".ipynb")]
    assert not [text for text in texts if re.search("answer = 42|solution.ipynb", text)]
