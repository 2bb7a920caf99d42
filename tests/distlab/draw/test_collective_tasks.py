"""What each collective begins and ends with: checked for its arguments."""

import pytest

from distlab import draw
from distlab.collectives import all_to_all, ring_all_reduce


def test_a_task_that_does_not_exist_is_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match="no collective 'all-reduce'; there are all_reduce, reduce"):
        draw.trace(ring_all_reduce, 2, collective="all-reduce")
    with pytest.raises(ValueError, match="root is 2, but the ranks are 0 to 1"):
        draw.trace(ring_all_reduce, 2, collective="reduce", root=2)
    with pytest.raises(ValueError, match="needs equal chunks"):
        draw.trace(all_to_all, 2, 3, collective="all_to_all")
