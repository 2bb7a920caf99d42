"""The animation, the stepper, the timeline and the bytes per link: their content against the event log."""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pytest

from distlab import draw
from distlab.collectives import halving_doubling_all_reduce, naive_all_reduce, ring_all_reduce
from distlab.draw import style, widgets
from distlab.draw.links import traffic
from distlab.draw.steps import animation
from distlab.draw.timelines import spans_of
from distlab.simulate import DeadlockError, Network, Rank, World

SVG = "{http://www.w3.org/2000/svg}"
NETWORK = Network(latency=1e-5, seconds_per_byte=1e-9, seconds_per_byte_reduced=5e-10)


@pytest.fixture(autouse=True)
def course_style() -> Iterator[None]:
    draw.apply_style()
    yield
    plt.close("all")


def groups(picture: str, kind: str) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(picture)
    return [group for group in root.iter(f"{SVG}g") if group.get("class", "").split(" ")[0] == kind]


@pytest.mark.parametrize(("program", "size"), [(ring_all_reduce, 2), (ring_all_reduce, 4), (naive_all_reduce, 3)])
def test_the_animation_has_every_state_and_every_message(program: object, size: int) -> None:
    trace = draw.trace(program, size)
    picture = draw.animation(trace, "what it shows")
    states = groups(picture, "state")
    assert len(states) == len(groups(picture, "title")) == 1 + max(int(event.end) for event in trace.events)
    assert [len(state) for state in states] == [size * size] * len(states)
    assert len(groups(picture, "message")) == len(trace.events.select("send"))


def test_the_animation_is_byte_equal_well_formed_and_described() -> None:
    pictures = [draw.animation(draw.trace(ring_all_reduce, 3), "rank 0 < rank 1 & others") for _ in range(2)]
    assert pictures[0] == pictures[1]
    root = ElementTree.fromstring(pictures[0])
    assert root.find(f"{SVG}title").text == root.get("aria-label") == "rank 0 < rank 1 & others"
    assert root.get("role") == "img"
    assert "script" not in pictures[0]


def test_two_animations_in_one_page_share_no_name() -> None:
    names = [
        set(re.findall(r'id="([^"]+)"', draw.animation(draw.trace(ring_all_reduce, size), "a ring"))) for size in (2, 3)
    ]
    assert not names[0] & names[1]


def test_every_part_that_is_used_is_defined() -> None:
    picture = draw.animation(draw.trace(ring_all_reduce, 3), "a ring")
    assert set(re.findall(r'href="#([^"]+)"', picture)) <= set(re.findall(r'id="([^"]+)"', picture))


def test_the_animation_can_be_paused_and_stands_still_for_those_who_want_it() -> None:
    picture = draw.animation(draw.trace(ring_all_reduce, 3), "a ring")
    [name] = re.findall(r'<svg [^>]*id="(\w+)"', picture)
    assert f"#{name}:hover g[class],input:checked~#{name} g[class] {{animation-play-state:paused}}" in picture
    assert f"@media (prefers-reduced-motion:reduce) {{#{name} g[class] {{animation:none}}}}" in picture
    # Without animation one state is visible, the last.
    assert [state.get("visibility") for state in groups(picture, "state")] == ["hidden"] * 4 + [None]
    assert {message.get("visibility") for message in groups(picture, "message")} == {"hidden"}


