"""The virtual cluster: any traffic keeps to its rules, and much of it fits into memory."""

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distlab import simulate
from distlab.simulate import (
    Network,
    Rank,
    World,
)


@st.composite
def traffic(draw: st.DrawFn) -> tuple[int, Network, list[list[tuple[int, int, int]]]]:
    """A network, and for each rank the messages it sends: (to, elements, seconds that it computes before)."""
    size = draw(st.integers(2, 5))
    times = st.sampled_from([0.0, 0.25, 1.0, 3.0])
    network = Network(draw(times), draw(times), draw(times))
    if draw(st.booleans()):
        network = network.with_slow_link(0, size - 1, factor=2.5)
    plan = []
    for rank in range(size):
        others = st.integers(0, size - 1).filter(lambda to, rank=rank: to != rank)
        plan.append(draw(st.lists(st.tuples(others, st.integers(0, 3), st.integers(0, 2)), max_size=6)))
    return size, network, plan


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(traffic())
def test_any_traffic_respects_ports_order_and_costs(drawn: tuple[int, Network, list]) -> None:
    size, network, plan = drawn
    to_come = [sum(to == rank for messages in plan for to, *_ in messages) for rank in range(size)]

    async def program(rank: Rank) -> list[tuple[int, int]]:
        for number, (to, elements, seconds) in enumerate(plan[rank.index]):
            await rank.compute(seconds)
            await rank.send(to, np.full(elements + 1, number))
        received = [await rank.receive_any() for _ in range(to_come[rank.index])]
        return [(source, int(array[0])) for source, array in received]

    run = World(size, network).run(program)
    again = World(size, network).run(program)
    assert run.events.columns.tobytes() == again.events.columns.tobytes()
    assert run.results == again.results
    assert run.messages == sum(map(len, plan))

    for rank in range(size):
        for source in range(size):
            numbers = [number for came_from, number in run.results[rank] if came_from == source]
            assert numbers == sorted(numbers), "messages between two ranks keep their order"
        for kind in ("send", "receive"):
            on_port = run.events.select(kind, rank=rank)
            for event, following in pairwise(on_port):
                assert following.start >= event.end, "a port handles one message at a time"
    sends = {event.operation: event for event in run.events.select("send")}
    for receive in run.events.select("receive"):
        send = sends[receive.operation]
        seconds = network.link(send.rank, receive.rank).seconds(send.bytes)
        assert send.end - send.start == pytest.approx(seconds)
        assert receive.end - receive.start == pytest.approx(seconds)
        assert receive.start >= send.start


MEASURE = """
import json, re, sys
from pathlib import Path
import numpy as np
from distlab.collectives import ring_all_reduce
from distlab.simulate import World
size = int(sys.argv[1])
inputs = [np.full(size, rank, float) for rank in range(size)]
run = World(size).run(ring_all_reduce, inputs)
# Not ru_maxrss, which begins with what the process that started this one had.
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024
assert all((result == size * (size - 1) / 2).all() for result in run.results)
print(json.dumps({"peak": peak, "messages": run.messages, "events": len(run.events)}))
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how much memory a process has had")
def test_1024_ranks_with_events_kept_fit_into_300_megabytes() -> None:
    done = subprocess.run([sys.executable, "-c", MEASURE, "1024"], capture_output=True, text=True, check=True)
    measured = json.loads(done.stdout)
    assert measured["messages"] == 2 * 1023 * 1024
    assert measured["events"] == 5 * 1023 * 1024
    assert measured["peak"] < 3e8


def test_seconds_in_words_are_refused() -> None:
    with pytest.raises(ValueError, match="latency is '5us'; it must be a number of seconds"):
        Network(latency="5us")  # type: ignore[arg-type]


@pytest.mark.parametrize("ends", [(7, 8), (-1, 0), (7, 7), (7, "6")])
def test_a_slow_link_to_a_rank_that_there_is_not_is_refused(ends: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"link of its own between ranks .* but the ranks of this world are 0 to 7"):
        World(8, Network().with_slow_link(*ends, factor=10))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda sim: sim.Network(5e-6, 1e9),
            r"seconds_per_byte is 1e\+09, which is no time: .* give 1e-9",
        ),
        (lambda sim: sim.Network(latency=5), r"latency is 5, .* in seconds: for 5 microseconds give 5e-06\.$"),
        (lambda sim: sim.Link(20, 1e-10), r"latency is 20, .* for 20 microseconds give 2e-05"),
        (lambda sim: sim.Network(None), "latency is None; it must be a number of seconds"),
        (
            lambda sim: sim.Network(ranks_per_host=8 / 2, inside_host=sim.Link(0, 0)),
            r"ranks_per_host is 4.0; .* by //",
        ),
        (
            lambda sim: sim.Network(ranks_per_host=4, inside_host=(0, 0)),
            "inside_host is of the type tuple; give a",
        ),
        (lambda sim: sim.Network(links={(0, 1): 1e-3}), r"links\[\(0, 1\)\] is 0.001; give a simulate.Link"),
        (
            lambda sim: sim.Network().with_slow_link(0, 1, "10"),
            r"factor is the text .10.; .* write 10 without quotes",
        ),
        (lambda sim: sim.Network().with_slow_link(0, 1, 0), "factor is 0; give a number above 0"),
        (
            lambda sim: sim.World(4, compute_speeds=0.5),
            "compute_speeds is 0.5; give one speed for each",
        ),
        (lambda sim: sim.World(4, compute_speeds={2: "0.5"}), "the compute speed of rank 2 is '0.5'"),
        (lambda sim: sim.World(4).run([1] * 4, Network), "inputs is the class Network; give a list"),
    ],
)
def test_a_network_that_cannot_be_meant_is_one_sentence(make: Callable[[Any], object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make(simulate)
