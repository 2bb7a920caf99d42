"""Tests that take longer than six seconds because they wait for a fixture that does."""

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