def test_a_shown_animation_has_a_box_to_pause_it_a_description_and_a_static_strip(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = []
    for module in (animation, style):
        monkeypatch.setattr(module, "display", lambda data, raw: shown.append(data))
    draw.show_animation(draw.trace(ring_all_reduce, 2), "a ring of two")
    moving, still = shown
    root = ElementTree.fromstring(moving["text/html"].replace("<br>", "").replace('pause">', 'pause"/>'))
    label = root.find("label")
    assert [child.tag for child in label] == ["input", f"{SVG}svg"]  # siblings, as the rule for the pause needs
    assert root.find("figcaption").text == moving["text/plain"] == still["text/plain"] == "a ring of two"
    assert still["image/svg+xml"].startswith("<svg")
    assert plt.get_fignums() == []


def test_a_run_that_stopped_can_be_animated() -> None:
    async def only_rank_0_sends(rank: Rank, array: np.ndarray) -> np.ndarray:
        if rank.index == 0:
            await rank.send(1, array)
        return await rank.receive(0) if rank.index == 2 else array

    picture = draw.animation(draw.trace(only_rank_0_sends, 3), "stopped")
    assert len(groups(picture, "message")) == 1
    assert len(groups(picture, "state")) == 2


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
    one, other = draw.Stepper(ring_all_reduce, size=2), draw.Stepper(ring_all_reduce, size=2)
    before = other.picture.value
    one.step.value = 1
    assert other.picture.value == before
    assert other.step.value == 0
    assert plt.get_fignums() == []


def test_a_stepper_starts_with_a_number_of_ranks_that_can_be_chosen() -> None:
    with pytest.raises(ValueError, match="size is 9"):
        draw.Stepper(ring_all_reduce, size=9)


def test_a_shown_stepper_falls_back_to_its_description(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []
    monkeypatch.setattr(widgets, "display", lambda data, raw: shown.append(data))
    stepper = draw.Stepper(ring_all_reduce, size=2)
    draw.show_stepper(stepper, "a ring to walk through")
    [data] = shown
    assert data["text/plain"] == "a ring to walk through"
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == stepper.model_id


async def works_first(rank: Rank, array: np.ndarray) -> np.ndarray:
    await rank.compute(1e-3 * rank.index)
    return await ring_all_reduce(rank, array)


@pytest.mark.parametrize("size", [2, 3, 8])
def test_the_timeline_has_the_times_of_the_log_and_the_waiting_between(size: int) -> None:
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


def test_the_ranks_of_a_deadlock_wait_until_the_end() -> None:
    async def rank_1_computes(rank: Rank, array: np.ndarray) -> None:
        if rank.index == 1:
            await rank.compute(2.0)
        await rank.receive((rank.index + 1) % rank.size)

    with pytest.raises(DeadlockError) as caught:
        World(2).run(rank_1_computes, [np.ones(1)] * 2)
    assert spans_of(caught.value, 2)[0]["waiting"] == [(0.0, 2.0)]
    assert draw.timeline(caught.value, 2).axes


@pytest.mark.parametrize("size", [2, 5, 8])
def test_the_bytes_per_link_are_those_of_the_log(size: int) -> None:
    run = World(size, NETWORK).run(halving_doubling_all_reduce, [np.ones(1000)] * size)
    sent, messages = traffic(run)
    assert np.array_equal(sent.sum(1), run.bytes_sent_by_rank)
    assert np.array_equal(messages.sum(1), run.messages_by_rank)
    for source in range(size):
        for to in range(size):
            between = run.events.select("send", source, to)
            assert (sent[source, to], messages[source, to]) == (sum(event.bytes for event in between), len(between))


def test_the_matrix_has_a_number_for_each_link_that_was_used_and_the_sums() -> None:
    run = World(3, NETWORK).run(ring_all_reduce, [np.ones(3000)] * 3)
    figure = draw.bytes_per_link(run)
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts.count("32") == 3 + 3 + 3
    assert texts.count("96") == 1
    assert figure.texts[0].get_text() == "in kB"


def test_a_timeline_and_a_matrix_are_byte_equal_when_drawn_again() -> None:
    run = World(4, NETWORK).run(ring_all_reduce, [np.ones(64)] * 4)
    for picture in (draw.timeline, draw.bytes_per_link):
        assert style.svg(picture(run), "a run") == style.svg(picture(run), "a run")


@pytest.mark.parametrize("picture", [draw.timeline, draw.bytes_per_link])
def test_an_empty_run_can_be_drawn(picture: object) -> None:
    async def nothing(rank: Rank) -> None:
        pass

    assert picture(World(2).run(nothing)).axes
