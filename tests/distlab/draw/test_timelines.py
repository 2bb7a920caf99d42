"""Time lines: the times of the event log and the waiting between; each pass of a pipeline, and grey where it waits."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from distlab import draw
from distlab.collectives import ring_all_reduce
from distlab.draw.timelines import spans_of
from distlab.model_parallel.pipelines import simulate
from distlab.simulate import Network, Rank, World

GREY = "#eeeeee"
NETWORK = Network(latency=1e-5, seconds_per_byte=1e-9, seconds_per_byte_reduced=5e-10)


async def works_first(rank: Rank, array: np.ndarray) -> np.ndarray:
    await rank.compute(1e-3 * rank.index)
    return await ring_all_reduce(rank, array)


def test_the_timeline_has_the_times_of_the_log_and_the_waiting_between() -> None:
    size = 3
    run = World(size, NETWORK).run(works_first, [np.ones(1000)] * size)
    spans = spans_of(run)
    names = {"sending": "send", "receiving": "receive", "reducing": "reduce", "computing": "compute"}
    for rank in range(size):
        for name, kind in names.items():
            logged = [(event.start, event.end) for event in run.events.select(kind, rank) if event.end > event.start]
            assert spans[rank][name] == logged
        own = [span for kind in ("sending", "reducing", "computing", "waiting") for span in spans[rank][kind]]
        assert sum(end - start for start, end in own) == pytest.approx(run.finished[rank])
    assert spans[0]["waiting"]


def test_the_timeline_draws_each_kind_of_work_with_its_own_hatch() -> None:
    run = World(3, NETWORK).run(works_first, [np.ones(1000)] * 3)
    figure = draw.timeline(run)
    [axes] = figure.axes
    hatches = {}
    for collection in axes.collections:
        hatches.setdefault(collection.get_label().split()[-1], set()).add(collection.get_hatch())
    assert set(hatches) == {"sending", "receiving", "reducing", "computing", "waiting"}
    assert len(set.union(*hatches.values())) == 5
    assert [label.get_text() for label in axes.get_yticklabels()] == ["rank 0", "rank 1", "rank 2"]
    assert "milliseconds" in axes.get_xlabel()
    drawn = [box for collection in axes.collections for box in collection.get_paths()]
    assert len(drawn) == sum(len(spans) for rank in spans_of(run) for spans in rank.values())


@pytest.mark.parametrize(("schedule", "chunks"), [("1f1b", 1), ("interleaved", 2)])
def test_every_pass_has_its_box(schedule: str, chunks: int) -> None:
    timing = simulate(schedule, 4, 8, chunks)
    figure = draw.pipeline_schedules({"": timing})
    (axes,) = figure.axes
    boxes = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    waiting = [box for box in boxes if to_hex(box.get_facecolor()) == GREY and box.get_fill()]
    assert [box.get_width() for box in waiting] == [timing.seconds] * 4
    drawn = {
        (round(box.get_x(), 6), round(box.get_x() + box.get_width(), 6), round(box.get_y() + 0.4))
        for box in boxes
        if box not in waiting
    }
    done = {(round(work.start, 6), round(work.end, 6), work.stage) for of_stage in timing.works for work in of_stage}
    assert drawn == done
    # Forward passes are not hatched, backward ones are: a difference that colour alone does not carry.
    assert sum(bool(box.get_hatch()) for box in boxes) == 4 * 8 * chunks
