"""What the pictures show: numbers against NumPy and formulas, schedules that are legal."""

import importlib.util
import itertools
import re
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.signal import convolve2d

ROOT = Path(__file__).parents[2]
SCRIPTS = {file.stem: file for file in sorted((ROOT / "figures" / "src").glob("[0-9]*.py"))}


def script(stem: str) -> ModuleType:
    """A script of figures/src as a module; its name begins with a digit, so that `import` does not work."""
    spec = importlib.util.spec_from_file_location(f"figures_{stem}", SCRIPTS[stem])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def collectives() -> ModuleType:
    return script("06_collectives_and_ring_all_reduce")


@pytest.fixture(scope="module")
def models() -> ModuleType:
    return script("12_model_parallelism")


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


def test_overlapped_all_reduces_wait_for_their_bucket_and_for_each_other(collectives: ModuleType) -> None:
    alone, each, buckets = map(collectives.overlapped, collectives.WAYS)
    backward, ring = collectives.GRADIENTS * collectives.BACKWARD, 2 * 7 * 5
    byte_time = 2 * 7 / 8 * collectives.GRADIENTS * collectives.BYTES * 1e-3
    assert alone == [(backward, pytest.approx(backward + ring + byte_time))]
    assert each[-1][1] == pytest.approx(collectives.BACKWARD + collectives.GRADIENTS * ring + byte_time)
    assert buckets[-1][1] == pytest.approx(backward + ring + byte_time / 12)


@pytest.mark.parametrize("name", BEFORE_AND_AFTER)
def test_before_and_after_are_what_numpy_says_with_the_colour_of_each_digit(name: str, collectives: ModuleType) -> None:
    collective = next(entry for entry in collectives.COLLECTIVES if entry.name == name)
    for rows, expected in zip(collectives.before_and_after(collective), BEFORE_AND_AFTER[name], strict=True):
        assert [[cell.number if cell else 0 for cell in of_rank] for of_rank in rows] == expected.tolist()
        for cell in filter(None, itertools.chain(*rows)):
            digits = reversed(str(cell.number))
            assert cell.ranks == tuple(place for place, digit in enumerate(digits) if digit != "0")


def test_utilisation_is_computing_time_over_all_time() -> None:
    module = script("11_scaling_and_profiling")
    alone, shared = module.training(1), module.training(2)
    computing = module.STEPS * module.BATCH * module.SECONDS_PER_IMAGE
    n = 4 * module.PARAMETERS
    reducing = module.STEPS * (2 * module.NETWORK.latency + n * module.NETWORK.seconds_per_byte)
    assert module.utilisation(alone) == pytest.approx([1, 0])
    assert shared.elapsed == pytest.approx(computing / 2 + reducing)
    assert module.utilisation(shared) == pytest.approx([computing / 2 / shared.elapsed] * 2)
    assert module.intervals(alone)[1] == []


@pytest.mark.parametrize(("parts", "seconds", "share"), [(1, 48, "75 %"), (4, 21, "43 %")])
def test_the_schedule_has_the_time_and_the_bubble_of_the_formula(
    parts: int, seconds: int, share: str, models: ModuleType
) -> None:
    """(m + p − 1)(t_f + t_b) and (p − 1)/(m + p − 1); a quarter of the batch takes a stage 3 units of time."""
    timing = models.schedule(parts)
    assert timing.seconds == seconds == (parts + 3) * 12 / parts
    assert timing.bubble_fraction == pytest.approx(3 / (parts + 3))
    title = (ROOT / "figures" / "12_pipeline_schedule.svg").read_text().split("<title>")[1].split("</title>")[0]
    assert f"it takes {seconds} units of time, and the devices wait {share}" in title


def test_a_layer_split_by_columns_or_by_rows_gives_the_whole_product(models: ModuleType) -> None:
    product = models.INPUT @ models.WEIGHTS
    columns, rows = models.by_columns(), models.by_rows()
    assert all(np.array_equal(whole, product) for whole in columns.whole + rows.whole)
    assert np.array_equal(np.hstack(columns.partial), product)
    assert np.array_equal(np.add(*rows.partial), product)


def test_tiles_with_their_halo_give_the_convolution_of_the_whole_image(models: ModuleType) -> None:
    generator = np.random.default_rng(0)
    image, kernel = generator.normal(size=(8, 8)), generator.normal(size=(3, 3))
    convolved = [convolve2d(tile, kernel, "same") for tile in models.tiles_with_halo(image)]
    # Where a tile ends at the image's edge, both add zeros; where it ends at a cut, its own pixels end before the halo.
    own = [tile[row : row + 4, column : column + 4] for tile, (row, column) in zip(convolved, CORNERS, strict=True)]
    assert np.allclose(np.block([own[:2], own[2:]]), convolve2d(image, kernel, "same"))


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


CORNERS = ((0, 0), (0, 1), (1, 0), (1, 1))  # of each tile's own pixels, in the tile with its halo
