"""Lab 11: other right answers, the published table by hand, and the picture."""

import numpy as np
import pytest
from lab_11 import given, judge
from lab_11.judge import LAB

from distlab import costs
from tests.distlab.labs.known_wrong import right_answers, verdict_on


def by_counting(images, batch, gpus, seconds, seconds_on_one):
    left, steps = images, 0
    while left >= batch * gpus:
        left, steps = left - batch * gpus, steps + 1
    done, of_one = images - left, images - images % batch
    efficiency = np.float64(done * seconds_on_one) / (of_one * seconds * gpus) if steps else None
    return {"efficiency": efficiency, "images": done, "steps": steps, "images per second": done / seconds}


def rounded_like_the_claims(claimed, images, batch, gpus):
    true = judge.corrected(claimed, images, batch, gpus)
    return true and round(true, 2)


def by_the_tails(claimed, images, batch, gpus):
    kept = [images - images % (batch * count) for count in (gpus, 1)]
    return np.array(claimed * kept[0] / kept[1]) if batch * gpus <= images else None


def by_weighted_line(ranks, seconds):
    parallel, serial = np.polyfit(1 / ranks, seconds, 1, w=1 / seconds)
    return [serial, parallel]


def by_the_course(ranks, sizes, seconds):
    fit = costs.fit(sizes, seconds, lambda n: costs.all_reduce("ring", ranks, n))
    return fit.latency, fit.seconds_per_byte


test_another_right_answer_gets_full_marks = right_answers(
    LAB,
    ("audit", by_counting),
    ("corrected", rounded_like_the_claims),
    ("corrected", by_the_tails),
    ("amdahl", by_weighted_line),
    ("alpha_beta", by_the_course),
)


def test_the_published_table_is_recounted_as_by_hand():
    runs = [claim[1:4] for claim in given.PUBLISHED]
    assert [judge.processed(*run) for run in runs] == [57_344, 57_344, 49_152, 49_152, 32_768, 0]
    true = [judge.corrected(claim.efficiency, *run) for claim, run in zip(given.PUBLISHED, runs, strict=True)]
    assert true[:5] == pytest.approx([0.85, 0.86, 0.71, 0.66, 0.34], abs=0.012)  # from the times that were printed
    assert true[5] is None
    table = given.published_table(true).splitlines()
    assert table[3].split() == ["8", "V100", "2048", "86%", "71%"] and table[6].split()[-1] == "undefined"


def test_the_picture_shows_the_time_that_the_law_misses_most():
    picture = verdict_on(LAB, "amdahl", {"amdahl": lambda ranks, seconds: (0, seconds[0])}).picture()
    assert "farthest from 1 for 8 ranks" in picture.description
    assert verdict_on(LAB, "amdahl", {"amdahl": judge.amdahl}).picture is None  # all bars would have one length
