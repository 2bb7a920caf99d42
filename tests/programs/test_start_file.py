"""The file that all programs of chapter 14 start from: whole, or refused with what to do."""

import argparse
import io
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from distlab import programs
from tests.prepared_runs import PreparedRuns


@pytest.fixture
def chapter_folder(root: Path) -> Path:
    return root / "notebooks/programs/14_other_frameworks"


@pytest.fixture
def layouts(chapter_folder: Path) -> Iterator[ModuleType]:
    yield programs.module(chapter_folder / "layouts.py")


def arrays(**others: object) -> bytes:
    """An .npz file of weights, images and labels, with others instead."""
    whole: dict[str, object] = {f"weight_{index}": np.zeros(1) for index in range(6)}
    whole |= {"images": np.zeros((2, 28, 28)), "labels": np.zeros(2)}
    written = io.BytesIO()
    np.savez(written, **{name: array for name, array in (whole | others).items() if array is not None})
    return written.getvalue()


def test_what_start_writes_is_taken(layouts: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "start.npz"
    file.write_bytes(arrays())
    assert layouts.start_file(str(file)) == file


@pytest.mark.parametrize(
    "content",
    [
        b"",
        arrays()[:-200],
        arrays()[:300] + b"damaged!" + arrays()[308:],
        json.dumps({"images": []}).encode(),
        arrays(labels=None),
        arrays(weight_5=None),
        arrays(images=np.zeros((2, 784))),
        arrays(images=np.zeros((0, 28, 28)), labels=np.zeros(0)),
        arrays(labels=np.zeros(3)),
        arrays(images=np.array([{}, {}])),
    ],
)
def test_what_is_damaged_or_foreign_is_named(content: bytes, layouts: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "start.npz"
    file.write_bytes(content)
    with pytest.raises(argparse.ArgumentTypeError, match=r"start\.npz is not what start\.py writes"):
        layouts.start_file(str(file))


def test_what_is_missing_or_a_folder_is_named(layouts: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"there is no .*none\.npz; `python start\.py"):
        layouts.start_file(str(tmp_path / "none.npz"))
    with pytest.raises(argparse.ArgumentTypeError, match=r"is not what start\.py writes"):
        layouts.start_file(str(tmp_path))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["start.npz", "--images", "1000000"], "at most: digits has no more for training"),
    ],
)
def test_images_that_are_not_there_are_refused(
    words: list[str], sentence: str, chapter_folder: Path, tmp_path: Path, runs: PreparedRuns
) -> None:
    done = runs.run(chapter_folder / "start.py", *words, folder=tmp_path)
    assert done.status == 2 and sentence in done.output.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_programs_refuse_it_before_they_train(chapter_folder: Path, tmp_path: Path, runs: PreparedRuns) -> None:
    (tmp_path / "start.npz").write_text("<html>")
    done = runs.run(chapter_folder / "train_tensorflow.py", "start.npz", folder=tmp_path)
    assert done.status == 2 and "start.npz is not what start.py writes" in done.output.splitlines()[-1]


def test_weights_are_written_under_exactly_the_name_that_is_given(layouts: ModuleType, tmp_path: Path) -> None:
    layouts.write(tmp_path / "start", [np.zeros(2)])
    assert [file.name for file in tmp_path.iterdir()] == ["start"]
    assert [array.tolist() for array in layouts.read(tmp_path / "start")] == [[0, 0]]
