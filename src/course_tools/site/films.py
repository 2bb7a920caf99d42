"""The steps of a collective on the page: one file for each number of ranks, which the pages' script loads and plays."""

import json
import re
from pathlib import Path
from typing import NamedTuple

from distlab import collectives, draw

SIZES = range(2, 9)
STEPPER = re.compile(r"\bStepper\(\s*(?:\w+\.)*(\w+)(?:,\s*size=(\d+))?")
STEP_TEXT = re.compile(r"Step \d+: (.*?)(?= Step \d+: | In the end|$)", re.DOTALL)


class Film(NamedTuple):
    """A program of `distlab.collectives` on a number of ranks."""

    program: str
    ranks: int


def in_cell(source: str) -> Film | None:
    """What the cell shows with `draw.Stepper(program, size=…)`; None if it does not, or shows another program."""
    found = STEPPER.search(source)
    return Film(found[1], int(found[2] or 4)) if found and found[1] in collectives.__all__ else None


def figure(film: Film, top: str) -> str:
    """The place on the page where the script puts the film; `top` leads from the page to the top of the site."""
    choices = "".join(
        f'<option value="{ranks}"{" selected" if ranks == film.ranks else ""}>{ranks}</option>' for ranks in SIZES
    )
    return (
        f'<figure class="course-film" data-program="{film.program}" data-folder="{top}_static">'
        f"<p><label>Ranks <select>{choices}</select></label></p>"
        f'<div class="course-film-picture"></div><figcaption>The steps of <code>{film.program}</code>: '
        "choose how many ranks run it, step, or play.</figcaption></figure>"
    )


def write(program: str, folder: Path) -> None:
    """Write the files of a program, one for each of SIZES, to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for ranks in SIZES:
        trace = draw.trace(getattr(collectives, program), ranks)
        description = trace.describe()
        film = {"svg": trace.animation(description), "steps": STEP_TEXT.findall(description)}
        name = f"{program}_{ranks}"
        (folder / f"{name}.js").write_text(f'courseFilm("{name}", {json.dumps(film)});\n')
