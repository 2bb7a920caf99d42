"""The site from the course's files: gather the source pages, let Sphinx make HTML of them, publish the pages."""

import shutil
import subprocess
import sys
from pathlib import Path

from course_tools import user_folders
from course_tools.site import sources
from distlab.runtime.errors import PlainError

# Made by an earlier build; what else is in the site's folder, which may be that of a web server, stays.
OWN_FOLDERS = ("_downloads", "_images", "_sources", "_static", "docs", "labs", "notebooks", "reference")
# Files of the theme and of Sphinx's search that no page asks for: see templates.
NOT_NEEDED = shutil.ignore_patterns(
    "*.map", "*webpack-macros.html", "fontawesome.js*", ".doctrees", ".buildinfo", "search[it]*.js", "language_data.js"
)


def write_site(*, executed: bool = False, no_solutions: bool = False) -> int:
    """Write the site of the course in the working folder; 1 if something in it is wrong.

    Args:
        executed: With the outputs and times of the last `make execute`.
        no_solutions: Leave the solutions of the labs out.
    """
    folder = user_folders.announced("build", "the site goes")
    index, warnings = build(Path.cwd(), folder, folder / "executed" if executed else None, no_solutions)
    print(*warnings, index, sep="\n")
    return 1 if warnings else 0


def build(
    course: Path, folder: Path, executed: Path | None = None, no_solutions: bool = False
) -> tuple[Path, list[str]]:
    """Write the site of the course in `course` to `folder`/site, as a whole.

    executed: a folder of executed notebooks; each that is in it takes the place of the committed one.
    no_solutions: whether the labs' pages are without the solutions, which else are folded.

    Returns its first page, and what is wrong with it, one line each. Raises PlainError with the words of Sphinx.
    """
    work, site = folder / "site-work", folder / "site"
    shutil.rmtree(work, ignore_errors=True)
    warnings = sources.gather(course, work / "sources", executed, no_solutions)
    command = [sys.executable, "-m", "sphinx", "--quiet", "--jobs=auto", f"--conf-dir={Path(__file__).parent}"]
    command += [f"--warning-file={work / 'warnings'}", str(work / "sources"), str(work / "html")]
    finished = subprocess.run(command, capture_output=True, text=True)
    if finished.returncode:
        raise PlainError(f"The site was not built.\n{finished.stderr.strip()}")
    warnings += (work / "warnings").read_text().splitlines()
    for name in OWN_FOLDERS:
        shutil.rmtree(site / name, ignore_errors=True)
    shutil.copytree(work / "html", site, dirs_exist_ok=True, ignore=NOT_NEEDED)
    shutil.rmtree(work)
    return site / "index.html", warnings
