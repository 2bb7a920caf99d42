"""What a program of PyTorch's DDP needs, without PyTorch: ranks are threads, and the model is one matrix in NumPy.

The names, arguments and effects are PyTorch's, as far as a training step meets them: DDP sends rank 0's weights when it
is made. A forward pass outside `no_sync()` makes the next `backward` average the gradients, whichever batch's that is.
"""

import weakref
from collections.abc import Iterable, Iterator, Sequence
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


class DistributedDataParallel(Fake):
    """One linear layer without bias, with rank 0's weights; its `backward` leaves the ranks' average gradient."""

    def __init__(self, job: FakeJob, rank: int, weight: Array) -> None:
        """It counts averages, backward passes, blocks of `no_sync` that were entered, and passes outside them."""
        self._meet = partial(job.meet, rank)
        self.weight = Parameter(self._meet("DistributedDataParallel", weight)[0])
        self.require_backward_grad_sync = True  # PyTorch's name; False in `no_sync`
        self.all_reduces = self.backward_passes = self.no_syncs = self.backward_passes_outside = self.most_kept = 0
        self._averages_next = False
        self._kept: list[weakref.ref[Logits]] = []

    def parameters(self) -> Iterator[Parameter]:
        """All weights."""
        yield self.weight

    def train(self, mode: bool = True) -> "DistributedDataParallel":
        """Makes no difference to a linear layer."""
        return self

    eval = train

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradient; there is no difference between none and zeros here."""
        self.weight.grad = None

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
        """The forward pass, images (n, features) to logits (n, classes).

        Its activations are kept until its backward pass, or until nobody has the logits.
        """
        self._averages_next |= self.require_backward_grad_sync
        logits = Logits(self, np.asarray(images, np.float64))
        still_kept = [kept for kept in self._kept if (before := kept()) is not None and not before.is_used]
        self._kept = [*still_kept, weakref.ref(logits)]
        self.most_kept = max(self.most_kept, len(self._kept))
        return logits

    def add(self, gradients: Sequence[Array]) -> None:
        """A backward pass: add to the gradient, and average it if a forward pass has asked for it."""
        self.backward_passes += 1
        self.backward_passes_outside += self.require_backward_grad_sync
        self.weight.grad = sum(gradients, 0 if self.weight.grad is None else self.weight.grad)
        if self._averages_next:
            self._averages_next = False
            self.all_reduces += 1
            self.weight.grad = np.mean(self._meet("backward", self.weight.grad), axis=0)


class Logits:
    """What a model gives for a batch."""

    def __init__(self, model: DistributedDataParallel, images: Array) -> None:
        self.model, self.images, self.is_used = model, images, False

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
        for logits, _ in self.parts:
            logits.is_used = True
        self.parts[0][0].model.add([gradient for _, gradient in self.parts])

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
    probabilities = reference_mlp.softmax(logits.images @ logits.model.weight.data)
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
