"""What each rank did, next to what one process does, part by part.

From a rank's own weights before a step follows what its gradient was, and from its own learning rate how far it should
have gone; so one fault does not hide another.
"""

from collections.abc import Sequence

import numpy as np
from lab_16 import classifier
from lab_16.hints import Lab16TrainHint as Hints
from lab_16.observe import TrainedRank
from lab_16.rank_job import RankJob, Weights
from lab_16.shares import shares_hint

from distlab.data import topics
from distlab.labs.plain_data import Array
from distlab.labs.verdict import AnyHint, Verdict, parts, right, wrong

MOMENTUM = 0.9
NEAR = 2e-5
START, SHARES, RATE, AVERAGE, RECORD, SAVED = "start", "shares", "rate", "average", "record", "checkpoint"

AS_IF_SHARED = "divided by the texts of the serial step"


class RankComparison:
    """The ranks of a job that came to an end."""

    def __init__(self, job: RankJob, ranks: Sequence[TrainedRank]) -> None:
        """`ranks` are their records, by rank."""
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
            return wrong(Hints.NO_STEPS)
        numbers = [number for rank in self._seen for step in rank for number in step]
        if -1 in numbers:
            return wrong(Hints.OTHER_TEXTS)
        if len({len(rank) for rank in self._seen}) > 1:
            return wrong(Hints.STEPS_DIFFER.says(counts=", ".join(str(len(rank)) for rank in self._seen)))
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
        return parts({name: right() if hint is None else wrong(hint) for name, hint in hints.items()})

    def largest_difference(self) -> float:
        """Between the last weights of any rank and those of one process, computed in double precision."""
        weights = [np.asarray(part, np.float64) for part in self._ranks[0].before[0]]
        velocity = list(self._job.slots) or [np.zeros_like(part) for part in weights]
        for texts in self._expected:
            sums = classifier.gradient(weights, self._words[texts], self._labels[texts])
            velocity = [
                MOMENTUM * before - self._job.rate * part / len(texts)
                for before, part in zip(velocity, sums, strict=True)
            ]
            weights = [part + step for part, step in zip(weights, velocity, strict=True)]
        return max(float(np.abs(part).max()) for rank in self._ranks for part in _difference(rank.final, weights))

    def _start(self) -> AnyHint | None:
        """Equal first weights, those of the checkpoint if there is one."""
        first = [rank.before[0] for rank in self._ranks]
        if not all(_near(own, first[0]) for own in first):
            return Hints.NO_BROADCAST
        if not self._job.done:
            return None
        if not _near(first[0], self._job.weights):
            return Hints.NOT_RESUMED
        for rank in range(self._job.size):
            gone = self._gone(rank, 0)
            if not any(_near(self._step(rank, gradient), gone) for gradient in self._gradients(rank, 0).values()):
                by_none = [self._step(rank, gradient, 0) for gradient in self._gradients(rank, 0).values()]
                if any(_near(step, gone) for step in by_none):
                    return Hints.NO_MOMENTUM.says(rank=rank)
        return None

    def _rate(self) -> AnyHint | None:
        """The learning rate of the serial program, and its optimizer."""
        job = self._job
        for rank in self._ranks:
            if np.isclose(rank.rate, job.rate * job.size):
                return Hints.RATE_SCALED.says(rate=rank.rate, own=job.rate)
            if not np.isclose(rank.rate, job.rate):
                return Hints.ANOTHER_RATE.says(rate=rank.rate, own=job.rate)
            if rank.optimizer != "SGD" or not np.isclose(rank.momentum, MOMENTUM):
                return Hints.ANOTHER_OPTIMIZER
        return None

    def _average(self, other_shares: bool) -> AnyHint | None:
        """Each step goes by the mean gradient of all its texts; with wrong shares, also by what follows from them."""
        mistakes: list[AnyHint] = []  # those that explain every wrong step so far
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
                    return known[0] if known else Hints.AVERAGE_OTHERWISE.says(step=step)
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

    def _gradients(self, rank: int, step: int) -> dict[AnyHint | None, list[Array]]:
        """The right gradient, under None, and those of usual mistakes by their hints."""
        size = self._job.size
        counts = [len(own[step]) for own in self._seen]
        total = max(sum(counts), 1)
        sums = [
            classifier.gradient(record.before[step], self._words[own[step]], self._labels[own[step]])
            for record, own in zip(self._ranks, self._seen, strict=True)
        ]

        def combined(*factors: float) -> list[Array]:
            return [
                sum((factor * part for factor, part in zip(factors, of_ranks, strict=True)), np.zeros_like(of_ranks[0]))
                for of_ranks in zip(*sums, strict=True)
            ]

        means = [1 / count if count else 0.0 for count in counts]
        gradients: dict[AnyHint | None, list[Array]] = {
            None: combined(*[1 / total] * size),
            AS_IF_SHARED: combined(*[1 / self._count(step)] * size),
            Hints.NOT_EXCHANGED: combined(*[means[rank] if peer == rank else 0.0 for peer in range(size)]),
            Hints.PART_ALONE: combined(*[1 / total if peer == rank else 0.0 for peer in range(size)]),
            Hints.MEANS_ADDED: combined(*means),
            Hints.MEAN_OF_MEANS: combined(*[mean / size for mean in means]),
            Hints.ADDED_TWICE: combined(*[size / total] * size),
            Hints.DIVIDED_TWICE: combined(*[1 / total / size] * size),
            Hints.NOT_DIVIDED: combined(*[1.0] * size),
            Hints.DIVIDED_BY_RANKS: combined(*[1 / size] * size),
            Hints.DIVIDED_BY_BATCH: combined(*[1 / self._job.batch] * size),
        }
        return gradients

    def _record(self, average: AnyHint | None, other_shares: bool) -> AnyHint | None:
        """Texts and loss of each step, of all ranks together."""
        for rank, record in enumerate(self._ranks):
            if len(record.losses) != len(record.words):
                return Hints.RECORD_LENGTH.says(count=len(record.losses), expected=len(record.words))
            if None in record.seconds:
                return Hints.NO_SECONDS
            for step, (texts, loss) in enumerate(zip(record.texts, record.losses, strict=True)):
                own = len(self._seen[rank][step])
                total = sum(len(peer[step]) for peer in self._seen)
                if texts is None or loss is None:
                    return Hints.RECORD_EMPTY
                if other_shares and texts == self._count(step):
                    continue  # a wrong loss follows
                if own != total and texts == own:
                    return Hints.OWN_TEXTS
                if texts != total and texts != self._count(step):
                    return Hints.ANOTHER_COUNT.says(count=texts, expected=total)
                if hint := self._loss_hint(rank, step, loss, average):
                    return hint
        return self._seconds_hint()

    def _seconds_hint(self) -> AnyHint | None:
        """For seconds that cannot be those of the step."""
        for rank in self._ranks:
            for step, said in enumerate(rank.seconds):
                shortest, longest = rank.shortest[step], rank.longest[step]
                if said is None or said < shortest / 10:
                    return Hints.SECONDS_TOO_FEW.says(step=step, said=said, least=shortest)
                if said > 1.01 * longest + 0.001:
                    return Hints.SECONDS_TOO_MANY.says(step=step, said=said, most=longest)
        return None

    def _loss_hint(self, rank: int, step: int, loss: float, average: AnyHint | None) -> AnyHint | None:
        losses = [
            classifier.loss(record.before[step], self._words[own[step]], self._labels[own[step]])
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
        if abs(loss - means[rank]) < 1e-4:
            return Hints.OWN_LOSS
        if abs(loss - losses[rank] / total) < 1e-4:
            return Hints.PART_OF_LOSS
        return Hints.ANOTHER_LOSS.says(loss=loss, expected=sum(losses) / total)

    def _saved(self) -> AnyHint | None:
        """One whole checkpoint after the last epoch, which rank 0 wrote."""
        chief, *peers = self._ranks
        if any(rank.written for rank in peers):
            return Hints.ALL_SAVE if chief.written else Hints.WRONG_RANK_SAVES
        if not chief.written:
            return Hints.NOBODY_SAVES
        if chief.missing:
            return Hints.NOT_WHOLE.says(missing=", ".join(chief.missing))
        if len(chief.words) != len(self._expected):
            return None  # which epochs are counted follows from the steps, the matter of `shares`
        if chief.epochs_saved != self._job.epochs:
            return Hints.EPOCHS_WRONG.says(count=chief.epochs_saved, expected=self._job.epochs)
        for epoch in range(1, self._job.epochs - self._job.done):
            if chief.saved[epoch * self._job.steps_per_epoch] < self._job.done + epoch:
                return Hints.SAVED_LATE
        for step in range(1, len(chief.newest)):
            if step % self._job.steps_per_epoch and chief.newest[step] != chief.newest[step - 1]:
                return Hints.SAVED_IN_BETWEEN.says(step=step)
        return None


def _difference(after: Weights, before: Weights) -> list[Array]:
    return [np.asarray(new, np.float64) - np.asarray(old, np.float64) for new, old in zip(after, before, strict=True)]


def _near(first: Weights, second: Weights) -> bool:
    return all(
        np.shape(array) == np.shape(expected) and np.allclose(array, expected, rtol=1e-4, atol=NEAR)
        for array, expected in zip(first, second, strict=True)
    )
