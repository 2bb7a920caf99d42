"""What a student's Horovod functions do on the ranks of the fake Horovod; runs in the process of the student's code.

Six ranks on two hosts, so that rank and local rank, size and local size differ. The functions are those of chapter 09's
`train_tape.py`; everything around each of them is right, so that a mistake counts only once.
"""

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from distlab import data
from distlab.labs.fake_horovod import FakeJob, Observation, hvd, rank_here, run_ranks, tapes_wrapped
from distlab.labs.observed_ranks import GaveNothing, eagerly, fake_hvd_in, missing_in
from distlab.labs.plain_data import Array
from distlab.labs.student_programs import Function, written

SIZE, PER_HOST = 6, 3
HOSTS = SIZE // PER_HOST
MOMENTUM = 0.9

Weights = Sequence[Array]


def flat(weights: Weights) -> Array:
    """All numbers of these arrays in a row."""
    return np.concatenate([np.ravel(array) for array in weights])


@dataclass(frozen=True)
class Started:
    """After `start`: whether hvd.init was called, and the indices of the GPUs that the rank has chosen to see, if any.

    `hides_cpu`: it has chosen among all devices; −1 among `gpus` is another device.
    """

    is_initialised: bool
    gpus: list[int]
    hides_cpu: bool


@dataclass(frozen=True)
class Fed:
    """The numbers of the samples that `batches` gave to a rank: [epoch][step][sample]; what does not fit them."""

    samples: list[list[list[int]]]
    misfits: list[str]


@dataclass(frozen=True)
class Optimized:
    """What `make_optimizer` made: the class, the learning rate and the momentum."""

    name: str
    rate: float
    momentum: float


@dataclass(frozen=True)
class Begun:
    """What a rank has after `begin`, its weights and the optimizer's `slots` in a row."""

    weights: Array
    slots: Array
    epochs_done: int


@dataclass(frozen=True)
class Stepped:
    """What a rank has after `step`, what after another, the loss that the first gave; the tapes wrapped in both."""

    weights: Array
    second: Array
    loss: float | None
    tapes: int


@dataclass(frozen=True)
class Saved:
    """Whether a rank wrote a checkpoint, whether it is found, and what of the state is not in it."""

    has_written: bool
    is_found: bool
    missing: list[str]


EPOCHS_DONE = 5


def start(namespace: Mapping[str, Any]) -> dict[str, Observation]:
    """Call `start()` where ranks see as many GPUs as there are, by slot and by node, one each, and none: Started."""
    import tensorflow as tf

    def on_hosts_with(count: int, by_node: bool = False) -> Observation:
        devices = [tf.config.PhysicalDevice(f"/physical_device:GPU:{index}", "GPU") for index in range(count)]
        processor = tf.config.PhysicalDevice("/physical_device:CPU:0", "CPU")
        chosen: dict[int, list[int]] = {}
        without_type: set[int] = set()

        def physical(device_type: str | None = None) -> list[Any]:
            processors = [processor] if device_type in (None, "CPU") else []
            return [*processors, *(devices if device_type in (None, "GPU") else [])]

        def choose(visible: Any, device_type: str | None = None) -> None:
            visible = list(visible) if isinstance(visible, (list, tuple)) and visible not in devices else [visible]
            if device_type is None and processor not in visible:
                without_type.add(rank_here())
            if device_type in (None, "GPU"):
                others = [device for device in visible if device not in devices]
                gpus = [devices.index(device) for device in visible if device in devices]
                chosen[rank_here()] = gpus + ([-1] if others and device_type == "GPU" else [])

        def program(function: Function) -> Started:
            function()
            return Started(hvd.is_initialized(), chosen.get(rank_here(), []), rank_here() in without_type)

        fakes = {
            "list_physical_devices": physical,
            "get_visible_devices": physical,
            "set_visible_devices": choose,
            "set_memory_growth": lambda *anything: None,
        }
        with ExitStack() as stack:
            for module in (tf.config, tf.config.experimental):
                for name, fake in fakes.items():
                    if hasattr(module, name):
                        stack.enter_context(mock.patch.object(module, name, fake))
            job = (4, 2) if by_node else (SIZE, PER_HOST)
            return _observed(namespace, "start", program, False, job, by_node)

    return {
        "with GPUs": on_hosts_with(PER_HOST),
        "by node": on_hosts_with(2, by_node=True),
        "one each": on_hosts_with(1),
        "without GPUs": on_hosts_with(0),
    }


def feeding(namespace: Mapping[str, Any], options: Mapping[str, Any], steps: int) -> dict[str, Observation]:
    """Call `batches` for two epochs of `steps` steps, observing Fed, and `steps_per_epoch`, observing its value."""
    parsed = argparse.Namespace(**options)

    images, labels = data.load(parsed.dataset).train

    def fed(function: Function) -> Fed:
        epochs: list[list[list[int]]] = []
        misfits: list[str] = []
        for epoch in range(2):
            batches = function(parsed, epoch)
            if batches is None:
                raise GaveNothing
            epochs.append([])
            for numbers, own_images, own_labels in batches.take(steps).as_numpy_iterator():
                numbers = np.atleast_1d(numbers)
                epochs[-1].append(numbers.tolist())
                known = numbers.min(initial=0) >= 0 and numbers.max(initial=0) < len(images)
                for name, own, true in (("images", own_images, images), ("labels", np.ravel(own_labels), labels)):
                    misfits += [] if known and np.array_equal(own, true[numbers]) else [name]
        return Fed(epochs, misfits)

    def count_of(images: int) -> Callable[[Function], object]:
        def count(function: Function) -> object:
            value = function(argparse.Namespace(**vars(parsed) | {"images": images}))
            return value.item() if isinstance(value, np.generic) else value

        return count

    one_short = SIZE * parsed.batch * steps - 1  # a rank alone may have samples for one batch more

    with mock.patch.object(data, "load", cache(data.load)):  # read once, not by every rank
        return {
            "batches": _observed(namespace, "batches", fed),
            "steps": _observed(namespace, "steps_per_epoch", count_of(parsed.images)),
            "steps of one image less": _observed(namespace, "steps_per_epoch", count_of(one_short)),
        }


