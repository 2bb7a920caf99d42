"""The judge of the auto-shard table: how many images each worker gets of sharded files."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from distlab.labs.by_programs import ByPrograms, Mistake
from distlab.labs.number_judge import number

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


def samples_seen(policy: str, images_per_file: Sequence[int], workers: int, batch: int) -> list[int] | None:
    """How many images each worker is given in one epoch; None where there are fewer files than workers."""
    if policy == OFF:
        return [sum(images_per_file)] * workers
    if policy == DATA:
        return of_all(divided, sizes(images_per_file, batch), workers)
    return dealt(images_per_file, workers) if len(images_per_file) >= workers else None


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


def under(policies: Sequence[str], program: Callable[[list[int], int, int], Any]) -> Callable[..., Any]:
    """Wrong under these policies only."""
    return lambda policy, *run: program(*run) if policy in policies else samples_seen(policy, *run)


def otherwise(case: Shards, counts: Any) -> str:
    """For all other answers."""
    policy, files, workers, _ = case
    expected = samples_seen(*case)
    if counts is None:
        return NO_FILES if policy in (OFF, DATA) else ENOUGH
    listed = counts.tolist() if isinstance(counts, np.ndarray) else counts
    values = [number(count) for count in listed] if isinstance(listed, (list, tuple)) else []
    known = [count for count in values if count is not None]
    if not len(values) == len(known) == workers:
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
IN_BLOCKS = "files are dealt out one by one like cards, not cut into connected blocks."
BY_FILES = (FILE, AUTO)


def none_if_empty(counts: list[int]) -> list[int] | None:
    """None where some worker has nothing."""
    return counts if all(counts) else None


def enough(files: Sequence[int], workers: int) -> bool:
    """Whether each worker gets a file."""
    return len(files) >= workers


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
        Mistake(
            "with OFF nothing is rewritten. What does a pipeline read that nobody has divided?",
            under([OFF], lambda f, w, b: [len(part) for part in np.array_split(np.arange(sum(f)), w)]),
        ),
        Mistake({FEW: NO_FILES}, under([OFF], lambda f, w, b: [sum(f)] * w if enough(f, w) else None)),
        Mistake({FEW: NO_FILES}, under([DATA], lambda f, w, b: samples_seen(DATA, f, w, b) if enough(f, w) else None)),
        Mistake({FEW: NO_FILES}, under([DATA], lambda f, w, b: none_if_empty(samples_seen(DATA, f, w, b)))),
        Mistake(WHOLE_BATCHES, under([DATA], lambda f, w, b: dealt(sizes(f, b), w))),
        Mistake(WHOLE_BATCHES, under([DATA], lambda f, w, b: none_if_empty(dealt(sizes(f, b), w)))),
        Mistake(WHOLE_BATCHES, under([DATA], lambda f, w, b: in_blocks(sizes(f, b), w))),
        Mistake(BALANCED, under([DATA], lambda f, w, b: of_all(balanced, sizes(f, b), w))),
        Mistake(REST_LOST, under([DATA], lambda f, w, b: [sum(size // w for size in sizes(f, b))] * w)),
        Mistake(
            "the last batch is smaller, and it is trained on too.",
            under([DATA], lambda f, w, b: of_all(divided, [b] * (sum(f) // b), w)),
        ),
        Mistake(
            "the last batch is smaller than `batch`: how many images are left for it?",
            under([DATA], lambda f, w, b: of_all(divided, [b] * len(sizes(f, b)), w)),
        ),
        Mistake(
            "the last batch is smaller, and so are its parts. Of how many images is each of them?",
            under([DATA], lambda f, w, b: of_all(lambda size, w: in_parts_of(-(-b // w), size, w), sizes(f, b), w)),
        ),
        Mistake(
            "all images are divided at once here. What is divided, and how often?",
            under([DATA], lambda f, w, b: balanced(sum(f), w)),
        ),
        Mistake(
            "all images are divided at once here. What is divided, and how often?",
            under([DATA], lambda f, w, b: divided(sum(f), w)),
        ),
        *(Mistake(IN_BLOCKS, under([policy], lambda f, w, b: in_blocks(f, w))) for policy in BY_FILES),
        *(
            Mistake(
                "these are numbers of files. How many images are in them?",
                under([policy], lambda f, w, b: dealt([1] * len(f), w) if enough(f, w) else None),
            )
            for policy in BY_FILES
        ),
        Mistake(
            dict.fromkeys(BY_FILES, ENOUGH),
            under(BY_FILES, lambda f, w, b: dealt(f, w) if len(f) > w else None),
        ),
        Mistake({FEW: AS_A_WHOLE}, under(BY_FILES, lambda f, w, b: dealt(f, w) if enough(f, w) else [None] * w)),
        Mistake(
            {FEW: "some worker would have no file at all. What does TensorFlow do then?"},
            under(BY_FILES, lambda f, w, b: dealt(f, w)),
        ),
        *(
            Mistake("this would be OFF.", under([policy], lambda f, w, b: [sum(f)] * w))
            for policy in (DATA, FILE, AUTO)
        ),
        Mistake(
            "this would be DATA. The pipeline reads files: what does AUTO try first?",
            under([AUTO], lambda f, w, b: samples_seen(DATA, f, w, b)),
        ),
        *(
            Mistake("this would be DATA.", under([policy], lambda f, w, b: samples_seen(DATA, f, w, b)))
            for policy in (OFF, FILE)
        ),
        *(
            Mistake("this would be FILE.", under([policy], lambda f, w, b: samples_seen(FILE, f, w, b)))
            for policy in (OFF, DATA)
        ),
    ],
)
