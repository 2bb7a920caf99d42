"""All-reduces where ranks share hosts: what goes inside hosts and between them."""

from functools import partial

import numpy as np
import pytest

from distlab import collectives, costs
from distlab.costs.formulas.hierarchical import ALGORITHMS
from distlab.simulate import Link, Network, World

MEGABYTE = 1e6
SIZES = np.arange(1, 18)
FLAT = {name: name for name in costs.ALL_REDUCE} | {
    "hierarchical": "ring",
    "hierarchical_halving_doubling": "halving_doubling",
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_hierarchical_costs_agree_with_flat_ones_where_all_links_are_equal(name: str) -> None:
    """All ranks on one host, or one rank on each host: what the formula for equally far ranks says."""
    link, unused = Link(2e-6, 1e-9), Link(1.0, 1.0)
    seconds = costs.all_reduce(FLAT[name], SIZES, MEGABYTE).seconds(2e-6, 1e-9, 1e-10)
    alone_on_hosts = ALGORITHMS[name](SIZES, MEGABYTE, 1).seconds(unused, link, 1e-10)
    np.testing.assert_allclose(alone_on_hosts, seconds, rtol=1e-12)
    if FLAT[name] == name:
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


@pytest.mark.parametrize(("size", "per_host"), [(8, 4), (12, 3), (6, 1), (5, 5)])
def test_hierarchical_equals_its_formula_on_full_hosts(size: int, per_host: int) -> None:
    inside, between, gamma = Link(2e-6, 1e-10), Link(2e-5, 3e-9), 3e-10
    network = Network(between.latency, between.seconds_per_byte, gamma, per_host, inside_host=inside)
    array = np.arange(48 * size, dtype=np.float64)
    program = partial(collectives.hierarchical_all_reduce, ranks_per_host=per_host)
    elapsed = World(size, network).run(program, [array] * size).elapsed
    # On the virtual cluster each rank has a port of its own, so that the host's connection is as many times as fast.
    whole_host = Link(between.latency, between.seconds_per_byte / min(size, per_host))
    expected = ALGORITHMS["hierarchical"](size, array.nbytes, per_host).seconds(inside, whole_host, gamma)
    assert elapsed == pytest.approx(expected, rel=1e-9)
