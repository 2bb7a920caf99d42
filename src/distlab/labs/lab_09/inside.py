"""A student's Horovod functions on the ranks of `horovod_stand_in`, looked at from beside them, in plain data.

Six ranks on two hosts, so that rank, local rank, size and local size are told apart. The functions are those of
`labs/09_horovod/train_tape.py`; each is called among parts that are right, so that a mistake in one costs that one.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from distlab import data
from distlab.labs.answer import is_untouched
from distlab.labs.lab_09.fake_horovod import Outcome, Team, hvd, rehearse, tapes_wrapped

SIZE, PER_HOST = 6, 3
MISSING = "missing"
MOMENTUM = 0.9
EPOCHS_DONE = 5


class GaveNothing(Exception):
    """A function that must give something gave None: it is not written yet."""


def start(namespace: Mapping[str, Any]) -> dict:
    """Call `start()` on hosts with a GPU for each rank, then without: by number of GPUs, what each rank is or raised.

    Of each rank: [initialised, the indices of the GPUs that it sees or None if nobody has said].
    """
    import tensorflow as tf

    function = written(namespace, "start")
    if function is None:
        return {"problem": MISSING}
    found: dict[str, Any] = {"problem": ""}
    for count in (PER_HOST, 0):
        devices = [tf.config.PhysicalDevice(f"/physical_device:GPU:{index}", "GPU") for index in range(count)]
        seen: dict[int, list[int]] = {}

        def physical(device_type: str | None = None, devices: list = devices) -> list:
            return list(devices) if device_type in (None, "GPU") else []

        def show(shown: Any, device_type: str | None = None, devices: list = devices, seen: dict = seen) -> None:
            shown = list(shown) if isinstance(shown, (list, tuple)) and shown not in devices else [shown]
            if device_type in (None, "GPU"):
                seen[_number()] = [devices.index(device) for device in shown if device in devices]

        def program(seen: dict = seen) -> list:
            function()
            return [hvd.is_initialized(), seen.get(_number())]

        patches = {"list_physical_devices": physical, "set_visible_devices": show, "get_visible_devices": physical}
        with ExitStack() as stack:
            for module in (tf.config, tf.config.experimental):
                for name, stand_in in {**patches, "set_memory_growth": lambda *anything: None}.items():
                    if hasattr(module, name):
                        stack.enter_context(mock.patch.object(module, name, stand_in))
            stack.enter_context(_stand_in_of(namespace))
            found[str(count)] = _plain(rehearse(Team(SIZE, PER_HOST), program, initialised=False))
    return found


def feeding(namespace: Mapping[str, Any], options: Mapping[str, Any], steps: int) -> dict:
    """Call `batches` for two epochs, each of so many steps, and `steps_per_epoch`.

    Of each rank: under "batches" [epoch][step] the numbers of the samples; under "steps" what it says.
    """
    given = argparse.Namespace(**options)
    functions = {"batches": written(namespace, "batches"), "steps": written(namespace, "steps_per_epoch")}

    def numbers(epoch: int) -> list:
        batches = functions["batches"](given, epoch)
        if batches is None:
            raise GaveNothing
        return [np.atleast_1d(part[0]).tolist() for part in batches.take(steps).as_numpy_iterator()]

    def count() -> object:
        value = functions["steps"](given)
        return value.item() if isinstance(value, np.generic) else value

    programs = {"batches": lambda: [numbers(epoch) for epoch in range(2)], "steps": count}
    with mock.patch.object(data, "load", cache(data.load)):  # read once, not by every rank
        return {name: _looked(namespace, functions[name], programs[name]) for name in programs}


def training(
    namespace: Mapping[str, Any],
    weights: Sequence[Sequence[np.ndarray]],
    kept: Sequence[np.ndarray],
    batches: Sequence[tuple[np.ndarray, np.ndarray]],
    rate: float,
) -> dict:
    """Call `make_optimizer`, `begin`, `step` and `save`: what each rank has afterwards.

    weights: of each rank, at first; kept: those in the checkpoint that `begin` may find; batches: one of each rank.
    """
    import tensorflow as tf

    with tempfile.TemporaryDirectory() as place:
        folders = [Path(place) / f"rank-{rank}" for rank in range(SIZE)]
        for folder in folders:
            folder.mkdir()
        states = [_state(own, rank) for rank, own in enumerate(weights)]

        def options(**more: Any) -> argparse.Namespace:
            known = {"learning_rate": rate, "folder": folders[_number()], "resume": False}
            return argparse.Namespace(**known | more)

        def optimizer() -> list:
            made = functions["optimizer"](options())
            if made is None:
                raise GaveNothing
            return [type(made).__name__, float(np.asarray(made.learning_rate)), float(getattr(made, "momentum", 0.0))]

        def begin(resume: bool) -> list:
            state = states[_number()]
            functions["begin"](options(resume=resume), state)
            slots = [variable.numpy() for variable in state.optimizer.variables if np.ndim(variable) > 0]
            return [state.model.get_weights(), slots, int(state.epochs_done)]

        def step() -> list:
            state = states[_number()]
            functions["step"](state, *map(tf.constant, batches[_number()]))
            return [state.model.get_weights(), tapes_wrapped()]

        def save() -> bool:
            functions["save"](options(folder=None), states[_number()])
            functions["save"](options(), states[_number()])
            return any(folders[_number()].iterdir())

        names = {"optimizer": "make_optimizer", "begin": "begin", "step": "step", "save": "save"}
        functions = {key: written(namespace, name) for key, name in names.items()}
        found = {"optimizer": _looked(namespace, functions["optimizer"], optimizer)}
        found["begin"] = _looked(namespace, functions["begin"], lambda: begin(resume=False))
        _reset(states, [weights[0]] * SIZE)
        for state in states:
            for variable in state.optimizer.variables:
                variable.assign(tf.zeros_like(variable))
            state.optimizer.learning_rate.assign(rate)
        found["step"] = _looked(namespace, functions["step"], step)
        found["save"] = _looked(namespace, functions["save"], save)
        for folder in folders:
            for file in folder.iterdir():
                file.unlink()
        _reset([states[0]], [kept])
        states[0].epochs_done.assign(EPOCHS_DONE)
        states[0].save(str(folders[0] / "checkpoint"))
        _reset(states, weights)
        found["resumed"] = _looked(namespace, functions["begin"], lambda: begin(resume=True))
    return found


def network(weights: Sequence[np.ndarray]) -> Any:
    """A network of the lecture's form with these weights; how wide it is, they say."""
    import tensorflow as tf

    layers = [tf.keras.layers.Flatten(), tf.keras.layers.Dense(weights[1].size, activation="relu")]
    model = tf.keras.Sequential([tf.keras.layers.Input((28, 28)), *layers, tf.keras.layers.Dense(weights[3].size)])
    model.set_weights(weights)
    return model


