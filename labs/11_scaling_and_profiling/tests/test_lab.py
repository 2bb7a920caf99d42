"""Lab 11: the judge's own audit, fits and prediction against hand calculations and the course's."""

import numpy as np
import pytest
from lab_11 import audit, fits, given, lab
from lab_11_tests import answers_11

from distlab import costs
from tests.distlab.labs.known_wrong import assert_not_done

LAB = lab.LAB


def test_the_untouched_audit_gives_its_names_without_numbers() -> None:
    assert_not_done(LAB, "audit", {"audit": lambda *epoch: dict.fromkeys(audit.AUDITED)})


def test_the_published_table_is_recounted_as_by_hand() -> None:
    steps = [audit.steps_of(*claim[1:4]) for claim in given.PUBLISHED]
    images = [audit.processed(*claim[1:4]) for claim in given.PUBLISHED]
    assert steps == [14, 7, 3, 3, 1, 0]
    assert images == [57_344, 57_344, 49_152, 49_152, 32_768, 0]
    true = audit.true_efficiencies()
    assert true[:5] == pytest.approx([0.85, 0.86, 0.71, 0.66, 0.34], abs=0.012)  # from the times that were printed
    assert true[5] is None
    table = given.published_table(true)
    assert table.splitlines()[3].split() == ["8", "V100", "2048", "86%", "71%"]
    assert table.splitlines()[6].split()[-1] == "undefined"


def test_correcting_a_claim_and_auditing_its_times_agree() -> None:
    epoch = audit.TimedEpoch(50_001, 300, 7, 1.3, 8.0)
    claimed = (epoch.images / epoch.seconds) / (epoch.gpus * epoch.images / epoch.seconds_on_one)
    assert audit.corrected(claimed, *epoch[:3]) == pytest.approx(audit.audit_of(epoch).efficiency)


def test_the_judge_s_own_fit_is_that_of_the_course() -> None:
    sizes, seconds = np.array([1e3, 1e5, 1e7]), np.array([3e-4, 5e-4, 2e-2])
    fitted = costs.fit(sizes, seconds, lambda n: costs.all_reduce("ring", 6, n))
    columns = np.stack([np.full(3, 10.0), 10 / 6 * sizes], axis=1)
    assert fits.factors(columns, seconds, 1 / seconds) == pytest.approx([fitted.latency, fitted.seconds_per_byte])
    several = fits.factors(columns, np.stack([seconds, 2 * seconds]), 1.0)
    assert several[0] == pytest.approx(np.linalg.lstsq(columns, seconds)[0]) and several[1] == pytest.approx(
        2 * several[0]
    )


@pytest.mark.parametrize("name", ["audit", "amdahl", "alpha_beta", "predicted"])
def test_the_target_shows_what_the_right_answer_gives(name: str) -> None:
    text = LAB.target(name)
    assert name in text and len(text) > 40
    if name == "amdahl":
        assert answers_11.law_of(np.array([1, 2, 4, 8]), np.array([14, 8, 5, 3.5])) == pytest.approx((2, 12))
        assert text == "amdahl([1, 2, 4, 8], [14, 8, 5, 3.5]) = (2, 12)"


def test_the_lab_needs_no_tensorflow() -> None:
    assert not LAB.tensorflow
