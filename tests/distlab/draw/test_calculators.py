"""The calculators: in a browser their formulas give what the library gives; they work by keyboard."""

import importlib
from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from distlab import costs, draw
from distlab.draw import calculators
from distlab.labs import registry
from distlab.model_parallel import pipelines

pytestmark = pytest.mark.slow
NAMES = {"naive": "naive", "tree": "tree", "ring": "ring", "halving_doubling": "halving-doubling"}


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """All calculators on one page."""
    outputs: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calculators, "display", lambda data, raw: outputs.append(data["text/html"]))
        for name in calculators.CAPTIONS:
            draw.calculator(name)
    page = browser.new_page(viewport={"width": 390, "height": 900})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_content(f"<!doctype html><html lang=en><title>Calculators</title><meta charset=utf-8>{''.join(outputs)}")
    yield page
    assert errors == []


def calculated(page: Page, name: str, cases: list[dict[str, Any]]) -> Any:
    """What the script calculates for each case."""
    script = "([name, cases]) => cases.map(document.querySelector(`[data-name=${name}]`).calculate)"
    return page.evaluate(script, [name, cases])


def test_an_all_reduce_takes_as_long_as_by_the_formula(page: Page) -> None:
    cases = [{"ranks": ranks, "bytes": 1e6, "latency": 5e-6, "bandwidth": 1e9} for ranks in (2, 3, 8, 12)]
    for case, results in zip(cases, calculated(page, "all-reduce", cases), strict=True):
        seconds = {name: costs.all_reduce(name, case["ranks"], case["bytes"]).seconds(5e-6, 1e-9) for name in NAMES}
        assert {each["name"]: sum(each["parts"]) for each in results} == pytest.approx(
            {NAMES[name]: expected for name, expected in seconds.items()}
        )


def test_a_device_needs_the_memory_that_is_predicted(page: Page) -> None:
    splits = [("gpt-175b", 1, 1, 64), ("gpt-175b", 8, 12, 4), ("palm-540b", 4, 2, 512)]
    cases = [dict(zip(("model", "tensor", "pipeline", "replicas"), split, strict=True)) for split in splits]
    for (model, t, p, d), results in zip(splits, calculated(page, "memory", cases), strict=True):
        for zero, parts in enumerate(results):
            expected = costs.predict_split(model, "selene", t * p * d, costs.Split(t, p, zero))
            assert [sum(parts[:3]), parts[3]] == pytest.approx([expected.state_bytes, expected.activation_bytes])


def test_a_pipeline_is_scheduled_as_on_the_virtual_cluster(page: Page) -> None:
    shapes = [("gpipe", 4, 6, 1), ("1f1b", 8, 3, 1), ("interleaved", 4, 8, 3)]
    names = {"gpipe": "GPipe", "1f1b": "1F1B", "interleaved": "interleaved"}
    cases = [{"schedule": names[name], "stages": p, "microBatches": m, "chunks": v} for name, p, m, v in shapes]
    for shape, result in zip(shapes, calculated(page, "pipeline", cases), strict=True):
        timing = pipelines.simulate(*shape)
        expected = {
            (w.stage, w.chunk, w.micro_batch, w.kind == "backward"): (w.start, w.end) for of in timing.works for w in of
        }
        found = {
            (w["stage"], w["chunk"], w["microBatch"], w["isBackward"]): (w["start"], w["end"]) for w in result["works"]
        }
        assert found.keys() == expected.keys()
        assert [found[key] for key in expected] == [pytest.approx(times) for times in expected.values()]
        numbers = [timing.seconds, timing.bubble_fraction, timing.activations_held(0)]
        assert [result[name] for name in ("seconds", "bubble", "kept")] == pytest.approx(numbers)


def test_the_speed_up_is_that_of_amdahls_law(page: Page) -> None:
    [results] = calculated(page, "amdahl", [{"serial": 0.05}])
    expected = costs.Amdahl(0.05, 0.95).speedup([each["devices"] for each in results])
    assert [each["speedup"] for each in results] == pytest.approx(expected)


def test_the_time_lost_is_that_of_young_and_near_that_of_daly(page: Page) -> None:
    judge = importlib.import_module(registry.MODULES["13"])
    disturbed_runs = importlib.import_module("lab_13.disturbed_runs")
    [results] = calculated(page, "saves", [{"save": 30, "faults": 43200, "restart": 0, "interval": 60}])
    expected = judge.plan(1, 0.5, 30, 1)
    assert [results[2]["every"], sum(results[2]["parts"])] == pytest.approx([expected["interval"], expected["lost"]])
    for each in results:
        seconds = disturbed_runs.expected_seconds(100 * each["every"], each["every"], 30, 0, 43200)
        assert 1 + sum(each["parts"]) == pytest.approx(seconds / 100 / each["every"], abs=0.01)


def test_the_calculator_of_saves_begins_with_the_job_of_chapter_13_and_says_when_all_is_lost(page: Page) -> None:
    said = "a fault every 3.1 h, save every 13.6 min: that loses 12.7 % of the time, and yours 22.4 %."
    saves = page.locator("[data-name=saves]")
    expect(saves.get_by_role("status")).to_contain_text(said)
    expect(page.locator("[data-name=all-reduce] svg path[stroke=white]")).to_have_count(0)  # no bar is cut at first
    for name, key in {"Save C": "End", "Fault every M": "Home", "Restart R": "End"}.items():
        saves.get_by_role("slider", name=name).press(key)
    expect(saves.get_by_role("status")).to_contain_text("the job does not progress, whatever the interval")


def test_a_calculator_is_used_by_keyboard_and_says_what_comes_out(page: Page) -> None:
    pipeline = page.locator("[data-name=pipeline]")
    expect(pipeline.get_by_role("slider", name="Chunks")).to_be_disabled()
    pipeline.get_by_role("combobox", name="Schedule").select_option(label="interleaved")
    pipeline.get_by_role("slider", name="Stages").press("ArrowRight")
    status = pipeline.get_by_role("status")
    expect(status).to_contain_text("interleaved with 10 micro-batches on 5 stages")  # the multiple of 5 next to 8
    expect(pipeline.get_by_role("img")).to_have_accessible_name(status.inner_text())
    violations = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    assert [each["id"] for each in violations if each["impact"] in ("serious", "critical")] == []
    page.emulate_media(media="print")
    assert pipeline.locator("label b").first.is_visible() and not pipeline.locator("input").first.is_visible()
