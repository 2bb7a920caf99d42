"""The judge of `train`: the program runs on two ranks, then on three; each step is compared with one process's.

From a rank's own weights before a step follows what its gradient was, and from its own learning rate how far it should
have gone; so one fault does not hide another. Weights and gradients are vectors here, all numbers in a row.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from lab_16 import observe
from lab_16.observe import ObservedRanks, TrainedRank

from distlab.data import topics
from distlab.labs import Answer, Verdict, not_done, right, wrong
from distlab.labs.observed_ranks import GaveNothing
from distlab.labs.plain_data import Array, as_record
from distlab.labs.reference_mlp import softmax
from distlab.labs.verdict import hinted

Shares = Sequence[Sequence[Sequence[int]]]
"""By rank and step, the numbers of the texts."""

UNITS = 4
SHAPES = [(len(topics.VOCABULARY), UNITS), (UNITS, len(topics.NAMES)), (len(topics.NAMES),)]
MOMENTUM = 0.9
START, SHARES, RATE, AVERAGE, RECORD, SAVED = "start", "shares", "rate", "average", "record", "checkpoint"
AS_IF_SHARED = "divided by the texts of the serial step"


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
    done: int = 0
    epochs: int = 1
    weights: Sequence[Array] = ()
    slots: Sequence[Array] = ()

    @property
    def steps_per_epoch(self) -> int:
        """Of one process."""
        return -(-self.texts // self.batch)

    @cached_property
    def batches(self) -> list[list[int]]:
        """The numbers of the texts in each step of one process."""
        epochs = range(self.done, self.epochs)
        orders = [np.random.default_rng([self.seed, epoch]).permutation(self.texts).tolist() for epoch in epochs]
        return [order[first : first + self.batch] for order in orders for first in range(0, self.texts, self.batch)]


def flat(weights: Sequence[Array]) -> Array:
    """All numbers of these arrays, in double precision."""
    return np.concatenate([np.ravel(array) for array in weights]).astype(np.float64)


def near(vector: Array, other: Array) -> bool:
    """Whether they are equal, but for rounding in single precision."""
    return vector.shape == other.shape and np.allclose(vector, other, rtol=1e-4, atol=2e-5)


def loss_and_gradient(weights: Array, words: Array, labels: Array) -> tuple[float, Array]:
    """The sum of the cross-entropies of these texts, and its gradient."""
    ends = np.cumsum([np.prod(shape) for shape in SHAPES])
    vectors, dense, bias = (
        part.reshape(shape) for part, shape in zip(np.split(weights, ends[:-1]), SHAPES, strict=True)
    )
    means = vectors[words].mean(axis=1)
    probabilities = softmax(means @ dense + bias)
    of_scores = probabilities - np.eye(len(bias))[labels]
    of_vectors = np.zeros_like(vectors)
    np.add.at(of_vectors, words, (of_scores @ dense.T / words.shape[1])[:, None, :])
    loss = float(-np.log(probabilities[np.arange(len(labels)), labels]).sum())
    return loss, flat([of_vectors, means.T @ of_scores, of_scores.sum(axis=0)])


def shares_hint(job: RankJob, seen: Shares) -> str | None:
    """What is said of the ranks' shares, as many steps on every rank; None if every text of a batch is on one rank."""
    together = [[number for rank in seen for number in rank[step]] for step in range(len(seen[0]))]
    return _steps_hint(job, seen, together) or _texts_hint(job, seen, together)


def _steps_hint(job: RankJob, seen: Shares, together: Sequence[Sequence[int]]) -> str | None:
    """Of the sizes of the steps, and how many there are."""
    expected, batch, count = job.batches, job.batch, len(together)
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


