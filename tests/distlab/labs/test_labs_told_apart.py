"""Known answers that start TensorFlow: what is said to every wrong one, and its share, are those of the snapshot.

`pytest --snapshot-update` writes `known_answers.json` in the lab's folder.
"""

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.distlab.labs.judged_apart import WITH_TENSORFLOW, printed_apart
from tests.distlab.labs.known_wrong import of_lab, without_measured


@pytest.mark.slow
@pytest.mark.parametrize("number", sorted({number for number, _ in WITH_TENSORFLOW}))
def test_known_answers_are_told_apart(number: str, snapshot: SnapshotAssertion) -> None:
    said = {
        exercise: {title: without_measured(text) for title, text in by_title.items()}
        for exercise, by_title in printed_apart("tests.distlab.labs.judged_apart", number).items()
    }
    assert said == snapshot(extension_class=of_lab(number, "known_answers"))
