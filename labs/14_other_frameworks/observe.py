"""What programs do on the fake PyTorch: a student's `accumulate`, in the process of its code, and one of the puzzle."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from lab_14 import given
from lab_14.fake_torch import SGD, BatchLoss, DistributedDataParallel, LinearNetwork, Process, cross_entropy

from distlab.labs.answer import is_untouched, line_of
from distlab.labs.fake_job import FakeJob, run_ranks
from distlab.labs.plain_data import Array, Plain, plain

# A step of several batches -------------------------------------------------------------------------------------------

RANKS, SHAPE = 3, (5, 4)
RATE, MOMENTUM = 0.1, 0.9


def accumulate(namespace: Mapping[str, Any], weight: Array, images: Array, labels: Array) -> Plain:
    """Call the function for two steps; images [step, rank, batch, image, feature], labels alike.

    Gives None where nothing is written; the rank, kind, message and line of the first error; or by rank the weights
    after each step, the counts of both steps together, and how often it used `no_sync`.
    """
    function = namespace.get("accumulate")
    if not callable(function) or is_untouched(function):
        return None
    job, lines = FakeJob(RANKS, RANKS, seconds=2.0), dict[int, int]()

    def program(rank: int) -> dict[str, Any]:
        process, network = Process(job, rank, is_initialised=True), LinearNetwork(weight)
        model = DistributedDataParallel(process, network)
        optimizer = SGD(model.parameters(), RATE, MOMENTUM)
        weights = []
        for of_step, own_labels in zip(images[:, rank], labels[:, rank], strict=True):
            try:
                function(model, optimizer, list(zip(of_step, own_labels, strict=True)))
            except Exception as error:
                lines[rank] = line_of(error.__traceback__, getattr(function, "__globals__", namespace)) or 0
                raise
            weights.append(network.weight.data.copy())
        return {
            "weights": weights,
            "steps": optimizer.steps,
            "all-reduces": process.all_reduces,
            "backward": network.backward_passes,
            "kept": network.most_kept,
            "no_sync": process.no_syncs,
            "outside": process.backward_passes_outside,
        }

    seen = run_ranks(job, program)
    if errors := [(rank, *error) for rank, error in enumerate(seen.errors) if error]:
        rank, kind, message = min(errors, key=lambda error: error[1] in ("Stalled", "Abandoned"))
        return [rank, kind, message[:300], lines.get(rank, 0)]
    return plain({name: [value[name] for value in seen.values] for name in seen.values[0]})


# A program of the puzzle ---------------------------------------------------------------------------------------------

PUZZLE_RANKS, PER_HOST, EPOCHS = 4, 2, 3
FEATURES, CLASSES = 3, 4
_FILE = "<the program>"
Share = Callable[[int, int, int, int], list[int]]
"""The images of a rank in an epoch: `share(images, ranks, rank, epoch)`."""


class ProgramJob(NamedTuple):
    """The data and options that a program gets: images (n, FEATURES), labels (n,), the rate and batch of one rank."""

    images: Array
    labels: Array
    rate: float
    batch: int
    seed: int


@dataclass
class RankRecord:
    """What a rank did.

    device: the GPU of its network.  first, last: weights before the first step and after the last.  seen: by epoch, the
    numbers of the images of each step.  averaged: by step.  saves: the epochs after which it saved.
    """

    device: int = -1
    rate: float = 0.0
    first: Array | None = None
    seen: list[list[list[int]]] = field(default_factory=list)
    averaged: list[bool] = field(default_factory=list)
    models_wrapped: int = 0
    saves: list[int] = field(default_factory=list)
    last: Array | None = None


class ProgramFault(NamedTuple):
    """The first line or card that raised an error, and the error's class."""

    name: str
    kind: str


def run(program: Sequence[str], job: ProgramJob, share: Share) -> list[RankRecord] | ProgramFault:
    """The records of all ranks, or what ended the program."""
    code, fake = compile(given.body(program), _FILE, "exec"), FakeJob(PUZZLE_RANKS, PER_HOST)
    faults: dict[int, ProgramFault] = {}

    def live(rank: int) -> RankRecord:
        process, record = Process(fake, rank), RankRecord()
        try:
            exec(code, _names(process, job, record, share))
        except Exception as error:
            line, traceback = 1, sys.exc_info()[2]
            while traceback is not None:
                line = traceback.tb_lineno if traceback.tb_frame.f_code.co_filename == _FILE else line
                traceback = traceback.tb_next
            faults[rank] = ProgramFault(program[line - 1], type(error).__name__)
            raise
        record.models_wrapped = process.models_wrapped
        return record

    seen = run_ranks(fake, live)
    if not faults:
        return seen.values
    waiting = ("Stalled", "Abandoned")  # for a rank that failed first, if any did
    return min(faults.values(), key=lambda fault: fault.kind in waiting)


