"""What a program of PyTorch's DDP needs, without PyTorch: ranks are threads, and the model is one matrix in NumPy.

The names, arguments and effects are PyTorch's, as far as such a program meets them: DDP sends rank 0's weights when it
is made. A forward pass outside `no_sync()` makes the next `backward` average the gradients, whichever batch's that is.
"""

import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from distlab.labs import reference_mlp
from distlab.labs.fake_job import FakeJob
from distlab.labs.plain_data import Array


class NotInitialised(ValueError):
    """A call that needs the process group came before it; PyTorch raises a ValueError too."""


class Fake:
    """An object of PyTorch's with only what the lab needs."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"the fake {type(self).__name__} has no `{name}`, which the exercise does not need")


class Process:
    """One rank, and what `torch.distributed` and `torch.cuda` are to it."""

    def __init__(self, job: FakeJob, rank: int, is_initialised: bool = False) -> None:
        self.job, self.number, self.is_initialised = job, rank, is_initialised
        self.device = 0  # PyTorch's default
        self.all_reduces = self.models_wrapped = 0
        self.no_syncs = 0  # blocks that were entered
        self.backward_passes_outside = 0

    @property
    def environment(self) -> dict[str, str]:
        """What torchrun tells this process."""
        numbers = {"RANK": self.number, "LOCAL_RANK": self.number % self.job.per_host, "WORLD_SIZE": self.job.size}
        return {name: str(number) for name, number in (numbers | {"LOCAL_WORLD_SIZE": self.job.per_host}).items()}

    def init_process_group(self, backend: str | None = None) -> None:
        """Let the processes meet."""
        if self.is_initialised:
            raise ValueError("trying to initialize the default process group twice!")
        self.is_initialised = True

    def get_rank(self) -> int:
        """The number of this rank among all."""
        self._require_group()
        return self.number

    def get_world_size(self) -> int:
        """How many ranks there are."""
        self._require_group()
        return self.job.size

    def broadcast(self, tensor: Array, src: int) -> None:
        """Give the array the values that it has on rank `src`."""
        tensor[...] = self.meet(f"broadcast from rank {src}", tensor.copy())[src]

    def set_device(self, device: int) -> None:
        """Choose the GPU that "cuda" means; a host has as many as ranks."""
        if not 0 <= device < self.job.per_host:
            raise RuntimeError("CUDA error: invalid device ordinal")
        self.device = device

    def is_available(self) -> bool:
        """Whether there is a GPU."""
        return True

    def meet(self, call: str, value: Any) -> list[Any]:
        """The values of all ranks, by rank."""
        self._require_group()
        return self.job.meet(self.number, call, value)

    def _require_group(self) -> None:
        if not self.is_initialised:
            raise NotInitialised("Default process group has not been initialized")


class Parameter:
    """An array of weights and its gradient; None before the first backward pass and after `zero_grad`."""

    def __init__(self, data: Array) -> None:
        self.data, self.momentum = data.astype(np.float64), np.zeros(data.shape)
        self.grad: Array | None = None


class LinearNetwork(Fake):
    """One linear layer without bias: images (n, features) to logits (n, classes)."""

    def __init__(self, weight: Array) -> None:
        self.weight = Parameter(weight)
        self.wrappers: list[DistributedDataParallel] = []
        self.backward_passes = self.most_kept = 0
        self._kept: list[weakref.ref[Logits]] = []

    def parameters(self) -> Iterator[Parameter]:
        """All weights."""
        yield self.weight

    def __call__(self, images: Array) -> "Logits":
        """The forward pass; its activations are kept until its backward pass, or until nobody has the logits."""
        logits = Logits(self, np.asarray(images, np.float64))
        still_kept = [kept for kept in self._kept if (before := kept()) is not None and not before.is_used]
        self._kept = [*still_kept, weakref.ref(logits)]
        self.most_kept = max(self.most_kept, len(self._kept))
        return logits


class DistributedDataParallel(Fake):
    """The network with rank 0's weights, whose `backward` leaves the ranks' average gradient."""

    def __init__(self, process: Process, network: LinearNetwork) -> None:
        self.process, self.module = process, network
        self.require_backward_grad_sync = True  # PyTorch's name; False in `no_sync`
        self._averages_next = False
        process.models_wrapped += 1
        network.wrappers.append(self)
        for parameter in network.parameters():
            parameter.data[...] = process.meet("DistributedDataParallel", parameter.data.copy())[0]

    def parameters(self) -> Iterator[Parameter]:
        """The network's."""
        return self.module.parameters()

    def train(self, mode: bool = True) -> "DistributedDataParallel":
        """Makes no difference to a linear layer."""
        return self

    eval = train

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradient; there is no difference between none and zeros here."""
        self.module.weight.grad = None

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """In this block a forward pass does not make the next backward pass average."""
        self.process.no_syncs += 1
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def __call__(self, images: Array) -> "Logits":
        """The forward pass; outside `no_sync` it makes the next backward pass average."""
        self._averages_next |= self.require_backward_grad_sync
        return self.module(images)

    def after_backward(self) -> None:
        """Average all gradients that are there, if a forward pass has asked for it."""
        self.process.backward_passes_outside += self.require_backward_grad_sync
        if self._averages_next:
            self._averages_next = False
            self.process.all_reduces += 1
            weight = self.module.weight
            weight.grad = np.mean(self.process.meet("backward", weight.grad), axis=0)


class Logits:
    """What a network gives for a batch."""

    def __init__(self, network: LinearNetwork, images: Array) -> None:
        self.network, self.images, self.is_used = network, images, False

    def __len__(self) -> int:
        return len(self.images)


class BatchLoss(Fake):
    """A number with its gradients: (logits, gradient of the weight) of each batch in it."""

    def __init__(self, value: float, parts: list[tuple[Logits, Array]]) -> None:
        self.value, self.parts = value, parts

    def backward(self) -> None:
        """Add the gradients to those of the weights, and let DDP average these if it has to."""
        if any(logits.is_used for logits, _ in self.parts):
            raise RuntimeError("Trying to backward through the graph a second time")
        network = self.parts[0][0].network
        network.backward_passes += 1
        weight = network.weight
        for logits, gradient in self.parts:
            logits.is_used = True
            weight.grad = gradient.copy() if weight.grad is None else weight.grad + gradient
        for wrapper in network.wrappers:
            wrapper.after_backward()

    def item(self) -> float:
        """The number alone."""
        return self.value

    detach = __float__ = item

    def __mul__(self, factor: float) -> "BatchLoss":
        return BatchLoss(self.value * factor, [(logits, gradient * factor) for logits, gradient in self.parts])

    __rmul__ = mul = __mul__

    def __truediv__(self, divisor: float) -> "BatchLoss":
        return self * (1 / divisor)

    div = __truediv__

    def __neg__(self) -> "BatchLoss":
        return self * -1.0

    def __add__(self, loss: "BatchLoss | float") -> "BatchLoss":
        if isinstance(loss, BatchLoss):
            return BatchLoss(self.value + loss.value, self.parts + loss.parts)
        return BatchLoss(self.value + loss, self.parts)

    __radd__ = __add__


def cross_entropy(logits: Logits, labels: Array) -> BatchLoss:
    """The mean over the batch, as torch.nn.functional.cross_entropy gives it; labels int (n,)."""
    if not isinstance(logits, Logits):
        raise TypeError("cross_entropy takes first what the model gives, then the labels")
    probabilities = reference_mlp.softmax(logits.images @ logits.network.weight.data)
    of_scores = probabilities - np.eye(probabilities.shape[1])[labels]
    gradient = logits.images.T @ of_scores / len(labels)
    return BatchLoss(reference_mlp.cross_entropy(probabilities, labels), [(logits, gradient)])


class SGD(Fake):
    """Gradient descent with momentum, as torch.optim.SGD computes it."""

    def __init__(self, parameters: Iterable[Parameter], rate: float, momentum: float = 0.0) -> None:
        self.parameters, self.rate, self.momentum = list(parameters), rate, momentum
        self.steps = 0

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    def step(self) -> None:
        """Change the weights."""
        self.steps += 1
        for parameter in self.parameters:
            if parameter.grad is not None:
                parameter.momentum = self.momentum * parameter.momentum + parameter.grad
                parameter.data -= self.rate * parameter.momentum
