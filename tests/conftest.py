"""Places that tests of every kind look at."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with an argument `notebook` runs once for each committed notebook."""
    if "notebook" in metafunc.fixturenames:
        metafunc.parametrize("notebook", NOTEBOOKS, ids=[file.stem for file in NOTEBOOKS])


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT
