"""Run a program of the puzzle on the fake PyTorch: four ranks on two hosts, and what each of them does."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from types import SimpleNamespace, TracebackType
from typing import Any, NamedTuple

import numpy as np
from lab_14 import fake_torch, given, sampling
from lab_14.fake_torch import SGD, DistributedDataParallel, LinearNetwork, Process

from distlab.labs import fake_job
from distlab.labs.plain_data import Array

RANKS, PER_HOST, EPOCHS = 4, 2, 3
FEATURES, CLASSES = 3, 4
_FILE = "<the program>"


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
    seen: dict[int, list[list[int]]] = field(default_factory=dict)
    averaged: list[bool] = field(default_factory=list)
    models_wrapped: int = 0
    saves: list[int] = field(default_factory=list)
    last: Array | None = None


class ProgramFault(NamedTuple):
    """The first line or card that raised an error, and the error's class and message."""

    name: str
    kind: str
    message: str


def drawn_job(generator: np.random.Generator) -> ProgramJob:
    """A job whose images do not divide evenly."""
    batch = int(generator.integers(2, 5))
    count = RANKS * batch * int(generator.integers(3, 6)) + int(generator.integers(1, RANKS))
    images = generator.normal(size=(count, FEATURES))
    return ProgramJob(images, generator.integers(0, CLASSES, count), 0.05, batch, int(generator.integers(1, 1000)))


def run(program: Sequence[str], job: ProgramJob) -> list[RankRecord] | ProgramFault:
    """The records of all ranks, or what ended the program."""
    code = compile(given.body(program), _FILE, "exec")
    faults: dict[int, ProgramFault] = {}
    fake = fake_job.FakeJob(RANKS, PER_HOST)

    def live(rank: int) -> RankRecord:
        process, record = Process(fake, rank), RankRecord()
        try:
            exec(code, _names(process, job, record))
        except Exception as error:
            name = program[_line(sys.exc_info()[2]) - 1]
            faults[rank] = ProgramFault(name, type(error).__name__, str(error))
            raise
        record.models_wrapped = process.models_wrapped
        return record

    outcomes = fake_job.run_ranks(fake, live)
    if not faults:
        return [outcome.value for outcome in outcomes]
    waiting = ("Stalled", "Abandoned")  # for a rank that failed first, if any did
    return min(faults.values(), key=lambda fault: fault.kind in waiting)


def _line(traceback: TracebackType | None) -> int:
    line = 1
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == _FILE:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


class RandomSampler:
    """All images in a new order for each epoch; each process has its own."""

    def __init__(self, generator: np.random.Generator, images: Array) -> None:
        self._generator, self._count = generator, len(images)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        return iter(self._generator.permutation(self._count).tolist())


class DistributedSampler:
    """A rank's share of the images."""

    def __init__(
        self, process: Process, images: Array, num_replicas: int | None = None, rank: int | None = None
    ) -> None:
        self._ranks = process.get_world_size() if num_replicas is None else num_replicas
        self._rank = process.get_rank() if rank is None else rank
        self._count, self._epoch = len(images), 0

    def set_epoch(self, epoch: int) -> None:
        """The next order is that of this epoch."""
        self._epoch = epoch

    def _numbers(self) -> list[int]:
        return sampling.samples(self._count, self._ranks, self._rank, self._epoch, 0, False)

    def __len__(self) -> int:
        return len(self._numbers())

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers())


class DataLoader:
    """Whole batches of the numbers of images, in the sampler's order."""

    def __init__(self, images: Array, batch: int, sampler: Any, drop_last: bool) -> None:
        self._batch, self._sampler = batch, sampler

    def __len__(self) -> int:
        return len(self._sampler) // self._batch

    def __iter__(self) -> Iterator[list[int]]:
        numbers = list(self._sampler)
        return (numbers[step * self._batch : (step + 1) * self._batch] for step in range(len(self)))


class _RecordedNetwork(LinearNetwork):
    def __init__(self, process: Process, record: RankRecord, weight: Array) -> None:
        super().__init__(weight)
        self._process, self._record = process, record

    def to(self, device: str) -> "_RecordedNetwork":
        self._record.device = self._process.device
        return self


class _RecordedSGD(SGD):
    def __init__(self, process: Process, record: RankRecord, parameters: Any, rate: float, momentum: float) -> None:
        super().__init__(parameters, rate, momentum)
        record.rate = rate
        self._process, self._record, self._averages = process, record, 0

    def step(self) -> None:
        super().step()
        self._record.averaged.append(self._process.all_reduces > self._averages)
        self._averages = self._process.all_reduces
        self._record.last = self.parameters[0].data.copy()


def _names(process: Process, job: ProgramJob, record: RankRecord) -> dict[str, Any]:
    """What the program finds: PyTorch's names, and the functions that the lab describes."""
    own = np.random.default_rng([job.seed, process.number])  # each process draws for itself
    epochs = iter(range(EPOCHS))

    def loss_of(model: Any, batch: list[int]) -> fake_torch.BatchLoss:
        network = model.module if isinstance(model, DistributedDataParallel) else model
        if record.first is None:
            record.first = network.weight.data.copy()
        record.seen[current[0]].append(batch)
        return fake_torch.cross_entropy(model(job.images[batch]), job.labels[batch])

    current = [-1]

    def batches_of_epoch(loader: DataLoader, steps: int) -> Iterator[list[int]]:
        current[0] = next(epochs)
        record.seen[current[0]] = []
        return islice(loader, steps)

    weight = own.normal(0, 0.1, (FEATURES, CLASSES))
    return {
        "os": SimpleNamespace(environ=process.environment),
        "torch": SimpleNamespace(cuda=process),
        "dist": process,
        "parse": lambda: SimpleNamespace(
            rate=job.rate, batch=job.batch, epochs=EPOCHS, dataset="drawn", folder="shared"
        ),
        "make_network": lambda: _RecordedNetwork(process, record, weight),
        "SGD": partial(_RecordedSGD, process, record),
        "DistributedDataParallel": partial(DistributedDataParallel, process),
        "restore": lambda network, optimizer, folder: 0,
        "load": lambda dataset: job.images,
        "RandomSampler": partial(RandomSampler, own),
        "DistributedSampler": partial(DistributedSampler, process),
        "DataLoader": DataLoader,
        "islice": batches_of_epoch,
        "loss_of": loss_of,
        "save": lambda network, optimizer, epoch, folder: record.saves.append(epoch),
    }