class Sampler:
    """The numbers of a rank's images; `of_epoch` gives them."""

    def __init__(self, of_epoch: Callable[[int], list[int]]) -> None:
        self._of_epoch, self.epoch = of_epoch, 0

    def __iter__(self) -> Iterator[int]:
        return iter(self._of_epoch(self.epoch))


class DistributedSampler(Sampler):
    """The same for a share of them, which can be told the epoch."""

    def set_epoch(self, epoch: int) -> None:
        """The next order is that of this epoch."""
        self.epoch = epoch


class DataLoader:
    """Whole batches of the numbers of images, in the sampler's order."""

    def __init__(self, images: Array, batch: int, sampler: Sampler, drop_last: bool) -> None:
        self._batch, self._sampler = batch, sampler

    def __len__(self) -> int:
        return len(list(self._sampler)) // self._batch

    def __iter__(self) -> Iterator[list[int]]:
        numbers = list(self._sampler)
        return (numbers[start : start + self._batch] for start in range(0, len(self) * self._batch, self._batch))


class _RecordedNetwork(LinearNetwork):
    def to(self, device: str) -> "_RecordedNetwork":
        self.record.device = self.process.device
        return self


class _RecordedSGD(SGD):
    def step(self) -> None:
        super().step()
        self.record.averaged.append(self.process.all_reduces > self.all_reduces_before)
        self.all_reduces_before = self.process.all_reduces
        self.record.last = self.parameters[0].data.copy()


def _names(process: Process, job: ProgramJob, record: RankRecord, share: Share) -> dict[str, Any]:
    """What the program finds: PyTorch's names, and the functions that the lab describes."""
    own = np.random.default_rng([job.seed, process.number])  # each process draws for itself

    def make_network() -> LinearNetwork:
        network = _RecordedNetwork(own.normal(0, 0.1, (FEATURES, CLASSES)))
        network.process, network.record = process, record
        return network

    def optimizer(parameters: Any, rate: float, momentum: float) -> SGD:
        made = _RecordedSGD(parameters, rate, momentum)
        made.process, made.record, made.all_reduces_before, record.rate = process, record, 0, rate
        return made

    def sampler(images: Array, ranks: int | None = None, rank: int | None = None) -> Sampler:
        ranks = process.get_world_size() if ranks is None else ranks
        rank = process.get_rank() if rank is None else rank
        return DistributedSampler(lambda epoch: share(len(images), ranks, rank, epoch))

    def loss_of(model: Any, batch: list[int]) -> BatchLoss:
        network = model.module if isinstance(model, DistributedDataParallel) else model
        if record.first is None:
            record.first = network.weight.data.copy()
        record.seen[-1].append(batch)
        return cross_entropy(model(job.images[batch]), job.labels[batch])

    def batches_of_epoch(loader: DataLoader, steps: int) -> Iterator[list[int]]:
        record.seen.append([])
        return islice(loader, steps)

    options = SimpleNamespace(rate=job.rate, batch=job.batch, epochs=EPOCHS, dataset="drawn", folder="shared")
    return {
        "os": SimpleNamespace(environ=process.environment),
        "torch": SimpleNamespace(cuda=process),
        "dist": process,
        "parse": lambda: options,
        "make_network": make_network,
        "SGD": optimizer,
        "DistributedDataParallel": partial(DistributedDataParallel, process),
        "restore": lambda network, optimizer, folder: 0,
        "load": lambda dataset: job.images,
        "RandomSampler": lambda images: Sampler(lambda epoch: own.permutation(len(images)).tolist()),
        "DistributedSampler": sampler,
        "DataLoader": DataLoader,
        "islice": batches_of_epoch,
        "loss_of": loss_of,
        "save": lambda network, optimizer, epoch, folder: record.saves.append(epoch),
    }
