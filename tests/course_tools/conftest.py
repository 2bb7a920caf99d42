"""The sample lab, as in `graded_sample`, for the tests of lab sources, jails and grading; and a browser."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.distlab.labs.graded_sample import graded, handed_in, isolated, kind, sample, sample_source

__all__ = ["graded", "handed_in", "isolated", "kind", "sample", "sample_source"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    names = ("chromium", "chromium-browser", "google-chrome")
    chromium = next(filter(None, map(shutil.which, names)), None)
    if chromium is None:
        pytest.skip("there is no chromium, chromium-browser or google-chrome on PATH")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()