def _texts_hint(job: RankJob, seen: Shares, together: Sequence[Sequence[int]]) -> str | None:
    """Of the texts of each epoch and step, and how evenly they are divided."""
    for first in range(0, len(together), job.steps_per_epoch):
        epoch = [number for numbers in together[first : first + job.steps_per_epoch] for number in numbers]
        if twice := len(epoch) - len(set(epoch)):
            return f"in an epoch texts come twice: {twice} of them. Do all ranks divide one and the same order?"
        if missing := job.texts - len(epoch):
            return f"texts of an epoch are on no rank: {missing} of them. Who takes the last ones of a batch?"
    if any(set(numbers) != set(texts) for numbers, texts in zip(together, job.batches, strict=True)):
        return "a step has other texts than that of the serial program. Is the order the same, and then divided?"
    largest = max(len(step) for rank in seen for step in rank)
    if largest > -(-job.batch // job.size):
        return (
            f"a rank has {largest} texts of a batch of {job.batch} for {job.size} ranks. How many should each one have?"
        )
    return None


class RankComparison:
    """The ranks of a job that came to an end, and made as many steps, with texts of the data."""

    def __init__(self, job: RankJob, ranks: Sequence[TrainedRank], seen: Shares, way: str) -> None:
        """`ranks` are their records, by rank; `way` is how the program distributes, as in ObservedRanks."""
        self._job, self._ranks, self._seen, self._by_strategy = job, ranks, seen, way == "strategy"
        self._words, self._labels = topics.texts(job.texts, job.seed)
        self._before = [[flat(weights) for weights in rank.before] for rank in ranks]
        self._gone = [
            [flat(after) - before for after, before in zip(rank.after, own, strict=True)]
            for rank, own in zip(ranks, self._before, strict=True)
        ]
        self._slots = flat(job.slots) if job.done else np.zeros_like(self._before[0][0])
        # By step and rank the losses, their gradients, and the numbers of texts.
        computed = [
            [self._of_texts(before[step], own[step]) for before, own in zip(self._before, seen, strict=True)]
            for step in range(len(seen[0]))
        ]
        self._losses, self._sums = ([[of[place] for of in step] for step in computed] for place in (0, 1))
        self._counts = [[len(own[step]) for own in seen] for step in range(len(seen[0]))]

    def _of_texts(self, weights: Array, texts: Sequence[int]) -> tuple[float, Array]:
        return loss_and_gradient(weights, self._words[list(texts)], self._labels[list(texts)])

    def verdict(self) -> Verdict:
        """A sixth for each part."""
        shares = shares_hint(self._job, self._seen)
        average = self._average(shares is not None)
        return hinted(
            {
                START: self._start(),
                SHARES: shares,
                RATE: self._rate(),
                AVERAGE: average,
                RECORD: self._record(average, shares is not None) or self._seconds(),
                SAVED: self._saved(),
            }
        )

    def largest_difference(self) -> float:
        """Between the last weights of any rank and those of one process, computed in double precision."""
        weights, velocity = self._before[0][0], self._slots
        for texts in self._job.batches:
            _, gradient = self._of_texts(weights, texts)
            velocity = MOMENTUM * velocity - self._job.rate * gradient / len(texts)
            weights = weights + velocity
        return max(float(np.abs(flat(rank.final) - weights).max()) for rank in self._ranks)

    def _start(self) -> str | None:
        """Equal first weights, those of the checkpoint if there is one."""
        first = [steps[0] for steps in self._before]
        if not all(near(own, first[0]) for own in first):
            return "the ranks begin with different weights. Who tells them those of rank 0, and when?"
        if not self._job.done:
            return None
        if not near(first[0], flat(self._job.weights)):
            return "the first weights are not those of the checkpoint. When is it read, and what comes after that?"
        for rank in range(self._job.size):
            if not self._names(rank, 0, MOMENTUM) and self._names(rank, 0, 0.0):
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
        for step in range(len(self._counts)):
            for rank, record in enumerate(self._ranks):
                own = record.momentum if record.optimizer == "SGD" else MOMENTUM  # another one is the matter of `rate`
                momenta = (own,) if step else (own, 0.0)  # the first velocity is the matter of `start`
                names = self._names(rank, step, *momenta)
                if None in names or (AS_IF_SHARED in names and other_shares):
                    continue
                known = [name for name in names if name is not None and name != AS_IF_SHARED]
                mistakes = [name for name in mistakes if name in known] if mistakes else known
                if not mistakes:
                    no_mean = (
                        f"step {step} does not go by the mean gradient of its texts. By what is each loss divided?"
                    )
                    return known[0] if known else no_mean
        return mistakes[0] if mistakes else None

    def _serial_count(self, step: int) -> int:
        """The texts of a step of one process."""
        return len(self._job.batches[min(step, len(self._job.batches) - 1)])

    def _names(self, rank: int, step: int, *momenta: float) -> list[str | None]:
        """Of the gradients by which SGD with the rank's own rate gets as far, with one of these momenta."""
        velocity = self._gone[rank][step - 1] if step else self._slots
        return [
            name
            for name, factors in self._factors(rank, step).items()
            for gradient in [np.dot(factors, self._sums[step])]
            if any(
                near(momentum * velocity - self._ranks[rank].rate * gradient, self._gone[rank][step])
                for momentum in momenta
            )
        ]

    def _factors(self, rank: int, step: int) -> dict[str | None, Array]:
        """By what the ranks' gradients are multiplied before they are added: rightly, under None, or by a mistake."""
        size, counts = self._job.size, self._counts[step]
        total = max(sum(counts), 1)
        means = np.array([1 / count if count else 0.0 for count in counts])
        alone, every = np.eye(size)[rank], np.ones(size)
        asks = "No call divides here: by how many texts do you?" if self._by_strategy else "Which call divides already?"
        return {
            None: every / total,
            AS_IF_SHARED: every / self._serial_count(step),
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
                own, total = self._counts[step][rank], sum(self._counts[step])
                if other_shares and texts == self._serial_count(step):
                    continue  # a wrong loss follows
                if own != total and texts == own:
                    return "a step's `texts` are those of one rank. How many did all ranks work on?"
                if texts not in (total, self._serial_count(step)):
                    return f"`texts` is {texts:g} for a step with {total}. Count those of all ranks."
                if hint := self._loss(rank, step, loss, average):
                    return hint
        return None

    def _seconds(self) -> str | None:
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

    def _loss(self, rank: int, step: int, loss: float, average: str | None) -> str | None:
        """For another loss than the mean over all texts of the step."""
        losses, counts = self._losses[step], self._counts[step]
        of_all = sum(losses) / sum(counts)
        means = [value / count if count else 0.0 for value, count in zip(losses, counts, strict=True)]
        from_gradient = (np.mean(means), sum(losses) / self._job.batch, np.sum(means), means[rank])
        if np.isclose(loss, [of_all, *(from_gradient if average else ())], rtol=0, atol=1e-4).any():
            return None  # it is right, or follows from the wrong gradient
        if np.isnan(loss):
            return "a step's `loss` is nan: that is the mean of no texts. What does a rank without texts add?"
        if abs(loss - means[rank]) < 1e-4:
            return "a step's `loss` is that of one rank's texts. What is the mean over all?"
        if abs(loss - losses[rank] / sum(counts)) < 1e-4:
            return "a step's `loss` is one rank's part of it. Who adds the parts?"
        return f"a step's `loss` is {loss:.4f}, and the mean over its texts {of_all:.4f}. What is added?"

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
        if len(chief.words) != len(self._job.batches):
            return None  # which epochs are counted follows from the steps, the matter of `shares`
        if chief.epochs_saved != self._job.epochs:
            return (
                f"the newest checkpoint says {chief.epochs_saved} epochs after {self._job.epochs}. What comes "
                "first, count or save?"
            )
        for step in range(1, len(chief.newest)):
            has_saved, is_first = chief.newest[step] != chief.newest[step - 1], step % self._job.steps_per_epoch == 0
            if is_first and not has_saved:
                return "a new epoch begins before rank 0 has saved the one before. What is lost if the job stops now?"
            if has_saved and not is_first:
                return f"rank 0 saves before step {step}, in the middle of an epoch. When does the serial program save?"
        return None


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
    verdict, way = _judged(answer, RankJob(2, 2 * batch + rest, batch, rate, seeds[0]), "")
    if not verdict.is_right:
        return replace(verdict, share=verdict.share / 2)
    weights, slots = (
        [generator.normal(0, scale, shape).astype(np.float32) for shape in SHAPES] for scale in (0.3, 0.05)
    )
    rest = int(generator.integers(1, 3))  # fewer texts than ranks
    job = RankJob(3, batch + rest, batch, rate, seeds[1], done=1, epochs=3, weights=weights, slots=slots)
    verdict, _ = _judged(answer, job, way)
    if verdict.is_right:
        return right(f"On 2 and on 3 ranks, the weights after every step are those of one process. {verdict.text}")
    half = "On 2 ranks all is right, which is half of the points."
    text = f"{half} On 3 ranks, which go on from a checkpoint: {verdict.text}"
    return replace(verdict, hint=text, share=(1 + verdict.share) / 2, context="", parts=())


def _judged(answer: Answer, job: RankJob, way: str) -> tuple[Verdict, str]:
    """The verdict on one job, and which way the program took."""
    names = ("texts", "batch", "rate", "seed", "epochs")
    options = {name: getattr(job, name) for name in names} | {"units": UNITS}
    saved = {"weights": list(job.weights), "slots": list(job.slots), "epochs_done": job.done} if job.done else None
    seen = as_record(answer.inside(observe.training, options, job.size, saved, way), ObservedRanks)
    if not seen.is_written:
        return not_done("`train` is still empty"), ""
    if problem := _problem(seen, job):
        return problem, seen.way
    if not seen.way:
        return wrong("Nobody calls `hvd.init()` or makes a `MultiWorkerMirroredStrategy`. How do the ranks meet?"), ""
    ranks = seen.records(TrainedRank)
    numbers = {row.tobytes(): number for number, row in enumerate(topics.texts(job.texts, job.seed).words)}
    shares = [
        [[numbers.get(np.asarray(row, np.int32).tobytes(), -1) for row in rows] for rows in rank.words]
        for rank in ranks
    ]
    if problem := _problem_of_steps(shares):
        return wrong(problem), seen.way
    comparison = RankComparison(job, ranks, shares, seen.way)
    verdict = comparison.verdict()
    if verdict.is_right:
        by = f"{comparison.largest_difference():.1g} at most"
        verdict = right(f"On {job.size} ranks the last ones differ from those of one process by {by}.")
    return verdict, seen.way


def _problem_of_steps(shares: Shares) -> str | None:
    """For steps that cannot be compared."""
    if not all(shares):
        return "A rank changes no weights through the optimizer. Where is `apply_gradients`?"
    if any(-1 in step for rank in shares for step in rank):
        return "The model gets texts that are not in the data. What does `topics.texts` give for these options?"
    counts = [str(len(rank)) for rank in shares]
    made = f"The ranks make different numbers of steps ({', '.join(counts)})."
    return None if len(set(counts)) == 1 else f"{made} How many has an epoch of the serial program?"


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
