"""What the pictures show: their descriptions, collectives against NumPy, a schedule against its formula, the map."""

import itertools
import re
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import numpy as np
import pytest

from distlab import programs

ROOT = Path(__file__).parents[2]


def script(stem: str) -> ModuleType:
    """A script of figures/src as a module; its name begins with a digit, so that `import` does not work."""
    return programs.module(ROOT / "figures" / "src" / f"{stem}.py")


def test_a_picture_is_small_and_says_in_words_what_it_shows() -> None:
    for file in (ROOT / "figures").glob("*.svg"):
        root = ElementTree.parse(file).getroot()
        title = root.find("{http://www.w3.org/2000/svg}title").text
        assert file.stat().st_size < 300_000, file
        assert root.get("aria-label") == title and len(title.split()) >= 12 and title.endswith("."), file


NUMBERS = np.outer(10 ** np.arange(4), np.arange(1, 5))  # rank r, chunk c: (c + 1)·10^r
TOTAL = NUMBERS.sum(axis=0)
OWN_CHUNK, AT_ROOT = np.diag(np.ones(4, int)), np.outer([1, 0, 0, 0], np.ones(4, int))
BEFORE_AND_AFTER = {
    "broadcast": (NUMBERS * AT_ROOT, np.tile(NUMBERS[0], (4, 1))),
    "reduce": (NUMBERS, TOTAL * AT_ROOT),
    "scatter": (NUMBERS * AT_ROOT, NUMBERS[0] * OWN_CHUNK),
    "gather": (NUMBERS * OWN_CHUNK, np.diag(NUMBERS) * AT_ROOT),
    "all_gather": (NUMBERS * OWN_CHUNK, np.tile(np.diag(NUMBERS), (4, 1))),
    "reduce_scatter": (NUMBERS, TOTAL * OWN_CHUNK),
    "all_reduce": (NUMBERS, np.tile(TOTAL, (4, 1))),
    "all_to_all": (NUMBERS, NUMBERS.T),
}


@pytest.mark.parametrize("name", BEFORE_AND_AFTER)
def test_before_and_after_are_what_numpy_says_with_the_colour_of_each_digit(name: str) -> None:
    collectives = script("06_collectives_and_ring_all_reduce")
    collective = next(entry for entry in collectives.COLLECTIVES if entry.name == name)
    for rows, expected in zip(collectives.before_and_after(collective), BEFORE_AND_AFTER[name], strict=True):
        assert [[cell.number if cell else 0 for cell in of_rank] for of_rank in rows] == expected.tolist()
        for cell in filter(None, itertools.chain(*rows)):
            digits = reversed(str(cell.number))
            assert cell.ranks == tuple(place for place, digit in enumerate(digits) if digit != "0")


@pytest.mark.parametrize(("parts", "seconds", "share"), [(1, 48, "75 %"), (4, 21, "43 %")])
def test_the_schedule_has_the_time_and_the_bubble_of_the_formula(parts: int, seconds: int, share: str) -> None:
    """(m + p − 1)(t_f + t_b) and (p − 1)/(m + p − 1); a quarter of the batch takes a stage 3 units of time."""
    timing = script("12_model_parallelism").schedule(parts)
    assert timing.seconds == seconds == (parts + 3) * 12 / parts
    assert timing.bubble_fraction == pytest.approx(3 / (parts + 3))
    title = (ROOT / "figures" / "12_pipeline_schedule.svg").read_text().split("<title>")[1].split("</title>")[0]
    assert f"it takes {seconds} units of time, and the devices wait {share}" in title


def test_the_map_leads_to_each_chapter_from_those_that_come_before_it() -> None:
    chapters = script("00_start_here").CHAPTERS
    before: dict[str, set[str]] = {}
    for number, (_, _, needed) in chapters.items():
        before[number] = set(needed).union(*(before[each] for each in needed))
    for source in sorted((ROOT / "notebooks" / "src").glob("*.py")):
        opening = source.read_text().partition("**Before this.**")[2].partition("**Questions.**")[0]
        assert set(re.findall(r"\((\d\d\w?)_\w+\.ipynb\)", opening)) <= before[source.stem.partition("_")[0]], (
            source.stem
        )
