"""The stepper: its picture follows its sliders, and a description replaces it where widgets cannot run."""

import xml.etree.ElementTree as ElementTree

import matplotlib.pyplot as plt
import pytest

from distlab import draw
from distlab.collectives import ring_all_reduce
from distlab.draw import style


@pytest.mark.slow
def test_the_stepper_changes_its_picture_with_the_step_and_the_ranks() -> None:
    stepper = draw.Stepper(ring_all_reduce, size=3)
    assert (stepper.step.max, stepper.play.max) == (4, 4)
    pictures = [stepper.picture.value]
    for step in range(1, 5):
        stepper.step.value = step
        pictures.append(stepper.picture.value)
    stepper.ranks.value = 2
    assert (stepper.step.value, stepper.step.max, stepper.play.max) == (0, 2, 2)
    pictures.append(stepper.picture.value)
    assert len(set(pictures)) == len(pictures)
    for picture in pictures:
        assert ElementTree.fromstring(picture).get("aria-label").startswith("Step strip of")
    stepper.ranks.value = 3
    assert stepper.picture.value == pictures[0]


def test_steppers_share_nothing_and_leave_no_figure() -> None:
    moved, still = draw.Stepper(ring_all_reduce, size=2), draw.Stepper(ring_all_reduce, size=2)
    before = still.picture.value
    moved.step.value = 1
    assert still.picture.value == before
    assert still.step.value == 0
    assert plt.get_fignums() == []


def test_a_stepper_starts_with_a_number_of_ranks_that_can_be_chosen() -> None:
    with pytest.raises(ValueError, match="size is 9"):
        draw.Stepper(ring_all_reduce, size=9)


def test_a_shown_stepper_falls_back_to_its_description(monkeypatch: pytest.MonkeyPatch) -> None:
    displayed = []
    monkeypatch.setattr(style, "display", lambda data, raw: displayed.append(data))
    stepper = draw.Stepper(ring_all_reduce, size=2)
    draw.show_widget(stepper, "a ring to walk through")
    [data] = displayed
    assert data["text/plain"] == "a ring to walk through"
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == stepper.model_id
