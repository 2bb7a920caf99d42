"""The sampler of lab 14: which images a rank sees, and what is wrong with a program's sampler."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from lab_14.given import FAULTS, IMAGES, LOGS

from distlab.labs import Answer
from distlab.labs.by_programs import ByPrograms, Mistake
from distlab.labs.verdict import first

# Which images a rank sees --------------------------------------------------------------------------------------------

EVEN, NEXT_EPOCH, REPEAT, DROP = "as many images for each rank", "epochs and seeds", "repeat", "drop_last"


class Epoch(NamedTuple):
    """Images in the data set, ranks, number of the epoch, the sampler's seed, whether left-over images are dropped."""

    images: int
    ranks: int
    epoch: int
    seed: int
    drop_last: bool

    def __str__(self) -> str:
        numbers = f"{self.images} images, {self.ranks} ranks, epoch {self.epoch}, seed {self.seed}"
        return f"{numbers}, drop_last={self.drop_last}"


EXAMPLE = Epoch(7, 3, 0, 8, False)
"""Its order neither begins nor ends with small numbers, so that few mistakes give what another one would give."""


def order_of(images: int, key: Any) -> list[int]:
    """The order of all images from a number."""
    return np.random.default_rng(key).permutation(images).tolist()


def divided(order: list[int], ranks: int, drop_last: bool) -> list[int]:
    """Cut or repeated, so that all ranks get as many."""
    count = len(order) // ranks if drop_last else -(-len(order) // ranks)
    return np.resize(order, count * ranks).tolist()


def samples(images: int, ranks: int, rank: int, epoch: int, seed: int, drop_last: bool) -> list[int]:
    """The numbers of the images that a rank sees, in order; as DistributedSampler, with NumPy's permutation."""
    return divided(order_of(images, seed + epoch), ranks, drop_last)[rank::ranks]


def epochs(generator: np.random.Generator) -> list[Epoch]:
    """Each number differs from the others, so that none can take another's place.

    Images are repeated and dropped in epoch 0, so that a forgotten epoch costs one part only.
    """
    ranks, per_rank = int(generator.integers(3, 6)), int(generator.integers(4, 8))
    left_over, seed, epoch = (int(generator.integers(*bounds)) for bounds in ((1, ranks), (20, 90), (2, 9)))
    even = ranks * per_rank
    few = Epoch(int(generator.integers(2, 4)), int(generator.integers(8, 12)), 0, seed, False)
    repeated = [Epoch(even + more, ranks, 0, seed, False) for more in (left_over, ranks - 1)]
    return [
        *(Epoch(even, ranks, 0, 0, drop_last) for drop_last in (False, True)),
        Epoch(even, ranks, 0, seed, False),
        Epoch(even, ranks, epoch, 0, True),
        Epoch(even, ranks, epoch, seed, False),
        EXAMPLE,
        *repeated,
        few,
        *(job._replace(drop_last=True) for job in (*repeated, few)),
    ]


def part_of(job: Epoch) -> str:
    """Of the exercise."""
    if job.images % job.ranks:
        return DROP if job.drop_last else REPEAT
    return NEXT_EPOCH if job.seed or job.epoch else EVEN


def shares(answer: Answer, job: Epoch) -> list[Any]:
    """What the function gives to each rank."""
    given_to = [answer.call("samples", *job[:2], rank, *job[2:]) for rank in range(job.ranks)]
    return [own.tolist() if isinstance(own, np.ndarray) else own for own in given_to]


def form_of_shares(job: Epoch, received: list[Any]) -> str | None:
    """Whether each is a list of whole numbers."""
    numbers = [number for own in received if isinstance(own, (list, tuple)) for number in own]
    if all(isinstance(own, (list, tuple)) for own in received) and all(type(number) is int for number in numbers):
        return None
    return "`samples` gives a list of whole numbers, those of the images."


def of_shares(job: Epoch, received: list[Any]) -> str:
    """What can be said of any other answer."""
    order = order_of(job.images, job.seed + job.epoch)
    expected = [divided(order, job.ranks, job.drop_last)[rank :: job.ranks] for rank in range(job.ranks)]
    rank = next(rank for rank in range(job.ranks) if list(received[rank]) != expected[rank])
    lengths, count = [len(own) for own in received], len(expected[0])
    together = [image for own in zip(*received, strict=False) for image in own][: job.images]
    is_permuted = sorted(together) == list(range(job.images))
    return f"{job}: " + str(
        first(
            (
                set(lengths) not in ({count}, {0}),
                f"the ranks get {lengths} images, and each should get {count}. How is that number rounded?",
            ),
            (
                together == order,
                f"the order is {order}, and the images after its end differ. Where does the sampler begin again?",
            ),
            (
                is_permuted,
                f"the shares are those of the order {together}, and the order is {order}. Which generator makes it, "
                "from which number, and is it the first that this generator makes?",
            ),
            (
                True,
                f"rank {rank} gets {list(received[rank])}. The order is {order}: which of its positions are those of "
                "this rank, and which comes first?",
            ),
        )
    )


