"""Exercise `samples_seen` of lab 03: which images each worker is given under each auto-shard policy."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np
from lab_03.hints import Lab03Hint

from distlab.labs.answer import Answer
from distlab.labs.answer_errors import NotPlain, Raised
from distlab.labs.part_cases import error_verdict
from distlab.labs.plain_data import Plain
from distlab.labs.verdict import AnyHint, Verdict, not_done, parts, right, wrong

Item = TypeVar("Item")

POLICIES = ("OFF", "DATA", "FILE", "AUTO")
FEW = "few files or batches"


def samples_seen(policy: str, images_per_file: Sequence[int], workers: int, batch: int) -> list[int] | None:
    """How many images each worker is given in one epoch, of files that the pipeline reads and batches.

    Under DATA a worker keeps every `workers`-th batch, under FILE every `workers`-th file, and AUTO is FILE, since
    files are read; None where TensorFlow refuses, because there are fewer batches or files than workers.
    """
    total = sum(images_per_file)
    if policy == "OFF":
        return [total] * workers
    parts = images_per_file
    if policy == "DATA":
        parts = [min(batch, total - at) for at in range(0, total, batch)]
    return [sum(parts[worker::workers]) for worker in range(workers)] if len(parts) >= workers else None


ShardCase = tuple[str, list[int], int, int]
"""The arguments of `samples_seen`."""


def judge_samples(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A fifth of the points for each policy, and for few files or batches."""
    workers = int(generator.integers(2, 4))
    batch = int(generator.integers(1, 3)) * workers + 1  # so that parts of batches are no single images dealt out
    while True:
        files = generator.integers(5, 30, int(generator.integers(2, 4)) * workers + 1).tolist()
        by_data, by_file = (samples_seen(policy, files, workers, batch) or [] for policy in ("DATA", "FILE"))
        if sorted(by_data) != sorted(by_file):
            break
    cases: dict[str, list[ShardCase]] = {
        policy: [(policy, files, workers, batch), (policy, [7, 12, 9, 4, 34], 2, 4), (policy, [5, 3], 2, 3)]
        for policy in POLICIES
    }
    cases[FEW] = [
        ("FILE", [40, 20], 3, 4),
        ("AUTO", [64], 2, 4),
        ("OFF", [5], 3, 2),
        ("DATA", [5], 3, 2),
        ("DATA", [6, 6], 3, 5),
        ("DATA", [5], 3, 8),
        ("FILE", [3, 4, 5], 3, 20),
        ("DATA", [4, 4, 4], 2, 12),
        ("OFF", [3], 2, 4),
        ("DATA", [2, 2], 4, 1),
    ]
    verdicts = {policy: _verdict_on_cases(answer, cases[policy]) for policy in POLICIES}
    # What is wrong with a policy anyway is said once.
    others = [case for case in cases[FEW] if verdicts[case[0]].is_right]
    verdicts[FEW] = _verdict_on_cases(answer, others) if others else not_done("no policy is right yet")
    return parts(verdicts)


def _verdict_on_cases(answer: Answer, group: Sequence[ShardCase]) -> Verdict:
    for case in group:
        policy, files, workers, batch = case
        said = f"for {policy}, files of {files} images, {workers} workers, batches of {batch}: "
        try:
            counts = answer.call("samples_seen", *case, none_is_an_answer=True)
        except (Raised, NotPlain) as error:
            return error_verdict(error, said)
        if isinstance(counts, np.ndarray):
            counts = np.ravel(counts).tolist()
        elif isinstance(counts, tuple):
            counts = list(counts)
        if counts != samples_seen(*case):
            return wrong(_hint_of_samples(counts, *case), context=f"{counts!r} {said}")
    return right()


def _hint_of_samples(counts: Plain, policy: str, files: Sequence[int], workers: int, batch: int) -> AnyHint:
    if samples_seen(policy, files, workers, batch) is None:
        if isinstance(counts, list) and counts and all(count is None for count in counts):
            return Lab03Hint.NONE_FOR_ALL_TOGETHER
        return Lab03Hint.SOMEBODY_WITHOUT_A_BATCH if policy == "DATA" else Lab03Hint.SOMEBODY_WITHOUT_A_FILE
    if counts is None:
        enough = policy in ("FILE", "AUTO") or len(files) >= workers
        return Lab03Hint.NOT_REFUSED if enough else Lab03Hint.FILES_DO_NOT_MATTER
    numbers = [count for count in counts if isinstance(count, (int, float))] if isinstance(counts, list) else []
    if not isinstance(counts, list) or not len(counts) == len(numbers) == workers:
        return Lab03Hint.NOT_ONE_PER_WORKER.says(workers=workers)
    for policies, mistaken, hint in _shard_mistakes(files, workers, batch):
        if policy in policies and numbers == mistaken:
            return hint
    expected = samples_seen(policy, files, workers, batch) or []
    if sorted(numbers) == sorted(expected):
        return Lab03Hint.OTHER_WORKERS
    if sum(numbers) == sum(files):
        return Lab03Hint.OTHERWISE_DEALT
    return Lab03Hint.WRONG_SUM.says(seen=sum(numbers), images=sum(files))


def _shard_mistakes(
    files: Sequence[int], workers: int, batch: int
) -> list[tuple[tuple[str, ...], list[int] | None, Lab03Hint]]:
    """What usual mistakes give, under which policies, with their hints."""
    total = sum(files)
    sizes = [min(batch, total - at) for at in range(0, total, batch)]
    by_image = [len(range(worker, total, workers)) for worker in range(workers)]
    by_data, by_file = (samples_seen(policy, files, workers, batch) for policy in ("DATA", "FILE"))
    equal = [len(part) for part in np.array_split(np.arange(total), workers)]
    by_parts = [sum(len(range(worker, size, workers)) for size in sizes) for worker in range(workers)]
    smaller = samples_seen("DATA", files, workers, max(1, batch // workers))
    by_file_block = [sum(block) for block in _blocks(files, workers)]
    return [
        (("OFF",), equal, Lab03Hint.OFF_DIVIDES),
        (("DATA",), by_parts if by_parts != by_image else None, Lab03Hint.BATCH_IS_DIVIDED),
        (("DATA",), by_image, Lab03Hint.DATA_BY_IMAGES),
        (("DATA",), smaller, Lab03Hint.BATCH_IS_DIVIDED),
        (("DATA",), [sum(block) for block in _blocks(sizes, workers)], Lab03Hint.DATA_IN_BLOCKS),
        (("FILE", "AUTO"), by_file_block, Lab03Hint.FILES_IN_BLOCKS),
        (("FILE", "AUTO"), [len(files[at::workers]) for at in range(workers)], Lab03Hint.COUNTS_FILES),
        (POLICIES, [total] * workers, Lab03Hint.THIS_IS_OFF),
        (("AUTO",), by_data, Lab03Hint.AUTO_IS_NOT_DATA),
        (POLICIES, by_data, Lab03Hint.THIS_IS_DATA),
        (POLICIES, by_file, Lab03Hint.THIS_IS_FILE),
    ]


def _blocks(items: Sequence[Item], count: int) -> list[Sequence[Item]]:
    """The items in connected blocks that are as equal as possible."""
    bounds = np.cumsum([0] + [len(part) for part in np.array_split(np.arange(len(items)), count)]).tolist()
    return [items[start:stop] for start, stop in pairwise(bounds)]
