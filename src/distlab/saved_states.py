"""The newest state that a program has saved and can go on from; newer ones that it cannot use are named.

    prefix = saved_states.checkpoint(tf.train.latest_checkpoint(folder), folder, state)  # a tf.train.Checkpoint
    file = saved_states.weights(newest, folder, model)    # NNNN.weights.h5 of Keras

Both end the program with one sentence if there is none. Notebook 13 shows what makes checkpoints safe.
`of_dataset` keeps a training that goes on from going on with other data, and one that begins from replacing what is
saved; `check_dataset` and `check_unused` are its parts that write nothing.
"""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

NOTE = "trained_on.txt"
"""The file next to the saved states that names their data set."""

STATES = ("*.index", "checkpoints/*.index", "*.weights.h5")
"""Patterns of what is saved in a folder: checkpoints, those of chapter 07, and the weights of Keras."""


def of_dataset(folder: Path, name: str, *, resume: bool) -> None:
    """Note that what will be saved in the folder is trained on this data set.

    What `check_dataset` refuses ends the program with one sentence.
    """
    check_dataset(folder, name, resume=resume)
    folder.mkdir(parents=True, exist_ok=True)
    note = folder / NOTE
    if not note.exists() or note.read_text().strip() != name:
        note.write_text(f"{name}\n")


def check_dataset(folder: Path, name: str, *, resume: bool) -> None:
    """End the program with one sentence if a training on this data set may not save in the folder.

    It may not go on from another data set, nor begin where states are saved.
    """
    note = folder / NOTE
    if not resume:
        check_unused(folder)
    elif note.exists() and (before := note.read_text().strip()) != name and [*folder.iterdir()] != [note]:
        raise SystemExit(
            f"What is saved in {folder} was trained on {before}, not on {name}: go on with --dataset {before}, or "
            "choose another folder."
        )


def check_unused(folder: Path) -> None:
    """End the program with one sentence if states are saved in the folder, which a new training would replace."""
    if name := newest(folder):
        raise SystemExit(
            f"{folder} holds checkpoints, the newest is {name}: add --resume to go on, or choose another folder."
        )


def newest(folder: Path) -> str | None:
    """The name of the saved state with the highest number, such as checkpoint-3; None without any."""
    names = [file.name.removesuffix(".index") for pattern in STATES for file in folder.glob(pattern)]
    numbered = [match for name in names if (match := re.fullmatch(r"(?:.+-)?(\d+)(?:\.weights\.h5)?", name))]
    return max(numbered, key=lambda match: int(match[1]))[0] if numbered else None


def checkpoint(newest: str | None, folder: Path, state: Any) -> str:
    """The prefix of the checkpoint `newest`, or of the one before it that can be used; `state` has its values then."""
    names = (re.fullmatch(r"(.+-\d+)\.(index|data-.*)", file.name) for file in folder.glob("*"))
    prefixes = {str(folder / match[1]) for match in names if match}
    ordered = sorted(prefixes, key=lambda prefix: (prefix == newest, int(prefix.rpartition("-")[2])), reverse=True)

    def restore(prefix: str) -> None:
        status = state.restore(prefix)
        try:
            status.assert_existing_objects_matched()
        except AssertionError:
            status.expect_partial()  # else it names every value once more, when Python ends
            raise

    return _first_of(ordered, restore, folder)


def weights(newest: Path | None, folder: Path, model: Any) -> Path:
    """The file `newest`, or the epoch before it whose weights can be loaded; the model has them then."""
    files = sorted(folder.glob("[0-9]*.weights.h5"), key=lambda file: (file == newest, file.name), reverse=True)
    return _first_of(files, lambda file: model.load_weights(file), folder)


def _first_of(saved: Iterable, load: Callable[[Any], object], folder: Path) -> Any:
    """The first that can be loaded, having named those before it that cannot."""
    unusable = []
    for each in saved:
        try:
            load(each)
        except Exception as error:  # damaged bytes, and another program's values, raise nearly anything
            unusable.append(f"{Path(each).name} ({type(error).__name__})")
        else:
            if unusable:
                print(f"{', '.join(unusable)} cannot be used: going on from {Path(each).name}.", flush=True)
            return each
    if unusable:
        raise SystemExit(f"Nothing in {folder} can be used: {', '.join(unusable)}. Choose another folder.")
    raise SystemExit(f"There is nothing saved in {folder} to go on from.")