def _state(weights: Sequence[np.ndarray], rank: int) -> Any:
    import tensorflow as tf

    model, optimizer = network(weights), tf.keras.optimizers.SGD(0.1, momentum=MOMENTUM)
    optimizer.build(model.trainable_variables)
    state = tf.train.Checkpoint(model=model, optimizer=optimizer, epochs_done=tf.Variable(0, dtype=tf.int64))
    _reset([state], [weights], first=rank)
    return state


def _reset(states: Sequence[Any], weights: Sequence[Sequence[np.ndarray]], first: int = 0) -> None:
    """Give the states these weights, and each rank a momentum of its own: its number and a half."""
    import tensorflow as tf

    for rank, (state, own) in enumerate(zip(states, weights, strict=True), start=first):
        state.model.set_weights(own)
        state.epochs_done.assign(0)
        for variable in state.optimizer.variables:
            if variable.shape.rank:
                variable.assign(tf.fill(variable.shape, rank + 0.5))


def _number() -> int:
    """The rank, also before hvd.init()."""
    before = hvd.is_initialized()
    hvd.init()
    number = hvd.rank()
    if not before:
        hvd.shutdown()
    return number


def written(namespace: Mapping[str, Any], name: str) -> Callable | None:
    """The student's function, or None as long as there is none or it is untouched."""
    function = namespace.get(name)
    if not callable(function) or is_untouched(getattr(function, "python_function", function)):
        return None
    return function


def _looked(namespace: Mapping[str, Any], function: Callable | None, program: Callable[[], Any]) -> dict:
    if function is None:
        return {"problem": MISSING}
    with _stand_in_of(namespace), _eagerly():
        return {"problem": "", "ranks": _plain(rehearse(Team(SIZE, PER_HOST), program))}


@contextmanager
def _eagerly() -> Iterator[None]:
    """Without graphs, in which ranks that wait would take the threads of ranks that are waited for."""
    import tensorflow as tf

    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(before)


@contextmanager
def _stand_in_of(namespace: Mapping[str, Any]) -> Iterator[None]:
    """The stand-in, also for a student who has imported Horovod itself or made a stand-in of another kind."""
    if namespace.get("hvd") is hvd:
        yield
    else:
        with mock.patch.dict(namespace, {"hvd": hvd}):
            yield


def _plain(outcomes: Sequence[Outcome]) -> list[dict]:
    return [{"value": outcome.value, "error": outcome.error and list(outcome.error)} for outcome in outcomes]
