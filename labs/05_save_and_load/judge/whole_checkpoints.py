"""From which checkpoint to resume, and which to delete: an exercise of lab 05 and its judge."""

from collections.abc import Mapping
from typing import NamedTuple, TypedDict

import numpy as np
from lab_05.hints import Lab05Hint

from distlab.labs.answer import Answer
from distlab.labs.answer_errors import NotDone, Raised
from distlab.labs.plain_data import Plain
from distlab.labs.verdict import AnyHint, Verdict, parts, right, wrong


class Files(TypedDict):
    """A checkpoint's number, the bytes of its index file and of each data file; None for a missing file."""

    number: int
    index: int | None
    data: list[int | None]


class Folder(NamedTuple):
    """The checkpoints in a folder, in no order, and how many whole ones to keep."""

    checkpoints: list[Files]
    keep: int


class Housekeeping(TypedDict):
    """What to resume from, and what to delete, by number."""

    resume: int | None
    delete: list[int]


EXAMPLE = Folder(
    [
        {"number": 12, "index": 310, "data": [4096, 0]},
        {"number": 9, "index": 310, "data": [4096, 512]},
        {"number": 3, "index": 310, "data": [4096, 512]},
        {"number": 10, "index": None, "data": [4096, 512]},
        {"number": 11, "index": 310, "data": [4096, 512]},
    ],
    keep=2,
)

WHOLE, NO_INDEX, EMPTY_INDEX, NO_DATA, EMPTY_DATA = range(5)
# From the oldest to the newest checkpoint, and how many to keep.
CASES: tuple[tuple[list[int], int], ...] = (
    ([WHOLE, WHOLE, NO_DATA, WHOLE, EMPTY_DATA, WHOLE, NO_INDEX, EMPTY_INDEX], 2),
    ([EMPTY_DATA, WHOLE, NO_INDEX, WHOLE, NO_DATA], 3),
    ([NO_INDEX, EMPTY_DATA, NO_DATA, EMPTY_INDEX], 2),
    ([WHOLE, WHOLE, EMPTY_INDEX, WHOLE], 1),
    ([WHOLE, WHOLE, WHOLE, WHOLE, EMPTY_DATA], 3),
    ([], 2),
)


FIRST = Folder([{"number": 7, "index": None, "data": [4096]}, {"number": 0, "index": 310, "data": [4096]}], keep=1)
"""Saved before the first step, with one data file: 0 is a number like any other."""


def is_whole(files: Files) -> bool:
    """Whether all files are there and none is empty."""
    return bool(files["index"]) and all(files["data"])


def housekeeping(checkpoints: list[Files], keep: int) -> Housekeeping:
    """The newest whole one; all older ones except the `keep` newest whole ones."""
    whole = sorted(files["number"] for files in checkpoints if is_whole(files))
    if not whole:
        return {"resume": None, "delete": []}
    older = sorted(files["number"] for files in checkpoints if files["number"] < whole[-1])
    return {"resume": whole[-1], "delete": [number for number in older if number not in whole[-keep:]]}


def _drawn(generator: np.random.Generator, kinds: list[int], keep: int) -> Folder:
    numbers = np.sort(generator.choice(np.arange(1, 130), len(kinds), replace=False)).tolist()
    data_files = int(generator.integers(2, 4))
    checkpoints: list[Files] = []
    for number, kind in zip(numbers, kinds, strict=True):
        data: list[int | None] = generator.integers(1000, 9000, data_files).tolist()
        if kind in (NO_DATA, EMPTY_DATA):
            data[int(generator.integers(data_files))] = None if kind == NO_DATA else 0
        index = {NO_INDEX: None, EMPTY_INDEX: 0}.get(kind, int(generator.integers(200, 900)))
        checkpoints.append({"number": number, "index": index, "data": data})
    order = generator.permutation(len(kinds))
    return Folder([checkpoints[place] for place in order], keep)