def training(
    namespace: Mapping[str, Any],
    weights: Sequence[Weights],
    saved: Weights,
    batches: Sequence[tuple[Array, Array]],
    rate: float,
) -> dict[str, Observation]:
    """Call `make_optimizer`, `begin`, `step` and `save`; observes Optimized, Begun, Stepped, and whether a rank wrote.

    weights: of each rank, at first; saved: those in the checkpoint that `begin` may find; batches: one of each rank.
    """
    import tensorflow as tf

    with tempfile.TemporaryDirectory() as place:
        folders = [Path(place) / f"rank-{rank}" for rank in range(SIZE)]
        for folder in folders:
            folder.mkdir()
        states = [_state(own, rank) for rank, own in enumerate(weights)]

        def options(**more: Any) -> argparse.Namespace:
            known = {"learning_rate": rate, "folder": folders[rank_here()], "resume": False}
            return argparse.Namespace(**known | more)

        def optimizer(function: Function) -> Optimized:
            made = function(options())
            if made is None:
                raise GaveNothing
            momentum = float(getattr(made, "momentum", 0.0))
            return Optimized(type(made).__name__, float(np.asarray(made.learning_rate)), momentum)

        def begin(function: Function, resume: bool = False) -> Begun:
            state = states[rank_here()]
            function(options(resume=resume), state)
            slots = [variable.numpy() for variable in state.optimizer.variables if np.ndim(variable) > 0]
            return Begun(flat(state.model.get_weights()), flat(slots), int(state.epochs_done))

        def step(function: Function) -> Stepped:
            state = states[rank_here()]
            loss = function(state, *map(tf.constant, batches[rank_here()]))
            weights, tapes = flat(state.model.get_weights()), tapes_wrapped()
            function(state, *map(tf.constant, batches[rank_here()]))
            value = None if loss is None or np.size(loss) != 1 else float(np.ravel(loss)[0])
            return Stepped(weights, flat(state.model.get_weights()), value, tapes)

        def save(function: Function) -> Saved:
            state, folder = states[rank_here()], folders[rank_here()]
            function(options(folder=None), state)
            function(options(), state)
            newest = tf.train.latest_checkpoint(str(folder))
            missing = [] if newest is None else missing_in(newest)
            return Saved(any(folder.iterdir()), newest is not None, missing)

        observations = {
            "optimizer": _observed(namespace, "make_optimizer", optimizer),
            "optimizer of four": _observed(namespace, "make_optimizer", optimizer, job=(4, 2)),
        }
        observations["begin"] = _observed(namespace, "begin", begin)
        _reset(states, [weights[0]] * SIZE)
        for state in states:
            for variable in state.optimizer.variables:
                variable.assign(tf.zeros_like(variable))
            state.optimizer.learning_rate.assign(rate)
        observations["step"] = _observed(namespace, "step", step)
        observations["save"] = _observed(namespace, "save", save)
        for folder in folders:
            for file in folder.iterdir():
                file.unlink()
        _reset([states[0]], [saved])
        states[0].epochs_done.assign(EPOCHS_DONE)
        states[0].save(str(folders[0] / "checkpoint"))
        _reset(states, weights)
        observations["not resumed"] = _observed(namespace, "begin", begin)
        _reset(states, weights)
        observations["resumed"] = _observed(namespace, "begin", lambda function: begin(function, resume=True))
    return observations


def _observed(
    namespace: Mapping[str, Any],
    name: str,
    program: Callable[[Function], object],
    initialised: bool = True,
    job: tuple[int, int] = (SIZE, PER_HOST),
    by_node: bool = False,
) -> Observation:
    """What `program(function)` does on every rank."""
    function = written(namespace, name)
    if function is None:
        return Observation([], [])
    with fake_hvd_in(namespace), eagerly():
        return run_ranks(FakeJob(*job, by_node=by_node), lambda: program(function), initialised)


def _state(weights: Weights, rank: int) -> Any:
    """The state of a training, a tf.train.Checkpoint."""
    import tensorflow as tf

    layers = [tf.keras.layers.Flatten(), tf.keras.layers.Dense(weights[1].size, activation="relu")]
    model = tf.keras.Sequential([tf.keras.layers.Input((28, 28)), *layers, tf.keras.layers.Dense(weights[3].size)])
    optimizer = tf.keras.optimizers.SGD(0.1, momentum=MOMENTUM)
    optimizer.build(model.trainable_variables)
    state = tf.train.Checkpoint(model=model, optimizer=optimizer, epochs_done=tf.Variable(0, dtype=tf.int64))
    _reset([state], [weights], first=rank)
    return state


def _reset(states: Sequence[Any], weights: Sequence[Weights], first: int = 0) -> None:
    """Give the states these weights, and each rank another momentum: its number plus a half."""
    import tensorflow as tf

    for rank, (state, own) in enumerate(zip(states, weights, strict=True), start=first):
        state.model.set_weights(own)
        state.epochs_done.assign(0)
        for variable in state.optimizer.variables:
            if variable.shape.rank:
                variable.assign(tf.fill(variable.shape, rank + 0.5))
