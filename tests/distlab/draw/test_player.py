"""The player: its data come from the executed program; in a browser it is played, and stepped by keyboard."""

import json
import re
from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from distlab import draw
from distlab.collectives import naive_all_reduce, ring_all_reduce
from distlab.draw import player
from distlab.runtime.errors import WrongArgument
from distlab.simulate import Rank

MILLISECONDS = 120_000
DESCRIBED = "rank 0 sends chunk 0 to rank 1; rank 1 sends chunk 1 to rank 2; rank 2 sends chunk 2 to rank 0."


@pytest.fixture
def displayed(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    outputs: list[dict[str, str]] = []
    monkeypatch.setattr(player, "display", lambda data, raw: outputs.append(data))
    monkeypatch.setattr("distlab.draw.style.display", lambda data, raw: outputs.append(data))
    return outputs


def test_the_data_of_a_run_are_its_messages_and_the_shares_in_each_chunk() -> None:
    run = player.film({3: draw.trace(ring_all_reduce, 3)})["runs"][3]
    assert len(run["sent"]) == 4 and len(run["held"]) == 5
    assert run["sent"][0] == [[0, 1, [0]], [1, 2, [1]], [2, 0, [2]]]
    assert run["held"][:2] == [[[1, 1, 1], [2, 2, 2], [4, 4, 4]], [[1, 1, 5], [3, 2, 2], [4, 6, 4]]]
    assert run["held"][-1] == [[7, 7, 7]] * 3


async def keep(rank: Rank, array: np.ndarray) -> np.ndarray:
    """An all-reduce that does nothing."""
    return array


def test_a_wrong_program_is_refused_with_what_is_wrong() -> None:
    with pytest.raises(WrongArgument, match=r"on 2 ranks: In the end chunk 0 of rank 0 lacks the share of rank 1"):
        draw.play(keep)


@pytest.mark.slow
def test_the_output_has_data_for_2_to_8_ranks_words_and_a_static_strip(displayed: list[dict[str, str]]) -> None:
    draw.play(ring_all_reduce, 3)
    moving, still = displayed
    assert moving["text/plain"] == still["text/plain"] and DESCRIBED in moving["text/plain"]
    assert still["image/svg+xml"].startswith("<svg")
    data = json.loads(re.search(r'<script type="application/json">(.*?)</script>', moving["text/html"])[1])
    assert list(data["runs"]) == [str(ranks) for ranks in range(2, 9)]
    assert len(moving["text/html"]) < 32_000
    assert plt.get_fignums() == []


@pytest.fixture(params=["no-preference", "reduce"])
def page(
    request: pytest.FixtureRequest, browser: Browser, displayed: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Page]:
    """The output alone on a page, in a browser that lets things move or not."""
    monkeypatch.setattr(player, "SIZES", (2, 3))
    draw.play(ring_all_reduce, 3)
    page = browser.new_context(reduced_motion=request.param).new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_content(f"<!doctype html><meta charset=utf-8>{displayed[0]['text/html']}")
    yield page
    assert errors == []


def says(page: Page, text: str) -> None:
    expect(page.get_by_role("status")).to_contain_text(text, timeout=MILLISECONDS)


@pytest.mark.slow
def test_the_player_is_stepped_by_keyboard_says_what_happens_and_plays_to_the_end(page: Page) -> None:
    picture = page.get_by_role("img")
    says(page, "Before the first step: each rank has 3 chunks")
    page.get_by_role("button", name="Step on").focus()
    page.keyboard.press("Enter")
    says(page, f"Step 1 of 4: {DESCRIBED}")
    expect(picture).to_have_accessible_name(re.compile("after step 1 of 4"), timeout=MILLISECONDS)
    page.get_by_role("slider", name="Step").focus()
    page.keyboard.press("End")
    says(page, "Step 4 of 4: rank 0 sends finished chunk 0 to rank 1")
    says(page, "Each rank has 3 finished chunks of 3.")
    expect(page.get_by_role("button", name="Step on")).to_be_disabled()
    page.get_by_role("button", name="Step back").click()
    says(page, "Step 3 of 4")
    says(page, "Each rank has 2 finished chunks of 3.")
    page.get_by_role("slider", name="Step").press("Home")
    page.get_by_role("button", name="Play").click()
    says(page, "Step 1 of 4")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    page.get_by_role("button", name="Play").click()
    says(page, "Step 4 of 4")
    expect(page.get_by_role("button", name="Play")).to_be_visible(timeout=MILLISECONDS)
    page.get_by_role("combobox", name="Ranks").select_option("2")
    says(page, "2 steps follow.")
    expect(picture.locator(".rank")).to_have_count(2)


@pytest.mark.slow
def test_each_rank_is_named_where_they_have_different_numbers(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(player, "SIZES", (3,))
    page = browser.new_page()
    page.set_content(f"<!doctype html><meta charset=utf-8>{player.figure(naive_all_reduce, 3)}")
    slider = page.get_by_role("slider", name="Step")
    slider.press("ArrowRight")
    says(page, "No rank has a finished chunk.")
    slider.press("ArrowRight")
    says(page, "Finished chunks of 3: rank 0 has 3, rank 1 has 0, rank 2 has 0.")
