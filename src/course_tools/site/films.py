"""The steps of a collective on the page: one file for each number of ranks, which the pages' script loads and plays."""

import ast
import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from distlab import collectives, draw, simulate

FOLDER = "films"
SIZES = range(2, 9)
STEP_TEXT = re.compile(r"Step \d+: (.*?)(?= Step \d+: | In the end|$)", re.DOTALL)


class Film(NamedTuple):
    """A program of `distlab.collectives` on a number of ranks."""

    program: str
    ranks: int


def in_cell(source: str) -> Film | None:
    """What the cell shows with `draw.Stepper(program, size=…)`; None if it does not, or shows another program."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a magic or a shell command
        return None
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("Stepper") and call.args:
            program = ast.unparse(call.args[0]).split(".")[-1]
            sizes = [ast.literal_eval(word.value) for word in call.keywords if word.arg == "size"]
            if program in collectives.__all__:
                return Film(program, sizes[0] if sizes else 4)
    return None


def figure(film: Film, page_depth: int) -> str:
    """The place on the page where the script puts the film; `page_depth` counts the folders above the page."""
    choices = "".join(
        f'<option value="{ranks}"{" selected" if ranks == film.ranks else ""}>{ranks}</option>' for ranks in SIZES
    )
    return (
        f'<figure class="course-film" data-program="{film.program}" data-folder="{"../" * page_depth}_static">'
        f"<p><label>Ranks <select>{choices}</select></label></p>"
        f'<div class="course-film-picture"></div><figcaption>The steps of <code>{film.program}</code>: '
        "choose how many ranks run it, step, or play.</figcaption></figure>"
    )


def write(films: Sequence[str], folder: Path) -> list[Path]:
    """Write the files of these programs for each of SIZES to `folder`, if what draws them has changed; returns them."""
    digest = _digest_of_drawing()
    return [_write(program, ranks, folder, digest) for program in films for ranks in SIZES]


def _write(program: str, ranks: int, folder: Path, digest: str) -> Path:
    file = folder / f"{program}_{ranks}.js"
    first_line = f"// {digest}\n"
    if file.is_file() and file.read_text().startswith(first_line):
        return file
    trace = draw.trace(getattr(collectives, program), ranks)
    description = trace.describe()
    film = {"svg": trace.animation(description), "steps": STEP_TEXT.findall(description)}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'{first_line}courseFilm("{file.stem}", {json.dumps(film)});\n')
    return file


def _digest_of_drawing() -> str:
    """Changes whenever the code changes that runs or draws the programs."""
    files = [
        file
        for package in (collectives, draw, simulate)
        for file in sorted(Path(str(package.__file__)).parent.rglob("*.py"))
    ]
    return hashlib.sha256(b"".join(file.read_bytes() for file in [*files, Path(__file__)])).hexdigest()[:16]
