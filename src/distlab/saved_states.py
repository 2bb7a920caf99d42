"""The newest state that a program has saved and can go on from; newer ones that it cannot use are named.

    prefix = saved_states.checkpoint(tf.train.latest_checkpoint(folder), folder, state)  # a tf.train.Checkpoint
    file = saved_states.weights(newest, folder, model)    # NNNN.weights.h5 of Keras

Both end the program with one sentence if there is none. Notebook 13 shows what makes checkpoints safe.
`of_dataset` keeps a training that goes on from going on with other data or `kept` options, and one that begins from
replacing what is saved; `check_dataset` and `check_unused` are its parts that write nothing.
"""

import fcntl
import logging
import re
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

NOTE = "trained_on.txt"
"""The file next to the saved states that names their data set, and options that must stay as they are."""

STATES = ("*.index", "checkpoints/*.index", "*.weights.h5")
"""Patterns of what is saved in a folder: checkpoints, those of chapter 07, and the weights of Keras."""

KEPT = (
    *("images", "texts", "batch", "global_batch", "steps_per_epoch", "feeding", "seed"),
    *("learning_rate", "rate", "units"),
)
"""Options of the programs that decide which samples come next, and what a step does with them."""

OF_A_RANK = ("batch", "learning_rate")
"""Those that Horovod's programs take for one rank: another number of ranks is a reason to change them."""

_locked: list[IO[str]] = []
_before: dict[Path, str] = {}
"""The texts of notes that this process has written over."""


def kept(options: Namespace) -> dict[str, object]:
    """The options of a program, with their values, that must stay as they are when its training goes on."""
    return {name: value for name, value in vars(options).items() if name in KEPT}


def of_dataset(folder: Path, name: str, *, resume: bool, may_change: Sequence[str] = (), **options: object) -> None:
    """Note that what will be saved in the folder is trained on this data set, and keep other jobs out of the folder.

    options: others that must stay as they are, such as batch=48 for --batch 48; `kept` has those of a command line.
    may_change: names of options among them whose change is said in one line, and not refused.

    What `check_dataset` refuses ends the program with one sentence, and so does a folder in which another process
    saves: until this one ends, unless it calls this function again.
    """
    check_dataset(folder, name, resume=resume, may_change=may_change, **options)
    note = folder / NOTE
    with suppress(OSError):  # the first save says what is wrong with the folder
        folder.mkdir(parents=True, exist_ok=True)
        if note.exists():
            _before[note] = note.read_text()
        write_note(note, name, **options)
    _keep_others_out(note)


def check_dataset(folder: Path, name: str, *, resume: bool, may_change: Sequence[str] = (), **options: object) -> None:
    """End the program with one sentence if a training on this data set, with these options, may not save in the folder.

    It may not go on from another data set or other options, nor begin where states are saved.
    """
    if not resume:
        check_unused(folder)
        return
    if any(file.name != NOTE for file in (folder.iterdir() if folder.is_dir() else ())):
        check_note(folder / NOTE, name, may_change, **options)


def write_note(note: Path, name: str, **options: object) -> None:
    """Write a data set and options into the file of a folder that `check_note` reads."""
    text = "".join(f"{line}\n" for line in [name, *map(" ".join, _as_typed(options).items())])
    if not note.exists() or note.read_text() != text:
        note.write_text(text)


def check_note(note: Path, name: str, may_change: Sequence[str] = (), **options: object) -> None:
    """End the program with one sentence if what the note's folder holds has another data set or other options.

    What the note does not name may be anything.
    """
    folder, typed = note.parent, _as_typed(options)
    before, *lines = (note.read_text().splitlines() if note.exists() else []) or [name]
    if before != name:
        raise SystemExit(
            f"What is saved in {folder} was trained on {before}, not on {name}: go on with --dataset {before}, or "
            "choose another folder."
        )
    for option, value in (line.split() for line in lines):
        if typed.get(option, value) == value:
            continue
        before = f"What is saved in {folder} was trained with {option} {value}"
        if option not in _as_typed(dict.fromkeys(may_change)):
            if others := [line.split()[0] for line in lines if line.split()[0] not in typed]:
                of_other = f"What is saved in {folder} is of another program, with {' and '.join(others)}"
                raise SystemExit(f"{of_other}: choose another folder.")
            raise SystemExit(f"{before}, not {typed[option]}: go on with {option} {value}, or choose another folder.")
        print(f"{before}; the training goes on with {option} {typed[option]}.", flush=True)


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


