"""Tests that take longer than six seconds: whom a fixture makes `long`, and a share of them for one run.

`make test-all SHARE=2/3` runs, of the files with long tests, every third: so that three machines, or three runs one
after the other, do what one run would take too long for. All other tests run in each.
"""

import re
import zlib
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

Function = TypeVar("Function", bound=Callable[..., Any])


def long(function: Function) -> Function:
    """Say, between `@pytest.fixture` and the function, that this fixture takes long.

    Each test that uses it is `long` then, not only the one that waits for it.
    """
    function.__dict__["long"] = True
    return function


def waits_for_one(item: pytest.Item) -> bool:
    """Whether a test uses such a fixture, itself or through another one."""
    definitions = item._fixtureinfo.name2fixturedefs  # type: ignore[attr-defined]  # pytest has no public way
    return any(getattr(found[-1].func, "long", False) for found in definitions.values() if found)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of `make test-all SHARE=…`."""
    parser.addoption("--share", metavar="K/N", help="of the files with long tests, run the K-th of N shares")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the long tests that are not in this run's share.

    Raises:
        pytest.UsageError: if the option does not name one of the shares.
    """
    if not (share := config.getoption("--share")):
        return
    numbers = re.fullmatch(r"(\d+)/(\d+)", share)
    which, shares = map(int, numbers.groups()) if numbers else (0, 0)
    if not 1 <= which <= shares:
        raise pytest.UsageError(f"--share {share} is no share; the second of three is --share 2/3")
    others = [item for item in items if item.get_closest_marker("long") and share_of(item, shares) != which]
    items[:] = [item for item in items if item not in set(others)]
    config.hook.pytest_deselected(items=others)


def share_of(item: pytest.Item, shares: int) -> int:
    """Which share a test belongs to: a file stays together with its fixtures, and in each run falls to the same one."""
    return zlib.crc32(item.nodeid.partition("::")[0].encode()) % shares + 1
