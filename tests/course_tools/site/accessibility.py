"""What keeps somebody from using a page: axe-core's rules, each where a change of width or colours can matter to it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

FIND_VIOLATIONS = Path(__file__).with_suffix(".js").read_text()
Look = tuple[int, str]  # the width of the window and the colour scheme
ONE_LOOK: tuple[Look, ...] = ((1280, "light"),)
# Each width and each scheme once: together they change colours, what scrolls, and how near targets are.
LOOKS: tuple[Look, ...] = (*ONE_LOOK, (390, "dark"))
EVERY_LOOK: tuple[Look, ...] = (*LOOKS, (1280, "dark"), (390, "light"))


def violations(page: Page, looks: Sequence[Look] = LOOKS) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Width, colour scheme and what axe-core finds serious or critical there: the rule and some of the elements.

    The page is opened once and changes its width and its colours. Rules that no look changes are for the first look,
    unless all looks are asked for, as needed once for each kind of page.
    """
    page.evaluate(Axe().axe_script)
    for number, (width, scheme) in enumerate(looks):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.wait_for_function("scheme => document.documentElement.dataset.theme === scheme", arg=scheme)
        with_structure = number == 0 or looks == EVERY_LOOK
        # What a page has only while it lays itself out is gone at the second look.
        if _in_this_look(page, with_structure):
            yield from ((width, scheme, violation) for violation in _in_this_look(page, with_structure))


def _in_this_look(page: Page, with_structure: bool) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.evaluate(f"withStructure => ({FIND_VIOLATIONS})(withStructure)", with_structure)
    return found
