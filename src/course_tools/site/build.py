"""The site from the course's files: gather the source pages, let Sphinx make HTML of them, publish the pages."""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from course_tools import runner, user_folders
from course_tools.site import sources
from distlab.runtime.errors import PlainError

# Made by an earlier build; what else is in the site's folder, which may be that of a web server, stays.
OWN_FOLDERS = ("_downloads", "_images", "_sources", "_static", "docs", "labs", "notebooks", "reference")
# Files of the theme and of Sphinx's search that no page asks for: see templates.
NOT_NEEDED = shutil.ignore_patterns(
    "*.map", "*webpack-macros.html", "fontawesome.js*", ".doctrees", ".buildinfo", "search[it]*.js", "language_data.js"
)


class SiteNotBuilt(PlainError):
    """Sphinx ended with an error; the message is its own."""


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
    notebooks = runner.choose(Path("notebooks"))
    folder = user_folders.announced("build", "the site goes")
    runs = folder / "executed" if executed else None
    if runs and (sentence := sources.chapters_without_run(notebooks, runs)):
        print(sentence)
    site = build(Path.cwd(), folder, runs, solutions=not no_solutions)
    print(*site.warnings, site.index, sep="\n")
    return 1 if site.warnings else 0


def build(course: Path, folder: Path, executed: Path | None = None, solutions: bool = True) -> Site:
    """Write the site of the course in `course` to `folder`/site, as a whole.

    executed: a folder of executed notebooks; each that is in it takes the place of the committed one.
    solutions: whether the labs' pages have the solutions, folded.

    Raises SiteNotBuilt and what `sources.gather` raises.
    """
    work, site = folder / "site-work", folder / "site"
    shutil.rmtree(work, ignore_errors=True)
    warnings = sources.gather(course, work / "sources", executed, solutions)
    command = [sys.executable, "-m", "sphinx", "--quiet", "--jobs=auto", f"--conf-dir={Path(__file__).parent}"]
    command += [f"--define=site_solutions={'shown' if solutions else ''}", f"--warning-file={work / 'warnings'}"]
    finished = subprocess.run([*command, work / "sources", work / "html"], capture_output=True, text=True)
    if finished.returncode:
        raise SiteNotBuilt(f"The site was not built.\n{finished.stderr.strip()}")
    warnings += (work / "warnings").read_text().splitlines()
    for name in OWN_FOLDERS:
        shutil.rmtree(site / name, ignore_errors=True)
    shutil.copytree(work / "html", site, dirs_exist_ok=True, ignore=NOT_NEEDED)
    shutil.rmtree(work)
    return Site(site / "index.html", warnings)
