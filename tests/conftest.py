"""Places that tests of every kind look at."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with an argument `notebook` runs once for each committed notebook."""
    if "notebook" in metafunc.fixturenames:
        metafunc.parametrize("notebook", NOTEBOOKS, ids=[file.stem for file in NOTEBOOKS])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In several processes (pytest-xdist) slow tests come first; those of a file, with their fixtures, share one."""
    if not config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        return
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    for item in items:
        of_notebook = "notebook" in getattr(item, "fixturenames", ())
        item.add_marker(pytest.mark.xdist_group(item.nodeid if of_notebook else str(item.path)))


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT
