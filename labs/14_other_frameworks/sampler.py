"""The sampler of lab 14: which images a rank sees, and what is wrong with a program's sampler."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from lab_14.given import FAULTS, IMAGES, LOGS

from distlab.labs import Answer
from distlab.labs.by_programs import ByPrograms, Mistake, by_changes, changed
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


SAMPLES_TEXT = """\
def samples(images, ranks, rank, epoch, seed, drop_last):
    order = np.random.default_rng(seed + epoch).permutation(images).tolist()
    count = images // ranks if drop_last else -(-images // ranks)
    divided = np.resize(order, count * ranks).tolist()
    return divided[rank::ranks]
"""
"""The numbers of the images that a rank sees, in order; as DistributedSampler, with NumPy's permutation."""
ORDER, COUNT = "np.random.default_rng(seed + epoch).permutation(images).tolist()", "images // ranks if drop_last"
DIVIDED, TAKEN, ALL = "np.resize(order, count * ranks).tolist()", "divided[rank::ranks]", "list(range(images))"
samples, not_shuffled = changed(SAMPLES_TEXT), changed(SAMPLES_TEXT, (ORDER, ALL))


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
    order = samples(job.images, 1, 0, job.epoch, job.seed, False)
    expected = [samples(*job[:2], rank, *job[2:]) for rank in range(job.ranks)]
    rank = next(rank for rank in range(job.ranks) if list(received[rank]) != expected[rank])
    lengths, count = [len(own) for own in received], len(expected[0])
    together = [image for own in zip(*received, strict=False) for image in own][: job.images]
    said = first(
        (
            set(lengths) not in ({count}, {0}),
            f"the ranks get {lengths} images, and each should get {count}. How is that number rounded?",
        ),
        (
            together == order,
            f"the order is {order}, and the images after its end differ. Where does the sampler begin again?",
        ),
        (
            sorted(together) == list(range(job.images)),
            f"the shares are those of the order {together}, and the order is {order}. Which generator makes it, "
            "from which number, and is it the first that this generator makes?",
        ),
        (
            True,
            f"rank {rank} gets {list(received[rank])}. The order is {order}: which of its positions are those of "
            "this rank, and which comes first?",
        ),
    )
    return f"{job}: {said}"


