"""What a program of PyTorch's DDP needs, without PyTorch: ranks are threads, and the model is one matrix in NumPy.

The names, arguments and effects are PyTorch's, as far as a training step meets them: DDP sends rank 0's weights when it
is made. A forward pass outside `no_sync()` makes the next `backward` average the gradients, whichever batch's that is.
"""

import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NoReturn

import numpy as np

from distlab.labs import reference_mlp
from distlab.labs.fake_job import FakeJob
from distlab.labs.plain_data import Array


class Fake:
    """An object of PyTorch's with only what the lab needs."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"the fake {type(self).__name__} has no `{name}`, which the exercise does not need")


class Parameter:
    """An array of weights and its gradient; None before the first backward pass and after `zero_grad`."""

    def __init__(self, data: Array) -> None:
        self.data, self.momentum = data.astype(np.float64), np.zeros(data.shape)
        self.grad: Array | None = None


class LinearNetwork(Fake):
    """One linear layer without bias: images (n, features) to logits (n, classes)."""

    def __init__(self, weight: Array) -> None:
        self.weight = Parameter(weight)
        self.wrapper: DistributedDataParallel | None = None
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

    def __init__(self, job: FakeJob, rank: int, network: LinearNetwork) -> None:
        """The counts are of averages, of blocks of `no_sync` that were entered, and of backward passes outside them."""
        self.module, network.wrapper = network, self
        self.require_backward_grad_sync = True  # PyTorch's name; False in `no_sync`
        self.all_reduces = self.no_syncs = self.backward_passes_outside = 0
        self._meet, self._averages_next = partial(job.meet, rank), False
        network.weight.data[...] = self._meet("DistributedDataParallel", network.weight.data.copy())[0]

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
        self.no_syncs += 1
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
        self.backward_passes_outside += self.require_backward_grad_sync
        if self._averages_next:
            self._averages_next = False
            self.all_reduces += 1
            weight = self.module.weight
            weight.grad = np.mean(self._meet("backward", weight.grad), axis=0)


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
        if network.wrapper is not None:
            network.wrapper.after_backward()

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
