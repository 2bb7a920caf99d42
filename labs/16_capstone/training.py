"""The judge of `train`: the program runs on two ranks, then on three; each step is compared with one process's.

From a rank's own weights before a step follows what its gradient was, and from its own learning rate how far it should
have gone; so one fault does not hide another.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from lab_16 import observe
from lab_16.observe import ObservedRanks, TrainedRank

from distlab.data import topics
from distlab.labs import Answer, Verdict, not_done, right, wrong
from distlab.labs.observed_ranks import GaveNothing
from distlab.labs.plain_data import Array, as_record
from distlab.labs.reference_mlp import softmax
from distlab.labs.verdict import hinted

Weights = Sequence[Array]


@dataclass(frozen=True)
class RankJob:
    """A training on `size` ranks, with one global batch in a step, from epoch `done` to `epochs`.

    weights, slots: those of the checkpoint from which it goes on, if it does.
    """

    size: int
    texts: int
    batch: int
    rate: float
    seed: int
    units: int
    done: int = 0
    epochs: int = 1
    weights: Weights = field(default_factory=list)
    slots: Weights = field(default_factory=list)

    @property
    def options(self) -> dict[str, object]:
        """As the program gets them."""
        names = ("texts", "batch", "rate", "seed", "units", "epochs")
        return {name: getattr(self, name) for name in names}

    @property
    def steps_per_epoch(self) -> int:
        """Of one process."""
        return -(-self.texts // self.batch)

    def batches(self) -> list[list[int]]:
        """The numbers of the texts in each step of one process."""
        orders = [
            np.random.default_rng([self.seed, epoch]).permutation(self.texts).tolist()
            for epoch in range(self.done, self.epochs)
        ]
        return [order[first : first + self.batch] for order in orders for first in range(0, self.texts, self.batch)]


def _forward(weights: Weights, words: Array) -> tuple[Array, Array]:
    """The means of the words' vectors, and the probabilities."""
    vectors, dense, bias = (np.asarray(array, np.float64) for array in weights)
    means = vectors[words].mean(axis=1)
    return means, softmax(means @ dense + bias)


def loss_of(weights: Weights, words: Array, labels: Array) -> float:
    """The sum of the cross-entropies of these texts."""
    _, probabilities = _forward(weights, words)
    return float(-np.log(probabilities[np.arange(len(labels)), labels]).sum())


def gradient_of(weights: Weights, words: Array, labels: Array) -> list[Array]:
    """Of that sum."""
    vectors, dense, bias = (np.asarray(array, np.float64) for array in weights)
    means, probabilities = _forward(weights, words)
    of_scores = probabilities - np.eye(len(bias))[labels]
    of_vectors = np.zeros_like(vectors)
    of_words = (of_scores @ dense.T / words.shape[1])[:, None, :].repeat(words.shape[1], axis=1)
    np.add.at(of_vectors, words, of_words)
    return [of_vectors, means.T @ of_scores, of_scores.sum(axis=0)]


def shares_hint(job: RankJob, seen: Sequence[Sequence[Sequence[int]]]) -> str | None:
    """What is said of the ranks' shares; None if in each step every text of the batch is on one rank.

    seen: by rank and step the numbers of the texts, as many steps on every rank.
    """
    together = [[number for rank in seen for number in rank[step]] for step in range(len(seen[0]))]
    return _steps_hint(job, seen, together) or _texts_hint(job, seen, together)


