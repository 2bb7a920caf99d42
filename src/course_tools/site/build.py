"""The site from the course's files: gather the source pages, let Sphinx make HTML of what has changed."""

import copy
import hashlib
import io
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from course_tools import runner, user_folders
from course_tools.site import notebook_pages, pictures, sources
from distlab.runtime.errors import PlainError

STATIC, TEMPLATES = Path(__file__).with_name("static"), Path(__file__).with_name("templates")
# Files of the theme that no page asks for: see templates/static.
NOT_NEEDED = ("_static/**/*.map", "_static/*.html", "_static/scripts/fontawesome.js*")
MADE_BY_SPHINX = {"genindex", "py-modindex", "search"}
TITLE = "Distributed training"
ESCAPE_CODE = re.compile(r"\x1b\[[0-9;]*m")
# In Markdown, and in the first cell of a notebook's file, where the line is quoted.
FIRST_HEADING = re.compile(r'^(?:\s*")?# (.*)', re.MULTILINE)

CONFIGURATION: Mapping[str, object] = {
    "project": TITLE,
    "author": "the authors of the course",
    "copyright": "the authors of the course. Text and figures: CC BY 4.0, code: MIT",
    "language": "en",
    "smartquotes_action": "qe",  # and no dashes: -- begins an option
    "extensions": ["myst_nb", "sphinx_copybutton", "course_tools.site.extension"],
    "root_doc": "index",
    "templates_path": [str(TEMPLATES)],
    # Solutions are shown folded in their labs; the notebook itself is only for download.
    "exclude_patterns": ["labs/*/solution.ipynb"],
    "highlight_language": "text",
    "myst_enable_extensions": ["dollarmath"],
    "myst_heading_anchors": 4,
    "nb_execution_mode": "off",
    "nb_code_prompt_show": "Show the code",
    "nb_code_prompt_hide": "Hide the code",
    "nb_merge_streams": True,
    "nb_ipywidgets_js": {},  # widgets would come from the network; `notebook_pages` replaces them
    "nb_render_markdown_format": "myst",
    "html_math_renderer": "mathml",
    "html_scaled_image_link": False,  # pictures have a size, which is no reason to link to them
    "html_theme": "sphinx_book_theme",
    "html_title": TITLE,
    "html_css_files": ["course.css"],
    "html_js_files": ["course.js"],
    "html_sourcelink_suffix": "",
    "html_show_sphinx": False,
    "html_show_search_summary": False,  # it would fetch pages, which browsers refuse without a server
    "html_context": {"default_mode": "auto"},
    "html_theme_options": {
        "footer_content_items": ["copyright"],
        "navbar_start": [],
        "navbar_center": [],
        "navbar_end": [],
        "navbar_persistent": [],
        "navigation_with_keys": False,
        "show_navbar_depth": 1,
        "show_toc_level": 2,
        "toc_title": "On this page",
        "use_fullscreen_button": False,
    },
    "copybutton_selector": "div.cell_input div.highlight pre, div.highlight-text pre",
    "toc_object_entries_show_parents": "hide",
}


class SiteNotBuilt(PlainError):
    """Sphinx ended with an error; the message has its first lines."""


@dataclass(frozen=True)
class Site:
    """The first page of a site, and what is wrong with it, one line each."""

    index: Path
    warnings: list[str]


def write_site(*, executed: bool = False, no_solutions: bool = False) -> int:
    """Write the site of the course in the working folder; 1 if something in it is wrong.

    Args:
        executed: With the outputs and times of the last `make execute`.
        no_solutions: Leave the solutions of the labs out.
    """
    runner.choose(Path("notebooks"))
    folder = user_folders.announced("build", "the site goes")
    runs = folder / "executed" if executed else None
    if runs and (numbers := sources.chapters_without_run(Path.cwd(), runs)):
        print(f"With the committed outputs, since they have no newer run that came to its end: {', '.join(numbers)}.")
    site = build(Path.cwd(), folder, runs, solutions=not no_solutions)
    for warning in site.warnings:
        print(warning)
    print(site.index)
    return 1 if site.warnings else 0


def build(course: Path, folder: Path, executed: Path | None = None, solutions: bool = True) -> Site:
    """Write the site of the course in `course` to `folder`/site; what has not changed is not made again.

    After a build that did not come to its end everything is.

    executed: a folder of executed notebooks; each that is in it takes the place of the committed one.
    solutions: whether the labs' pages have the solutions, folded.

    Raises SiteNotBuilt and what `sources.gather` raises.
    """
    from sphinx.application import Sphinx
    from sphinx.errors import SphinxError
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    gathered = folder / "site-sources"
    problems = sources.gather(course, gathered, executed, solutions)
    output, warnings = folder / "site", io.StringIO()
    static = STATIC, gathered / sources.STATIC
    shutil.rmtree(output / "_downloads", ignore_errors=True)  # a solution that is left out now may be there
    doctrees = folder / "site-doctrees"
    unfinished = doctrees / "unfinished"
    if unfinished.exists():  # pages that were written then would not be made again, nor their pictures and search words
        shutil.rmtree(doctrees)
    doctrees.mkdir(parents=True, exist_ok=True)
    unfinished.touch()
    try:
        with patch_docutils(), docutils_namespace():
            application = Sphinx(
                srcdir=gathered,
                confdir=None,
                outdir=output,
                doctreedir=doctrees,
                buildername="html",
                confoverrides={
                    **copy.deepcopy(CONFIGURATION),  # the theme changes some of it
                    "html_static_path": [str(path.resolve()) for path in static if path.is_dir()],
                    "site_digest": _digest(gathered),
                    "site_solutions": sorted(file.parent.name for file in gathered.glob(sources.SOLUTIONS)),
                },
                status=None,
                warning=warnings,
                parallel=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1,
            )
            application.build()
    except SphinxError as error:
        raise SiteNotBuilt(f"The site was not built: {str(error).strip().splitlines()[0]}") from error
    _write_downloads(course, output, solutions)
    pictures.shrink(output / "_images")
    _remove_what_is_gone(output, set(application.env.found_docs))
    unfinished.unlink()
    lines = ESCAPE_CODE.sub("", warnings.getvalue()).splitlines()
    return Site(output / "index.html", problems + [line for line in lines if line.strip()])


def _write_downloads(course: Path, output: Path, solutions: bool) -> None:
    """Let readers download each lab without outputs, and without a word of its solution if they do not get it."""
    for lab in course.glob(f"labs/*/{sources.LAB}"):
        download = output / "_sources" / lab.relative_to(course)
        if not download.exists():
            continue
        if solutions:
            shutil.copyfile(lab, download)
        else:
            notebook = notebook_pages.without_solution(json.loads(lab.read_text()))
            download.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


def _remove_what_is_gone(output: Path, names: set[str]) -> None:
    """Remove pages that the site no longer has, and files of the theme that it does not need."""
    pages = [file for file in output.rglob("*.html") if "_static" not in file.relative_to(output).parts]
    gone = [page for page in pages if page.relative_to(output).with_suffix("").as_posix() not in names | MADE_BY_SPHINX]
    for file in {*gone, *(file for pattern in NOT_NEEDED for file in output.glob(pattern))}:
        file.unlink()


def _digest(gathered: Path) -> str:
    """Changes whenever this package or a page's title does, so that every page is then made again."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    pages = sorted(page for page in gathered.rglob("*") if page.suffix in (".md", ".ipynb"))
    titles = [f"{page} {FIRST_HEADING.findall(page.read_text())[:1]}" for page in pages]
    return hashlib.sha256(b"".join([*(file.read_bytes() for file in files), "".join(titles).encode()])).hexdigest()