def _as_typed(options: dict[str, object]) -> dict[str, str]:
    """The options as they are written on the command line, with their values."""
    return {f"--{option.replace('_', '-')}": str(value) for option, value in options.items()}


def _keep_others_out(note: Path) -> None:
    _locked.clear()
    try:
        file = note.open()
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SystemExit(f"Another job saves in {note.parent}: end it, or choose another folder.") from None
    except OSError:
        return  # a file system without locks, or a folder that the first save will say more about
    _locked.append(file)


def checkpoint(newest: str | None, folder: Path, state: Any) -> str:
    """The prefix of the checkpoint `newest`, or of the one before it that can be used; `state` has its values then."""
    names = (re.fullmatch(r"(.+-\d+)\.(index|data-.*)", file.name) for file in folder.glob("*"))
    prefixes = {str(folder / match[1]) for match in names if match}
    ordered = sorted(prefixes, key=lambda prefix: (prefix == newest, int(prefix.rpartition("-")[2])), reverse=True)

    def restore(prefix: str) -> None:
        if not _is_finite(prefix):
            raise ArithmeticError
        status = state.restore(prefix)
        try:
            status.assert_existing_objects_matched()
        except AssertionError:
            status.expect_partial()  # else it names every value once more, when Python ends
            raise

    return _first_of(ordered, restore, folder)


def _is_finite(prefix: str) -> bool:
    """Whether a checkpoint has neither NaN nor infinity, with which no training goes on."""
    import tensorflow as tf

    saved = tf.train.load_checkpoint(prefix)
    numbers = [name for name, dtype in saved.get_variable_to_dtype_map().items() if dtype.is_floating]
    return all(tf.reduce_all(tf.math.is_finite(saved.get_tensor(name))) for name in numbers)


def weights(newest: Path | None, folder: Path, model: Any) -> Path:
    """The file `newest`, or the epoch before it whose weights can be loaded; the model has them then."""
    files = sorted(folder.glob("[0-9]*.weights.h5"), key=lambda file: (file == newest, file.name), reverse=True)
    return _first_of(files, lambda file: model.load_weights(file), folder)


def _first_of(saved: Iterable, load: Callable[[Any], object], folder: Path) -> Any:
    """The first that can be loaded, having said why those before it cannot."""
    reasons = []
    for each in saved:
        try:
            load(each)
        except (AssertionError, ValueError):  # an object that it lacks, another shape
            reasons.append(f"{Path(each).name} was saved by another program, or with other options")
        except ArithmeticError:
            reasons.append(f"{Path(each).name} holds values that are not finite")
        except Exception as error:  # damaged bytes raise an OpError, an IndexError or nearly anything else
            reasons.append(f"{Path(each).name} is damaged ({type(error).__name__})")
        else:
            if reasons:
                print(f"{', '.join(reasons)}: going on from {Path(each).name}.", flush=True)
            return each
    if reasons:
        for note, text in _before.items():  # what is saved there is still another training's
            with suppress(OSError):
                note.write_text(text)
        # TensorFlow would name every value that it has not restored when Python ends, after the sentence.
        logging.getLogger("tensorflow").setLevel(logging.ERROR)
        raise SystemExit(f"Nothing in {folder} can be used: {', '.join(reasons)}. Choose another folder.")
    raise SystemExit(f"There is nothing saved in {folder} to go on from.")