def by_rule(
    key: Callable[[int, int, int], Any] = lambda seed, epoch, rank: seed + epoch,
    division: Callable[[list[int], int, bool], list[int]] = divided,
    taken: Callable[[list[int], int, int], Any] = lambda order, ranks, rank: order[rank::ranks],
    order: Callable[[int, Any], list[int]] = order_of,
) -> Callable[..., Any]:
    """The rule with one part of it replaced."""

    def program(images: int, ranks: int, rank: int, epoch: int, seed: int, drop_last: bool) -> Any:
        return taken(division(order(images, key(seed, epoch, rank)), ranks, drop_last), ranks, rank)

    return program


def padded(padding: Callable[[list[int], int], list[int]]) -> Callable[..., Any]:
    """The rule with other images after the end of the order: `padding(order, how many are missing)`."""

    def division(order: list[int], ranks: int, drop_last: bool) -> list[int]:
        missing = -len(order) % ranks
        return divided(order, ranks, True) if drop_last else order + padding(order, missing)[:missing]

    return by_rule(division=division)


def if_dropped(cut: Callable[[list[int], int], list[int]]) -> Callable[..., Any]:
    """The rule with another way to drop: `cut(order, how many are left over)`."""
    return by_rule(
        division=lambda order, ranks, drop: cut(order, len(order) % ranks) if drop else divided(order, ranks, False)
    )


def in_blocks(order: list[int], ranks: int, rank: int) -> list[int]:
    """Neighbours."""
    size = len(order) // ranks
    return order[rank * size : (rank + 1) * size]


