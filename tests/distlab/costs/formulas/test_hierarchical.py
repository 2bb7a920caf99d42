"""All-reduces where ranks share hosts: what goes inside hosts and between them."""

import numpy as np
import pytest

from distlab import costs
from distlab.costs.formulas.hierarchical import ALGORITHMS
from distlab.simulate import Link

MEGABYTE = 1e6
SIZES = np.arange(1, 18)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_hierarchical_costs_agree_with_flat_ones_where_all_links_are_equal(name: str) -> None:
    """All ranks on one host, or one rank on each host: what the formula for equally far ranks says."""
    if name.startswith("hierarchical"):
        flat_name = {"hierarchical": "ring", "hierarchical_halving_doubling": "halving_doubling"}[name]
    else:
        flat_name = name
    link, unused = Link(2e-6, 1e-9), Link(1.0, 1.0)
    seconds = costs.all_reduce(flat_name, SIZES, MEGABYTE).seconds(2e-6, 1e-9, 1e-10)
    alone_on_hosts = ALGORITHMS[name](SIZES, MEGABYTE, 1).seconds(unused, link, 1e-10)
    np.testing.assert_allclose(alone_on_hosts, seconds, rtol=1e-12)
    if not name.startswith("hierarchical"):
        on_one_host = ALGORITHMS[name](SIZES, MEGABYTE, 17).seconds(link, unused, 1e-10)
        np.testing.assert_allclose(on_one_host, seconds, rtol=1e-12)


def test_steps_and_bytes_inside_and_between_hosts_by_hand() -> None:
    ring = ALGORITHMS["ring"](512, 100.0, 4)
    assert (ring.steps_inside, ring.steps_between) == (1022 - 254, 254)
    assert (ring.bytes_inside, ring.bytes_between) == (0, 2 * 511 / 512 * 100)
    hierarchical = ALGORITHMS["hierarchical"](512, 100.0, 4)
    assert (hierarchical.steps_inside, hierarchical.steps_between) == (6, 254)
    assert (hierarchical.bytes_inside, hierarchical.bytes_between) == (150, 2 * 127 / 128 * 100)
    doubling = ALGORITHMS["recursive_doubling"](8, 100.0, 4)
    assert (doubling.steps_inside, doubling.steps_between) == (2, 1)
    assert (doubling.bytes_inside, doubling.bytes_between) == (200, 400)
    with pytest.raises(ValueError, match="ranks_per_host is 0"):
        ALGORITHMS["ring"](8, 100.0, 0)