DROPPED = f"{DIVIDED} if drop_last else order"
ONE_MORE = "where nothing is left over, images are repeated all the same. What is 12 divided by 4, rounded up?"
ONCE = "the ranks are more than twice the images, and some get none. What if one repetition is not enough?"
ONE_ROUND_MORE = Mistake(
    {EVEN: ONE_MORE, NEXT_EPOCH: ONE_MORE, REPEAT: ONCE},
    changed(SAMPLES_TEXT, (f"{COUNT} else -(-images // ranks)", "images // ranks + (not drop_last)")),
)
OTHER_ORDERS_AND_SHARES = {
    "the images come in their own order. What does the permutation do to them?": [[(ORDER, ALL)]],
    "every epoch has the same order. Which of the two numbers that make the seed is missing?": [
        [("seed + epoch", "seed")]
    ],
    "the sampler's own seed makes no difference. Which of the two numbers is missing?": [[("seed + epoch", "epoch")]],
    "the generator is made from another seed. How do seed and epoch become one number?": [
        [("seed + epoch", "[seed, epoch]")],
        [("seed + epoch", "seed * epoch")],
    ],
    "each rank has its own permutation, so that shares overlap. What must be the same on all ranks?": [
        [("seed + epoch", "seed + epoch + rank")]
    ],
    "every rank gets every image. Which of them are those of one rank?": [[(TAKEN, "order")]],
    "each rank gets a block of neighbours in the order. Which positions does rank 1 of 3 get?": [
        [(TAKEN, "divided[rank * count : (rank + 1) * count]")]
    ],
    "the rank picks images by their numbers. Are the positions in the order those numbers?": [
        [(TAKEN, "[image for image in divided if image % ranks == rank]")]
    ],
    "start and step of the slice are swapped. From which position on does rank 2 of 3 count, and by how many?": [
        [(TAKEN, "divided[ranks :: max(rank, 1)]")]
    ],
    "each number is one too large. Which number does the first image have?": [
        [(TAKEN, f"[image + 1 for image in {TAKEN}]")]
    ],
    "each rank always has the same images, in changing order. What is permuted first, and what is shared?": [
        [(ORDER, ALL), (TAKEN, f"np.random.default_rng(seed + epoch).permutation({TAKEN}).tolist()")]
    ],
    "some ranks get one image more than others. Who would wait for whom in the last step?": [[(DIVIDED, "order")]],
    "the images that are left over are repeated where they should be dropped, or the reverse. Who says which?": [
        [("if drop_last", "if False")],
        [("if drop_last", "if True")],
        [("if drop_last", "if not drop_last")],
    ],
}
REST_TREATED_OTHERWISE = {
    "where nothing is left over, the ranks get no images at all. What is order[:-0]?": [
        [(DIVIDED, f"order[: -(images % ranks)] if drop_last else {DIVIDED}")]
    ],
    "the first images of the order are dropped. At which end are those that are left over?": [
        [(DIVIDED, f"order[images % ranks :] if drop_last else {DIVIDED}")]
    ],
    ONCE: [[(DIVIDED, f"{DROPPED} + order[: -images % ranks]")]],
    "the order is filled up with its last images. Where does the sampler begin again?": [
        [(DIVIDED, f"{DROPPED} + order[images - -images % ranks :]")],
        [(DIVIDED, f"{DROPPED} + order[-1:] * (-images % ranks)")],
    ],
    "the order is filled up with images 0, 1 and so on. Which images are the first in the permuted order?": [
        [(DIVIDED, f"{DROPPED} + list(range(-images % ranks))")]
    ],
    of_shares: [
        [("default_rng", "RandomState")],
        [(TAKEN, f"{TAKEN}[::-1]")],
        [(TAKEN, "divided[rank : len(divided) - 1 : ranks]")],
    ],
}
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
        *by_changes(SAMPLES_TEXT, OTHER_ORDERS_AND_SHARES),
        ONE_ROUND_MORE,
        *by_changes(SAMPLES_TEXT, REST_TREATED_OTHERWISE),
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
            return np.random.default_rng([seed, rank, epoch]).permutation(images).tolist()
        if fault == NO_SHUFFLING:
            return not_shuffled(images, ranks, rank, epoch, seed, drop_last)
        epoch = {NO_SET_EPOCH: 0, TOO_LATE: max(0, epoch - 1)}.get(fault, epoch)
        return samples(images, ranks, rank, epoch, seed + 1000 * rank * (fault == SEED_PER_RANK), drop_last)

    return [[seen(rank, epoch) for epoch in range(epochs)] for rank in range(ranks)]


HARD_JOBS = [
    # Each rank has a seed of its own, and ranks 0 and 1 see no image both; others do.
    LoggedJob(logged(SEED_PER_RANK, 36, 6, False, seed=37), 36),
    # So have these two, which by chance see in each epoch one image less than with the same seed.
    LoggedJob(logged(SEED_PER_RANK, IMAGES, 2, False, seed=5542), IMAGES),
    LoggedJob(logged(SEED_PER_RANK, IMAGES, 2, True, seed=688), IMAGES),
    # `set_epoch` is missing, but two images of rank 0 and one of rank 1 are by chance in order.
    LoggedJob(logged(NO_SET_EPOCH, IMAGES, 2, False, seed=6526), IMAGES),
]
"""In these a fault shows by little."""


def logs(generator: np.random.Generator) -> list[LoggedJob]:
    """Those that are shown, three with each fault, and the hard ones.

    The images divide evenly, or one rank's image is repeated, or all but one are dropped.
    """
    jobs = [LoggedJob(log, IMAGES) for log in LOGS.values()]
    for fault in FAULTS:
        ranks_of = generator.permutation([2, 3, 4]).tolist()  # else a rule for two ranks might do for a fault
        for kind, ranks in enumerate(ranks_of):
            per_rank, epochs = int(generator.integers(6, 9)), int(generator.integers(3, 5))
            images = ranks * per_rank + (0, 1, ranks - 1)[kind]
            log: Log = []
            while not log or diagnose(log, images) != fault:
                log = logged(fault, images, ranks, kind == 2, int(generator.integers(10_000)), epochs)
            jobs.append(LoggedJob(log, images))
    return [*jobs, *HARD_JOBS]


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
                lambda log, images, said=said: diagnose(log, images) if log in LOGS.values() else said,
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
