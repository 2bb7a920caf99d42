"""Every test of drawings has the course's style, and leaves no figure open."""

from collections.abc import Iterator

import matplotlib.pyplot as plt
import pytest

from distlab import draw


@pytest.fixture(autouse=True)
def course_style() -> Iterator[None]:
    draw.apply_style()
    yield
    plt.close("all")