def judge_housekeeping(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Half of the points for what to resume from, half for what to delete."""
    verdicts = {"resume": right(), "delete": right()}
    drawn = [_drawn(generator, list(kinds), keep) for kinds, keep in CASES]
    drawn += [
        _drawn(generator, generator.integers(5, size=9).tolist(), int(generator.integers(1, 4))) for _ in range(4)
    ]
    for folder in (EXAMPLE, FIRST, *drawn):
        try:
            hints = _hints(answer.call("housekeeping", *folder), folder)
        except (NotDone, Raised) as error:
            if folder is EXAMPLE:
                raise
            hints = dict.fromkeys(verdicts, str(error))
        if folder is EXAMPLE and hints["resume"] == hints["delete"] and hints["resume"]:
            return wrong(hints["resume"])
        for name, hint in hints.items():
            if hint and verdicts[name].is_right:
                verdicts[name] = wrong(hint, context=_in_words(folder))
    return parts(verdicts)


def _hints(said: Plain, folder: Folder) -> Mapping[str, AnyHint | None]:
    """What is wrong with an answer, by part."""
    if not isinstance(said, dict):
        return dict.fromkeys(("resume", "delete"), Lab05Hint.NO_DICTIONARY.says(said=repr(said)[:60]))
    if missing := [name for name in ("resume", "delete") if name not in said]:
        named = " and ".join(f'"{name}"' for name in missing)
        return dict.fromkeys(("resume", "delete"), Lab05Hint.NO_DICTIONARY.says(said=f"one without {named}"))
    expected = housekeeping(*folder)
    return {
        "resume": _hint_of_resume(said["resume"], expected["resume"], folder),
        "delete": _hint_of_delete(said["delete"], expected["delete"], folder),
    }


def _in_words(folder: Folder) -> str:
    whole = sorted(files["number"] for files in folder.checkpoints if is_whole(files))
    damaged = sorted(files["number"] for files in folder.checkpoints if not is_whole(files))
    return f"with whole ones {whole}, damaged ones {damaged} and keep={folder.keep}, "


def _hint_of_resume(said: Plain, expected: int | None, folder: Folder) -> AnyHint | None:
    if type(said) is type(expected) and said == expected:
        return None
    by_number = {files["number"]: files for files in folder.checkpoints}
    if said is None:
        return Lab05Hint.RESUMES_NOTHING.says(expected=expected)
    if not isinstance(said, int) or said not in by_number or isinstance(said, bool):
        unknown = Lab05Hint.RESUMES_WITHOUT_WHOLE if expected is None else Lab05Hint.RESUMES_UNKNOWN
        return unknown.says(said=said)
    files = by_number[said]
    if not files["index"]:
        return Lab05Hint.RESUMES_WITHOUT_INDEX.says(said=said)
    if not all(files["data"]):
        return Lab05Hint.RESUMES_WITHOUT_DATA.says(said=said)
    return Lab05Hint.RESUMES_OLDER.says(said=said, expected=expected)


def _hint_of_delete(said: Plain, expected: list[int], folder: Folder) -> AnyHint | None:
    numbers = {files["number"] for files in folder.checkpoints}
    whole = {files["number"] for files in folder.checkpoints if is_whole(files)}
    if isinstance(said, np.ndarray):
        said = said.tolist()
    if not isinstance(said, (list, tuple)):
        return Lab05Hint.NO_LIST.says(said=said)
    if unknown := [number for number in said if type(number) is not int or number not in numbers]:
        return Lab05Hint.DELETES_UNKNOWN.says(said=unknown[0])
    if twice := [number for number in said if said.count(number) > 1]:
        return Lab05Hint.DELETES_TWICE.says(said=twice[0])
    chosen = {number for number in said if isinstance(number, int)}
    newest = max(whole, default=0)
    if chosen and not whole:
        return Lab05Hint.DELETES_WITHOUT_WHOLE
    if expected and not chosen:
        return Lab05Hint.DELETES_NOTHING
    if newer := sorted(chosen - set(expected) - whole):
        return Lab05Hint.DELETES_NEWER.says(said=newer[-1])
    if kept := sorted(chosen - set(expected)):
        return Lab05Hint.DELETES_KEPT.says(said=kept[-1])
    if damaged := sorted(set(expected) - chosen - whole):
        return Lab05Hint.KEEPS_DAMAGED.says(said=damaged[-1])
    if old := sorted(set(expected) - chosen):
        assert old[0] < newest
        return Lab05Hint.KEEPS_OLD.says(said=old[-1])
    return None
