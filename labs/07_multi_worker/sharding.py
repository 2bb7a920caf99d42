"""The judge of the auto-shard table: how many images each worker gets of sharded files."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from distlab.labs.by_programs import ByPrograms, Hint, formulas
from distlab.labs.number_judge import numbers_of

OFF, DATA, FILE, AUTO = POLICIES = ("OFF", "DATA", "FILE", "AUTO")
FEW = "few files or images"


class Shards(NamedTuple):
    """One call."""

    policy: str
    files: list[int]
    workers: int
    batch: int


FEW_CASES = [
    Shards(FILE, [40, 20], 3, 4),
    Shards(AUTO, [64], 2, 4),
    Shards(OFF, [5], 3, 2),
    Shards(DATA, [5], 3, 2),
    Shards(DATA, [5], 3, 8),
    Shards(FILE, [3, 4, 5], 3, 20),
    Shards(DATA, [2, 2], 4, 1),
    Shards(DATA, [1, 1], 3, 4),
    Shards(OFF, [3], 2, 4),
]


def samples_seen(policy: str, files: Sequence[int], workers: int, batch: int) -> list[int] | None:
    """How many images each worker is given in one epoch; None where there are fewer files than workers."""
    if policy == OFF:
        return [sum(files)] * workers
    if policy == DATA:
        return of_all(divided, sizes(files, batch), workers)
    return dealt(files, workers) if len(files) >= workers else None


def sizes(files: Sequence[int], batch: int) -> list[int]:
    """Of the batches that a pipeline makes of the files."""
    return [min(batch, sum(files) - start) for start in range(0, sum(files), batch)]


def divided(size: int, workers: int) -> list[int]:
    """The parts of a batch: each as large as the first one, as far as there are images."""
    return in_parts_of(-(-size // workers), size, workers)


def in_parts_of(part: int, size: int, workers: int) -> list[int]:
    """A batch that is cut into parts of so many images."""
    return [min(part, max(0, size - worker * part)) for worker in range(workers)]


def balanced(size: int, workers: int) -> list[int]:
    """Parts that are as equal as possible."""
    return [len(range(worker, size, workers)) for worker in range(workers)]


def of_all(parts: Callable[[int, int], Sequence[int]], batches: Sequence[int], workers: int) -> list[int]:
    """What the workers get of all batches together."""
    return np.sum([parts(size, workers) for size in batches], axis=0).tolist()


def dealt(parts: Sequence[int], workers: int) -> list[int]:
    """One by one, like cards."""
    return [sum(parts[worker::workers]) for worker in range(workers)]


def in_blocks(parts: Sequence[int], workers: int) -> list[int]:
    """In connected blocks that are as equal as possible."""
    bounds = np.cumsum([0] + [len(part) for part in np.array_split(np.arange(len(parts)), workers)]).tolist()
    return [sum(parts[start:stop]) for start, stop in pairwise(bounds)]


def shards(generator: np.random.Generator) -> list[Shards]:
    """Each policy with drawn files, that no two policies deal out alike, and with two others; then few files."""
    workers = int(generator.integers(3, 5))
    batch = int(generator.integers(3, 5)) * workers + 1  # the parts of a batch differ, and by more than one image
    files: list[int] = []
    while not files or samples_seen(DATA, files, workers, batch) == dealt(files, workers):
        files = generator.integers(9, 30, int(generator.integers(2, 4)) * workers + 1).tolist()
        files[0] += batch - sum(files) % batch + workers + 1  # so many are left for the last batch
    runs = [(files, workers, batch), ([7, 12, 9, 4, 34], 2, 4), ([5, 3], 2, 3)]
    return [*(Shards(policy, *run) for policy in POLICIES for run in runs), *FEW_CASES]


def known_of_shards(policy: str, files: Sequence[int], workers: int, batch: int) -> dict[str, Any]:
    """What formulas may use, besides the functions above; `own` cuts a batch as a full one is cut."""
    total, batches, enough = sum(files), sizes(files, batch), len(files) >= workers
    as_data, as_file = (samples_seen(other, files, workers, batch) for other in (DATA, FILE))
    by_batches = dealt(batches, workers)

    def own(size: int, workers: int) -> list[int]:
        return in_parts_of(-(-batch // workers), size, workers)

    functions = {each.__name__: each for each in (divided, balanced, of_all, dealt, in_blocks)}
    return functions | locals()


def otherwise(case: Shards, counts: Any) -> str:
    """For all other answers."""
    policy, files, workers, _ = case
    expected = samples_seen(*case)
    if counts is None:
        return NO_FILES if policy in (OFF, DATA) else ENOUGH
    known = numbers_of(counts)
    if known is None or len(known) != workers:
        return f"it must be a list with one number for each of {workers} workers."
    if expected is None:
        return "some worker would have no file at all. What does TensorFlow do then?"
    if min(known) < 0:
        return f"a worker gets {min(known):g} images. How many are left for the last workers of a small batch?"
    if any(count % 1 for count in known):
        return "a worker gets a whole number of images. What becomes of the rest of a batch?"
    if policy == OFF:
        return (
            f"they add up to {sum(known):g}. Nobody removes anything under OFF: how many images do {workers} workers "
            "read together?"
        )
    if sorted(known) == sorted(expected):
        return "the numbers are right, but for other workers. Which part or file is that of worker 0?"
    if sum(known) == sum(files):
        return "they add up to all images, but other workers get them. Draw the parts of two batches, or four files."
    return f"they add up to {sum(known):g} of {sum(files)} images."


WHOLE_BATCHES = (
    "here a whole batch goes to one worker. `batch` is the global batch: for how many workers is each of them?"
)
BALANCED = (
    "the parts are as equal as possible here. Each part is as large as the first one, as far as there are images: how "
    "many are left for the last worker?"
)
REST_LOST = "a batch that the workers do not divide has a rest, which is trained on too. Is a part rounded down or up?"
AS_A_WHOLE = "TensorFlow refuses as a whole: what stands for that is one None, not one per worker."
NO_FILES = (
    "this policy deals out no files, so TensorFlow does not refuse. What does a worker get for whom nothing is left?"
)
ENOUGH = "there are enough files, so TensorFlow does not refuse."
AT_ONCE = "all images are divided at once here. What is divided, and how often?"
OF_FILES = "these are numbers of files. How many images are in them?"
IN_BLOCKS = "files are dealt out one by one like cards, not cut into connected blocks."
BY_FILES = (FILE, AUTO)


# The policies under which a formula is wrong, the formula, and its hint.
SHARD_FORMULAS: list[tuple[Sequence[str], str, Hint]] = [
    (
        [OFF],
        "[len(part) for part in np.array_split(np.arange(total), workers)]",
        "with OFF nothing is rewritten. What does a pipeline read that nobody has divided?",
    ),
    ([OFF], "right if enough else None", {FEW: NO_FILES}),
    ([DATA], "right if enough else None", {FEW: NO_FILES}),
    ([DATA], "right if all(right) else None", {FEW: NO_FILES}),
    ([DATA], "by_batches", WHOLE_BATCHES),
    ([DATA], "by_batches if all(by_batches) else None", WHOLE_BATCHES),
    ([DATA], "in_blocks(batches, workers)", WHOLE_BATCHES),
    ([DATA], "of_all(balanced, batches, workers)", BALANCED),
    ([DATA], "[sum(size // workers for size in batches)] * workers", REST_LOST),
    (
        [DATA],
        "of_all(divided, [batch] * (total // batch), workers)",
        "the last batch is smaller, and it is trained on too.",
    ),
    (
        [DATA],
        "of_all(divided, [batch] * len(batches), workers)",
        "the last batch is smaller than `batch`: how many images are left for it?",
    ),
    (
        [DATA],
        "of_all(own, batches, workers)",
        "the last batch is smaller, and so are its parts. Of how many images is each of them?",
    ),
    ([DATA], "balanced(total, workers)", AT_ONCE),
    ([DATA], "divided(total, workers)", AT_ONCE),
    *(([policy], "in_blocks(files, workers)", IN_BLOCKS) for policy in BY_FILES),
    *(([policy], "dealt([1] * len(files), workers) if enough else None", OF_FILES) for policy in BY_FILES),
    (BY_FILES, "right if len(files) > workers else None", dict.fromkeys(BY_FILES, ENOUGH)),
    (BY_FILES, "right if enough else [None] * workers", {FEW: AS_A_WHOLE}),
    (
        BY_FILES,
        "dealt(files, workers)",
        {FEW: "some worker would have no file at all. What does TensorFlow do then?"},
    ),
    *(([policy], "[total] * workers", "this would be OFF.") for policy in (DATA, FILE, AUTO)),
    ([AUTO], "as_data", "this would be DATA. The pipeline reads files: what does AUTO try first?"),
    *(([policy], "as_data", "this would be DATA.") for policy in (OFF, FILE)),
    *(([policy], "as_file", "this would be FILE.") for policy in (OFF, DATA)),
]
SAMPLES_SEEN = ByPrograms(
    samples_seen,
    shards,
    said=lambda case: (
        f"for {case.policy}, files of {case.files} images, {case.workers} workers, batches of {case.batch}"
    ),
    parts=(*POLICIES, FEW),
    split=lambda case, counts: {FEW if case in FEW_CASES else case.policy: counts},
    after={FEW: lambda case: case.policy},
    otherwise=otherwise,
    mistakes=[
        mistake
        for policies, formula, hint in SHARD_FORMULAS
        for mistake in formulas(
            samples_seen, {"": {f"({formula}) if policy in {policies} else right": hint}}, known_of_shards
        )
    ],
)
