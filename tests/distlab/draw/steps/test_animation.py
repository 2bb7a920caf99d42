"""The animation: every state and message of the event log, and a way to pause it."""

import re
import xml.etree.ElementTree as ElementTree

import matplotlib.pyplot as plt
import pytest

from distlab import draw
from distlab.collectives import naive_all_reduce, ring_all_reduce
from distlab.draw import style
from distlab.draw.steps import animation
from distlab.simulate.world import Program

SVG = "{http://www.w3.org/2000/svg}"


def groups(picture: str, kind: str) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(picture)
    return [group for group in root.iter(f"{SVG}g") if group.get("class", "").split(" ")[0] == kind]


@pytest.mark.parametrize(("program", "size"), [(ring_all_reduce, 2), (ring_all_reduce, 4), (naive_all_reduce, 3)])
def test_the_animation_has_every_state_and_every_message(program: Program, size: int) -> None:
    trace = draw.trace(program, size)
    picture = trace.animation("what it shows")
    states = groups(picture, "state")
    assert len(states) == len(groups(picture, "title")) == 1 + max(int(event.end) for event in trace.events)
    assert [len(state) for state in states] == [size * size] * len(states)
    assert len(groups(picture, "message")) == len(trace.events.select("send"))
    # Two animations in one page share no name.
    other = set(re.findall(r'id="([^"]+)"', draw.trace(ring_all_reduce, 3).animation("a ring")))
    assert not other & set(re.findall(r'id="([^"]+)"', picture))


def test_the_animation_can_be_paused_and_stands_still_for_those_who_want_it() -> None:
    picture = draw.trace(ring_all_reduce, 3).animation("a ring")
    [name] = re.findall(r'<svg [^>]*id="(\w+)"', picture)
    assert f"#{name}:hover g[class],input:checked~#{name} g[class] {{animation-play-state:paused}}" in picture
    assert f"@media (prefers-reduced-motion:reduce) {{#{name} g[class] {{animation:none}}}}" in picture
    # Without animation one state is visible, the last.
    assert [state.get("visibility") for state in groups(picture, "state")] == ["hidden"] * 4 + [None]
    assert {message.get("visibility") for message in groups(picture, "message")} == {"hidden"}


def test_a_shown_animation_has_a_box_to_pause_it_a_description_and_a_static_strip(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    displayed = []
    for module in (animation, style):
        monkeypatch.setattr(module, "display", lambda data, raw: displayed.append(data))
    draw.trace(ring_all_reduce, 2).show_animation("a ring of two")
    moving, still = displayed
    root = ElementTree.fromstring(moving["text/html"].replace("<br>", "").replace('pause">', 'pause"/>'))
    label = root.find("label")
    assert [child.tag for child in label] == ["input", f"{SVG}svg"]  # siblings, as the rule for the pause needs
    assert root.find("figcaption").text == moving["text/plain"] == still["text/plain"] == "a ring of two"
    assert still["image/svg+xml"].startswith("<svg")
    assert plt.get_fignums() == []