def _steps_hint(job: RankJob, seen: Sequence[Sequence[Sequence[int]]], together: Sequence[Sequence[int]]) -> str | None:
    """Of the sizes of the steps, and how many there are."""
    expected, batch, count = job.batches(), job.batch, len(together)
    for step, (numbers, texts) in enumerate(zip(together, expected, strict=False)):
        if all(sorted(rank[step]) == sorted(texts) for rank in seen):
            return "every rank works on the whole global batch. Which of its texts are for this rank?"
        if len(seen[0][step]) == batch and len(numbers) == batch * job.size:
            return (
                f"a step has {batch * job.size} texts on all ranks, not {batch}: `batch` is of all ranks. What is "
                "one's share?"
            )
    if count < len(expected):
        if together and min(map(len, together)) == batch:
            return "the last, smaller batch of an epoch is missing. What does the serial program do with it?"
        missing = f"the number of steps that are missing is {len(expected) - count}."
        return f"{missing} Does a step take a batch that is divided already?"
    if count > len(expected):
        if job.done and count == job.steps_per_epoch * job.epochs:
            return (
                f"the steps are those of all epochs, and {job.done} of them was done before. Where does the loop begin?"
            )
        if all(sum(map(len, rank)) == job.texts * (job.epochs - job.done) for rank in seen):
            return f"every rank goes through all texts, in {count} steps instead of {len(expected)}. Who divides them?"
        return f"the number of steps is {count}, and the serial program makes {len(expected)}. How many has an epoch?"
    return None