def one_more(order: list[int], ranks: int, drop_last: bool) -> list[int]:
    """The number of rounds is never rounded, but one is added."""
    return np.resize(order, (len(order) // ranks + (not drop_last)) * ranks).tolist()


SEED_AND_EPOCH = "the generator is made from another seed. How do seed and epoch become one number?"
EPOCH_FIRST = "every epoch has the same order. Which of the two numbers that make the seed is missing?"
ONE_MORE = "where nothing is left over, images are repeated all the same. What is 12 divided by 4, rounded up?"
ONCE = "the ranks are more than twice the images, and some get none. What if one repetition is not enough?"
FROM_END = "the order is filled up with its last images. Where does the sampler begin again?"
DROP_IGNORED = (
    "the images that are left over are repeated where they should be dropped, or the reverse. Who says which?"
)
SAMPLES = ByPrograms(
    samples,
    epochs,
    observe=shares,
    said=lambda job: "",
    parts=(EVEN, NEXT_EPOCH, REPEAT, DROP),
    split=lambda job, received: {part_of(job): received},
    form=form_of_shares,
    otherwise=of_shares,
    mistakes=[
        Mistake(
            "the images come in their own order. What does the permutation do to them?",
            by_rule(order=lambda images, key: list(range(images))),
        ),
        Mistake(EPOCH_FIRST, by_rule(lambda seed, epoch, rank: seed)),
        Mistake(
            "the sampler's own seed makes no difference. Which of the two numbers is missing?",
            by_rule(lambda seed, epoch, rank: epoch),
        ),
        Mistake(SEED_AND_EPOCH, by_rule(lambda seed, epoch, rank: [seed, epoch])),
        Mistake(SEED_AND_EPOCH, by_rule(lambda seed, epoch, rank: seed * epoch)),
        Mistake(
            "each rank has its own permutation, so that shares overlap. What must be the same on all ranks?",
            by_rule(lambda seed, epoch, rank: seed + epoch + rank),
        ),
        Mistake(
            "every rank gets every image. Which of them are those of one rank?",
            by_rule(division=lambda order, *_: order, taken=lambda order, *_: order),
        ),
        Mistake(
            "each rank gets a block of neighbours in the order. Which positions does rank 1 of 3 get?",
            by_rule(taken=in_blocks),
        ),
        Mistake(
            "the rank picks images by their numbers. Are the positions in the order those numbers?",
            by_rule(taken=lambda order, ranks, rank: [image for image in order if image % ranks == rank]),
        ),
        Mistake(
            "start and step of the slice are swapped. From which position on does rank 2 of 3 count, and by how many?",
            by_rule(taken=lambda order, ranks, rank: order[ranks :: max(rank, 1)]),
        ),
        Mistake(
            "each number is one too large. Which number does the first image have?",
            by_rule(taken=lambda order, ranks, rank: [image + 1 for image in order[rank::ranks]]),
        ),
        Mistake(
            "each rank always has the same images, in changing order. What is permuted first, and what is shared?",
            lambda images, ranks, rank, epoch, seed, drop_last: (
                np.random.default_rng(seed + epoch)
                .permutation(divided(list(range(images)), ranks, drop_last)[rank::ranks])
                .tolist()
            ),
        ),
        Mistake(
            "some ranks get one image more than others. Who would wait for whom in the last step?",
            by_rule(division=lambda order, *_: order),
        ),
        Mistake(DROP_IGNORED, by_rule(division=lambda order, ranks, drop: divided(order, ranks, False))),
        Mistake(DROP_IGNORED, by_rule(division=lambda order, ranks, drop: divided(order, ranks, True))),
        Mistake(DROP_IGNORED, by_rule(division=lambda order, ranks, drop: divided(order, ranks, not drop))),
        Mistake({EVEN: ONE_MORE, NEXT_EPOCH: ONE_MORE, REPEAT: ONCE}, by_rule(division=one_more)),
        Mistake(
            "where nothing is left over, the ranks get no images at all. What is order[:-0]?",
            if_dropped(lambda order, rest: order[:-rest]),
        ),
        Mistake(
            "the first images of the order are dropped. At which end are those that are left over?",
            if_dropped(lambda order, rest: order[rest:]),
        ),
        Mistake(ONCE, padded(lambda order, missing: order)),
        Mistake(FROM_END, padded(lambda order, missing: order[len(order) - missing :])),
        Mistake(FROM_END, padded(lambda order, missing: order[-1:] * missing)),
        Mistake(
            "the order is filled up with images 0, 1 and so on. Which images are the first in the permuted order?",
            padded(lambda order, missing: list(range(missing))),
        ),
        Mistake(of_shares, by_rule(order=lambda images, key: np.random.RandomState(key).permutation(images).tolist())),
        Mistake(of_shares, by_rule(taken=lambda order, ranks, rank: order[rank::ranks][::-1])),
        Mistake(of_shares, by_rule(taken=lambda order, ranks, rank: order[rank : len(order) - 1 : ranks])),
    ],
)

# What is wrong with a sampler ----------------------------------------------------------------------------------------

NOTHING, NO_SAMPLER, SEED_PER_RANK, NO_SHUFFLING, NO_SET_EPOCH, TOO_LATE = FAULTS
Log = list[list[list[int]]]
ANOTHER = "another fault"


class LoggedJob(NamedTuple):
    """What its ranks have seen, log[rank][epoch], and how many images there are."""

    log: Log
    images: int


def diagnose(log: Log, images: int) -> str:
    """The fault by its signs in every epoch and on every rank."""
    if all(sorted(epoch) == list(range(images)) for epochs in log for epoch in epochs):
        return NO_SAMPLER
    together = [[image for epochs in log for image in epochs[epoch]] for epoch in range(len(log[0]))]
    if all(len(set(seen)) < min(images, len(seen)) for seen in together):
        return SEED_PER_RANK
    orders = log[0]
    is_new = [later != earlier for earlier, later in pairwise(orders)]
    if not any(is_new):
        return NO_SHUFFLING if orders[0] == sorted(orders[0]) else NO_SET_EPOCH
    return NOTHING if all(is_new) else TOO_LATE


def logged(fault: str, images: int, ranks: int, drop_last: bool, seed: int, epochs: int = 3) -> Log:
    """What the ranks of a job with this fault see."""

    def seen(rank: int, epoch: int) -> list[int]:
        if fault == NO_SAMPLER:
            return order_of(images, [seed, rank, epoch])
        if fault == NO_SHUFFLING:
            return divided(list(range(images)), ranks, drop_last)[rank::ranks]
        epoch = {NO_SET_EPOCH: 0, TOO_LATE: max(0, epoch - 1)}.get(fault, epoch)
        return samples(images, ranks, rank, epoch, seed + 1000 * rank * (fault == SEED_PER_RANK), drop_last)

    return [[seen(rank, epoch) for epoch in range(epochs)] for rank in range(ranks)]


def logs(generator: np.random.Generator) -> list[LoggedJob]:
    """Those that are shown, three with each fault, and four in which a fault shows by little.

    The images divide evenly, or one rank's image is repeated, or all but one are dropped.
    """
    jobs = [LoggedJob([[list(epoch) for epoch in epochs] for epochs in log], IMAGES) for log in LOGS.values()]
    for fault in FAULTS:
        ranks_of = generator.permutation([2, 3, 4]).tolist()  # else a rule for two ranks might do for a fault
        for kind, ranks in enumerate(ranks_of):
            per_rank, epochs = int(generator.integers(6, 9)), int(generator.integers(3, 5))
            images = ranks * per_rank + (0, 1, ranks - 1)[kind]
            log: Log = []
            while not log or diagnose(log, images) != fault:
                log = logged(fault, images, ranks, kind == 2, int(generator.integers(10_000)), epochs)
            jobs.append(LoggedJob(log, images))
    return [*jobs, two_disjoint_ranks(generator), *one_image_too_few(generator), beginning_in_order(generator)]


def two_disjoint_ranks(generator: np.random.Generator) -> LoggedJob:
    """Each rank has another seed, and still ranks 0 and 1 see no image both: others do."""
    while True:
        log = logged(SEED_PER_RANK, 36, 6, False, int(generator.integers(10_000)))
        is_disjoint = not any(set(first) & set(second) for first, second in zip(log[0], log[1], strict=True))
        if is_disjoint and diagnose(log, 36) == SEED_PER_RANK:
            return LoggedJob(log, 36)


def one_image_too_few(generator: np.random.Generator) -> list[LoggedJob]:
    """Two ranks have seeds of their own, and by chance see in each epoch one image less than with the same seed."""
    jobs = []
    for drop_last in (False, True):
        seen = 2 * (IMAGES // 2) if drop_last else IMAGES
        pairs: list[list[int]] = []
        while not pairs:
            seeds = generator.choice(10_000, 200, replace=False).tolist()
            of_ranks = [
                [[samples(IMAGES, 2, rank, epoch, seed, drop_last) for epoch in range(3)] for seed in seeds]
                for rank in range(2)
            ]
            has_seen = [np.eye(IMAGES, dtype=bool)[np.array(log)].any(axis=2) for log in of_ranks]
            together = (has_seen[0][:, None] | has_seen[1][None]).sum(axis=-1)
            pairs = np.argwhere((together == seen - 1).all(axis=-1)).tolist()
        first, second = pairs[int(generator.integers(len(pairs)))]
        jobs.append(LoggedJob([of_ranks[0][first], of_ranks[1][second]], IMAGES))
    return jobs


def beginning_in_order(generator: np.random.Generator) -> LoggedJob:
    """`set_epoch` is missing, but two images of rank 0 and one of rank 1 are by chance in order."""
    order: list[int] = []
    while order[:3] != [0, 1, 2] or order[4] == 4:
        seed = int(generator.integers(1_000_000))
        order = order_of(IMAGES, seed)
    return LoggedJob(logged(NO_SET_EPOCH, IMAGES, 2, False, seed), IMAGES)


def by_fault(job: LoggedJob, said: Any) -> dict[str, Any]:
    """What counts for each fault: what is said of a job that has it, and that it is said of no other."""
    true = diagnose(*job)
    counts = [true, said] if isinstance(said, str) else [true]
    return {fault: said if fault in counts else ANOTHER for fault in FAULTS}


def of_fault(part: str, job: LoggedJob, said: Any) -> str:
    """Why a fault is missed, or said of a job that has another one."""
    true = diagnose(*job)
    if not isinstance(said, str) or said not in FAULTS:
        return f"{said!r} is not in lab.given.FAULTS."
    if part != true:
        return f"it is also said of jobs with {'no fault' if true == NOTHING else repr(true)}. What distinguishes them?"
    if true == NOTHING:
        return f"{said!r} is said of a job in which nothing is wrong. May an image be seen twice, or be left out?"
    return f"{said!r} is said of such a job. {QUESTIONS[true]}"


QUESTIONS = {
    NO_SAMPLER: "How many of the images does one rank see in an epoch?",
    SEED_PER_RANK: "How many different images would its ranks see in an epoch if all had the same seed?",
    NO_SHUFFLING: "In which order does rank 0 see its images?",
    NO_SET_EPOCH: "Which of its epochs have the same order, and how does this order go on after its first images?",
    TOO_LATE: "Which epochs have the same order, and which do not?",
}
OF_FAULTS = {fault: partial(of_fault, fault) for fault in FAULTS}


def instead_of(fault: str, said: str, where: Callable[[Log, int], bool] = lambda log, images: True) -> Mistake:
    """One fault is taken for another, in jobs with that sign."""
    return Mistake(
        {name: OF_FAULTS[name] for name in (fault, said)},
        lambda log, images: said if diagnose(log, images) == fault and where(log, images) else diagnose(log, images),
    )


def seen_in(log: Log, epoch: int = 0) -> list[int]:
    """All images that the ranks see in an epoch."""
    return [image for epochs in log for image in epochs[epoch]]


def is_shown(log: Log) -> bool:
    """Whether it is one of the logs in the notebook."""
    return any(log == [list(map(list, epochs)) for epochs in shown] for shown in LOGS.values())


LOOSE_BOUNDS: list[Callable[[list[int], int, int], bool]] = [
    lambda seen, images, ranks: len(seen) - len(set(seen)) <= -images % ranks,
    lambda seen, images, ranks: len(set(seen)) >= images - ranks + 1,
    lambda seen, images, ranks: len(set(seen)) >= 0.9 * min(images, len(seen)),
]
DIAGNOSE = ByPrograms(
    diagnose,
    logs,
    said=lambda job: f"for a job of {len(job.log)} ranks and {len(job.log[0])} epochs",
    parts=FAULTS,
    split=by_fault,
    otherwise=OF_FAULTS,
    mistakes=[
        *(
            Mistake(
                f"it works only for the logs that are shown: of all other jobs it says {said!r}. By which signs would "
                "you recognise a fault in a job that you have not seen?",
                lambda log, images, said=said: diagnose(log, images) if is_shown(log) else said,
            )
            for said in FAULTS
        ),
        Mistake(
            {
                **OF_FAULTS,
                NOTHING: (
                    "it is also said of jobs with 'no sampler', 'a seed per rank', 'no shuffling', 'no set_epoch', "
                    "'set_epoch too late'. What distinguishes them?"
                ),
            },
            lambda log, images: NOTHING,
        ),
        Mistake(
            "'a seed per rank' is also said of jobs with no fault, 'no shuffling', 'no set_epoch', 'set_epoch too "
            "late'. Which of its signs do these have too?",
            lambda log, images: (
                SEED_PER_RANK
                if len(set(seen_in(log))) < len(seen_in(log)) and len(log[0][0]) < images
                else diagnose(log, images)
            ),
        ),
        Mistake(
            "'no shuffling' is also said of jobs with no fault, 'no set_epoch', 'set_epoch too late'. Which of its "
            "signs do these have too?",
            lambda log, images: (
                NO_SHUFFLING if diagnose(log, images) in (NOTHING, NO_SET_EPOCH, TOO_LATE) else diagnose(log, images)
            ),
        ),
        instead_of(NOTHING, SEED_PER_RANK),
        instead_of(NO_SAMPLER, SEED_PER_RANK),
        instead_of(SEED_PER_RANK, NOTHING),
        instead_of(NO_SHUFFLING, NO_SET_EPOCH),
        instead_of(NO_SET_EPOCH, NO_SHUFFLING),
        instead_of(TOO_LATE, NO_SET_EPOCH),
        instead_of(TOO_LATE, NOTHING),
        instead_of(NOTHING, SEED_PER_RANK, lambda log, images: len(set(seen_in(log))) < images),
        instead_of(NO_SHUFFLING, NO_SET_EPOCH, lambda log, images: any(own[0] != sorted(own[0]) for own in log)),
        instead_of(SEED_PER_RANK, NOTHING, lambda log, images: not set(seen_in(log[:1])) & set(seen_in(log[1:2]))),
        instead_of(NO_SET_EPOCH, NO_SHUFFLING, lambda log, images: [own[0][0] for own in log[:2]] == [0, 1]),
        instead_of(NO_SET_EPOCH, NO_SHUFFLING, lambda log, images: log[0][0][:2] == [0, len(log)]),
        *(
            instead_of(
                SEED_PER_RANK,
                NOTHING,
                lambda log, images, bound=bound, epochs=epochs: all(
                    bound(seen_in(log, epoch), images, len(log)) for epoch in range(len(log[0]))[:epochs]
                ),
            )
            for bound in LOOSE_BOUNDS
            for epochs in (1, None)
        ),
    ],
)
