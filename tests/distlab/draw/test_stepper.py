"""The stepper: its picture follows its sliders, and a description replaces it where widgets cannot run."""

import xml.etree.ElementTree as ElementTree

import pytest

from distlab import draw
from distlab.collectives import ring_all_reduce


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