def _texts_hint(job: RankJob, seen: Sequence[Sequence[Sequence[int]]], together: Sequence[Sequence[int]]) -> str | None:
    """Of the texts of each epoch and step, and how evenly they are divided."""
    for first in range(0, len(together), job.steps_per_epoch):
        epoch = [number for numbers in together[first : first + job.steps_per_epoch] for number in numbers]
        if twice := len(epoch) - len(set(epoch)):
            return f"in an epoch texts come twice: {twice} of them. Do all ranks divide one and the same order?"
        if missing := job.texts - len(epoch):
            return f"texts of an epoch are on no rank: {missing} of them. Who takes the last ones of a batch?"
    if any(set(numbers) != set(texts) for numbers, texts in zip(together, job.batches(), strict=True)):
        return "a step has other texts than that of the serial program. Is the order the same, and then divided?"
    largest = max(len(step) for rank in seen for step in rank)
    if largest > -(-job.batch // job.size):
        return (
            f"a rank has {largest} texts of a batch of {job.batch} for {job.size} ranks. How many should each one have?"
        )
    return None


MOMENTUM = 0.9
NEAR = 2e-5
START, SHARES, RATE, AVERAGE, RECORD, SAVED = "start", "shares", "rate", "average", "record", "checkpoint"

AS_IF_SHARED = "divided by the texts of the serial step"


class RankComparison:
    """The ranks of a job that came to an end."""

    def __init__(self, job: RankJob, ranks: Sequence[TrainedRank], way: str) -> None:
        """`ranks` are their records, by rank; `way` is how the program distributes, as in ObservedRanks."""
        self._by_strategy = way == "strategy"
        self._job, self._ranks, self._expected = job, ranks, job.batches()
        self._words, self._labels = topics.texts(job.texts, job.seed)
        numbers = {row.tobytes(): number for number, row in enumerate(self._words)}
        self._seen = [
            [[numbers.get(np.asarray(row, np.int32).tobytes(), -1) for row in rows] for rows in rank.words]
            for rank in ranks
        ]

    def verdict(self) -> Verdict:
        """A sixth for each part."""
        if any(not rank.words for rank in self._ranks):
            return wrong("A rank changes no weights through the optimizer. Where is `apply_gradients`?")
        numbers = [number for rank in self._seen for step in rank for number in step]
        if -1 in numbers:
            return wrong(
                "The model gets texts that are not in the data. What does `topics.texts` give for these options?"
            )
        if len({len(rank) for rank in self._seen}) > 1:
            return wrong(
                f"The ranks make different numbers of steps ({', '.join(str(len(rank)) for rank in self._seen)}). "
                "How many has an epoch of the serial program?"
            )
        shares = shares_hint(self._job, self._seen)
        average = self._average(shares is not None)
        hints = {
            START: self._start(),
            SHARES: shares,
            RATE: self._rate(),
            AVERAGE: average,
            RECORD: self._record(average, shares is not None),
            SAVED: self._saved(),
        }
        return hinted(hints)

    def largest_difference(self) -> float:
        """Between the last weights of any rank and those of one process, computed in double precision."""
        weights = [np.asarray(part, np.float64) for part in self._ranks[0].before[0]]
        velocity = list(self._job.slots) or [np.zeros_like(part) for part in weights]
        for texts in self._expected:
            sums = gradient_of(weights, self._words[texts], self._labels[texts])
            velocity = [
                MOMENTUM * before - self._job.rate * part / len(texts)
                for before, part in zip(velocity, sums, strict=True)
            ]
            weights = [part + step for part, step in zip(weights, velocity, strict=True)]
        return max(float(np.abs(part).max()) for rank in self._ranks for part in _difference(rank.final, weights))

    def _start(self) -> str | None:
        """Equal first weights, those of the checkpoint if there is one."""
        first = [rank.before[0] for rank in self._ranks]
        if not all(_near(own, first[0]) for own in first):
            return "the ranks begin with different weights. Who tells them those of rank 0, and when?"
        if not self._job.done:
            return None
        if not _near(first[0], self._job.weights):
            return "the first weights are not those of the checkpoint. When is it read, and what comes after that?"
        for rank in range(self._job.size):
            gone = self._gone(rank, 0)
            if not any(_near(self._step(rank, gradient), gone) for gradient in self._gradients(rank, 0).values()):
                by_none = [self._step(rank, gradient, 0) for gradient in self._gradients(rank, 0).values()]
                if any(_near(step, gone) for step in by_none):
                    return f"rank {rank} lacks the momentum of the checkpoint. Is the model the whole state?"
        return None

    def _rate(self) -> str | None:
        """The learning rate of the serial program, and its optimizer."""
        job = self._job
        for rank in self._ranks:
            rate = f"the rate is {rank.rate:g}, and it was {job.rate:g}"
            if np.isclose(rank.rate, job.rate * job.size):
                return f"{rate}: but the global batch has not grown. Why go further?"
            if not np.isclose(rank.rate, job.rate):
                return f"{rate}. Does the global batch change?"
            if rank.optimizer != "SGD" or not np.isclose(rank.momentum, MOMENTUM):
                return "the optimizer is another one than the serial program's. Which one does that use?"
        return None

    def _average(self, other_shares: bool) -> str | None:
        """Each step goes by the mean gradient of all its texts; with wrong shares, also by what follows from them."""
        mistakes: list[str] = []  # those that explain every wrong step so far
        for step in range(len(self._seen[0])):
            for rank, record in enumerate(self._ranks):
                gone = self._gone(rank, step)
                own = record.momentum if record.optimizer == "SGD" else MOMENTUM  # another one is the matter of `rate`
                velocities = [own] if step else [own, 0.0]  # the first velocity is the matter of `start`
                names = [
                    name
                    for name, gradient in self._gradients(rank, step).items()
                    if any(_near(self._step(rank, gradient, factor, step), gone) for factor in velocities)
                ]
                if None in names or (AS_IF_SHARED in names and other_shares):
                    continue
                known = [name for name in names if name is not None and name != AS_IF_SHARED]
                mistakes = [name for name in mistakes if name in known] if mistakes else known
                if not mistakes:
                    return (
                        known[0]
                        if known
                        else f"step {step} does not go by the mean gradient of its texts. By what is each loss divided?"
                    )
        return mistakes[0] if mistakes else None

    def _count(self, step: int) -> int:
        """The texts of a step of one process."""
        return len(self._expected[min(step, len(self._expected) - 1)])

    def _gone(self, rank: int, step: int) -> list[Array]:
        """By how much a rank's weights changed in a step."""
        record = self._ranks[rank]
        return _difference(record.after[step], record.before[step])

    def _step(self, rank: int, gradient: Weights, momentum: float = MOMENTUM, step: int = 0) -> list[Array]:
        """By how much SGD with the rank's own rate changes the weights."""
        if step:
            velocity = self._gone(rank, step - 1)
        else:
            velocity = list(self._job.slots) or [np.zeros_like(part) for part in gradient]
        rate = self._ranks[rank].rate
        return [momentum * before - rate * part for before, part in zip(velocity, gradient, strict=True)]

    def _gradients(self, rank: int, step: int) -> dict[str | None, list[Array]]:
        """The right gradient, under None, and those of usual mistakes by their hints."""
        size = self._job.size
        counts = [len(own[step]) for own in self._seen]
        total = max(sum(counts), 1)
        sums = [
            gradient_of(record.before[step], self._words[own[step]], self._labels[own[step]])
            for record, own in zip(self._ranks, self._seen, strict=True)
        ]
        means = np.array([1 / count if count else 0.0 for count in counts])
        alone, every = np.eye(size)[rank], np.ones(size)
        asks = "No call divides here: by how many texts do you?" if self._by_strategy else "Which call divides already?"
        factors = {
            None: every / total,
            AS_IF_SHARED: every / self._count(step),
            "each rank goes by its own gradient. Who adds those of the others?": means * alone,
            "each rank goes by its own part of the gradient. Who adds the parts of the others?": alone / total,
            "the ranks' means are added up, so the gradient is too long. By what is each sum to be divided?": means,
            "in the last batch ranks have different numbers of texts. Does each text count alike in your mean?": (
                means / size
            ),
            "the gradient is too long by the number of ranks: it is added up twice. Which call adds already?": (
                every * size / total
            ),
            f"the gradient is divided by the number of ranks once too often. {asks}": every / total / size,
            "the losses are added up. By how many texts is the sum to be divided?": every,
            "the losses are divided by the number of ranks only. How many texts are in the sum?": every / size,
            "the last batch is divided by the size of a full one. How many texts has it?": every / self._job.batch,
        }
        return {
            hint: [np.tensordot(own, np.stack(parts), axes=1) for parts in zip(*sums, strict=True)]
            for hint, own in factors.items()
        }

    def _record(self, average: str | None, other_shares: bool) -> str | None:
        """Texts and loss of each step, of all ranks together."""
        for rank, record in enumerate(self._ranks):
            if len(record.losses) != len(record.words):
                return (
                    f"the record has {len(record.losses)} steps, and {len(record.words)} were made. What does each "
                    "step append?"
                )
            for name, values in (("texts", record.texts), ("loss", record.losses), ("seconds", record.seconds)):
                if None in values:
                    said = f"a step's record lacks `{name}`, or it is no number."
                    return f"{said} What does the serial program append?"
            for step, (texts, loss) in enumerate(zip(record.texts, record.losses, strict=True)):
                own = len(self._seen[rank][step])
                total = sum(len(peer[step]) for peer in self._seen)
                if other_shares and texts == self._count(step):
                    continue  # a wrong loss follows
                if own != total and texts == own:
                    return "a step's `texts` are those of one rank. How many did all ranks work on?"
                if texts != total and texts != self._count(step):
                    return f"`texts` is {texts:g} for a step with {total}. Count those of all ranks."
                if hint := self._loss_hint(rank, step, loss, average):
                    return hint
        return self._seconds_hint()

    def _seconds_hint(self) -> str | None:
        """For seconds that cannot be those of the step, or of this rank."""
        for rank in self._ranks:
            for step, said in enumerate(rank.seconds):
                shortest, longest = rank.shortest[step], rank.longest[step]
                if said < shortest / 10:
                    return (
                        f"`seconds` of step {step} is {said:.2g}, and `apply_gradients` alone took {shortest:.2g}. "
                        "Between which two moments does the serial program measure?"
                    )
                if said > 1.01 * longest + 0.001:
                    return (
                        f"`seconds` of step {step} is {said:.2g}, and no more than {longest:.2g} passed from the step "
                        "before to the next. When does the clock start?"
                    )
        if len({tuple(rank.seconds) for rank in self._ranks}) == 1:
            return "`seconds` are the same on all ranks. Who measures those of a rank?"
        return None

    def _loss_hint(self, rank: int, step: int, loss: float, average: str | None) -> str | None:
        losses = [
            loss_of(record.before[step], self._words[own[step]], self._labels[own[step]])
            for record, own in zip(self._ranks, self._seen, strict=True)
        ]
        counts = [len(own[step]) for own in self._seen]
        total = sum(counts)
        if abs(loss - sum(losses) / total) < 1e-4:
            return None
        means = [value / count if count else 0.0 for value, count in zip(losses, counts, strict=True)]
        if average is not None and any(
            abs(loss - mistaken) < 1e-4
            for mistaken in (np.mean(means), sum(losses) / self._job.batch, np.sum(means), means[rank])
        ):
            return None  # it follows from the wrong gradient
        if np.isnan(loss):
            return "a step's `loss` is nan: that is the mean of no texts. What does a rank without texts add?"
        if abs(loss - means[rank]) < 1e-4:
            return "a step's `loss` is that of one rank's texts. What is the mean over all?"
        if abs(loss - losses[rank] / total) < 1e-4:
            return "a step's `loss` is one rank's part of it. Who adds the parts?"
        return f"a step's `loss` is {loss:.4f}, and the mean over its texts {sum(losses) / total:.4f}. What is added?"

    def _saved(self) -> str | None:
        """One whole checkpoint after the last epoch, which rank 0 wrote."""
        chief, *peers = self._ranks
        if any(rank.written for rank in peers):
            return (
                "several ranks write into `options.folder`. On a shared disk, whose file would remain?"
                if chief.written
                else "another rank than rank 0 writes the checkpoint. Who reads it next time?"
            )
        if not chief.written:
            return "rank 0 writes no checkpoint. When does the serial program write one?"
        if chief.missing:
            return f"the checkpoint lacks {', '.join(chief.missing)}. What does the next run need?"
        if len(chief.words) != len(self._expected):
            return None  # which epochs are counted follows from the steps, the matter of `shares`
        if chief.epochs_saved != self._job.epochs:
            return (
                f"the newest checkpoint says {chief.epochs_saved} epochs after {self._job.epochs}. What comes "
                "first, count or save?"
            )
        for epoch in range(1, self._job.epochs - self._job.done):
            if chief.saved[epoch * self._job.steps_per_epoch] < self._job.done + epoch:
                return "a new epoch begins before rank 0 has saved the one before. What is lost if the job stops now?"
        for step in range(1, len(chief.newest)):
            if step % self._job.steps_per_epoch and chief.newest[step] != chief.newest[step - 1]:
                return f"rank 0 saves before step {step}, in the middle of an epoch. When does the serial program save?"
        return None


def _difference(after: Weights, before: Weights) -> list[Array]:
    return [np.asarray(new, np.float64) - np.asarray(old, np.float64) for new, old in zip(after, before, strict=True)]


def _near(first: Weights, second: Weights) -> bool:
    return all(
        np.shape(array) == np.shape(expected) and np.allclose(array, expected, rtol=1e-4, atol=NEAR)
        for array, expected in zip(first, second, strict=True)
    )


UNITS = 4
SHAPES = [(len(topics.VOCABULARY), UNITS), (UNITS, len(topics.NAMES)), (len(topics.NAMES),)]
ERRORS = {
    "not been initialized": "A rank asks Horovod something before `hvd.init()`. What must come first?",
    "Must not nest tf.distribute.Strategy": (
        "The model or the optimizer is made outside the strategy. Which `with` must be around it?"
    ),
    "not 'MirroredVariable'": (
        "`int` and `float` cannot read a variable of a strategy's scope. Which method of the variable gives its value?"
    ),
    "no attribute 'task_id'": (
        "This strategy has no `cluster_resolver`: it uses the devices of one process. Which one is for several workers?"
    ),
    "Collective ops must be configured": (
        "TensorFlow computes something before the strategy is made; real workers fail then. What comes first?"
    ),
}
"""What is said of errors of Horovod and of the strategy, by words of them."""


def judge_train(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Half of the points for each job, a sixth of them for each part."""
    batch, rate = 6 * int(generator.integers(2, 4)), float(generator.integers(4, 9)) / 8
    seeds = [int(seed) for seed in generator.integers(1, 10**6, 2)]
    rest = 3 + 2 * int(generator.integers(0, 3))  # an odd number, which two ranks cannot halve
    verdict, way = _judged(answer, RankJob(2, 2 * batch + rest, batch, rate, seeds[0], UNITS), "")
    if not verdict.is_right:
        return replace(verdict, share=verdict.share / 2)
    weights, slots = (
        [generator.normal(0, scale, shape).astype(np.float32) for shape in SHAPES] for scale in (0.3, 0.05)
    )
    rest = int(generator.integers(1, 3))  # fewer texts than ranks
    job = RankJob(3, batch + rest, batch, rate, seeds[1], UNITS, done=1, epochs=3, weights=weights, slots=slots)
    verdict, _ = _judged(answer, job, way)
    if verdict.is_right:
        return right(f"On 2 and on 3 ranks, the weights after every step are those of one process. {verdict.text}")
    half = "On 2 ranks all is right, which is half of the points."
    text = f"{half} On 3 ranks, which go on from a checkpoint: {verdict.text}"
    return replace(verdict, hint=text, share=(1 + verdict.share) / 2, context="", parts=())


def _judged(answer: Answer, job: RankJob, way: str) -> tuple[Verdict, str]:
    """The verdict on one job, and which way the program took."""
    saved = {"weights": list(job.weights), "slots": list(job.slots), "epochs_done": job.done} if job.done else None
    seen = as_record(answer.inside(observe.training, job.options, job.size, saved, way), ObservedRanks)
    if not seen.is_written:
        return not_done("`train` is still empty"), ""
    if problem := _problem(seen, job):
        return problem, seen.way
    if not seen.way:
        return wrong("Nobody calls `hvd.init()` or makes a `MultiWorkerMirroredStrategy`. How do the ranks meet?"), ""
    comparison = RankComparison(job, seen.records(TrainedRank), seen.way)
    verdict = comparison.verdict()
    if verdict.is_right:
        difference = comparison.largest_difference()
        verdict = right(
            f"On {job.size} ranks the last ones differ from those of one process by {difference:.1g} at most."
        )
    return verdict, seen.way


def _problem(seen: ObservedRanks, job: RankJob) -> Verdict | None:
    """What is said if `train` failed on a rank."""
    error = seen.cause
    if error is None:
        return None
    if error.kind in (GaveNothing.__name__, NotImplementedError.__name__):
        if [each and each[0] for each in seen.errors].count(error.kind) < job.size:
            return wrong(f"On rank {error.rank} `train` gives None. Which ranks must return the state and the steps?")
        return not_done("`train` gives None: is a `return` missing?")
    for words, hint in ERRORS.items():
        if words in error.message:
            return wrong(hint)
    if job.done and error.rank and seen.way == "horovod" and "heckpoint" in error.message:
        found = f"Rank {error.rank} finds no checkpoint: only rank 0's host has it."
        return wrong(f"{found} Who reads, and how do the others get it?")
    begun, first_line = seen.epochs_begun, error.first_line
    if error.kind == "Stalled" and None not in begun and len(set(begun)) > 1:
        return wrong(
            f"The ranks begin with different `epochs_done` ({', '.join(map(str, begun))}). Who tells them rank"
            " 0's, and after what?"
        )
    plainly = {
        "TooManySteps": "There are more steps than all epochs have. Where does the loop over an epoch end?",
        "TimeoutError": "The ranks do not come to an end. What do they wait for, or which loop does not end?",
        "WrongForm": (
            f"`train` gives the checkpoint object `state` and the list of steps, as the serial program ({first_line})."
        ),
        "Stalled": (
            f"{first_line[:1].upper() + first_line[1:]}. Which call does that rank leave out, or make a "
            "different number of times?"
        ),
    }
    return wrong(plainly.get(error.kind, f"Rank {error.rank} fails with {str(error).rstrip('.')}."))
