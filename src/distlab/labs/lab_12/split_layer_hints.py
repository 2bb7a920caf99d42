"""From a wrong run of a split layer to the hint that fits the mistake; none of them says what to write instead."""

from collections.abc import Callable, Iterator

import numpy as np

from distlab.labs.answer_errors import first_sentence, sentence
from distlab.labs.lab_12.split_layers import ELEMENT, SplitRun, Undivided, equal, gathered, reduced
from distlab.simulate import DeadlockError, MismatchError, RankFailedError, SimulationError, UnreceivedMessageError

Mistakes = Iterator[tuple[Callable[[np.ndarray], np.ndarray], str]]
"""What a mistake gives on a rank, as a function of the rank's units, and its hint."""

WHOLE_TO_ONE = "Only rank 0 returns what is wanted. Which rank needs it?"


def hint_of_error(error: SimulationError) -> str:
    """Why a run could not go on."""
    text = str(error).splitlines()[0]
    if isinstance(error, (DeadlockError, UnreceivedMessageError)):
        return (
            "Some ranks wait for others in vain, or send what nobody receives. Every rank must call the same "
            "collectives, in the same order."
        )
    if "coroutine" in text:
        return f"{sentence(text)} A collective gives its result when it is awaited."
    if "concatenat" in text or "must match exactly" in text:
        return (
            "`all_gather` puts the ranks' rows one below the other, and these arrays cannot stand so. What has to "
            "stand beside what?"
        )
    if isinstance(error, MismatchError) or "broadcast" in text:
        return (
            "Arrays of different shapes cannot be added to each other. Look at the shapes on two ranks: do the same "
            "places belong to the same units?"
        )
    if "matmul" in text:
        return f"{sentence(text)} Write the shapes of both factors beside it."
    if isinstance(error, RankFailedError):
        return first_sentence(error)
    return sentence(text)


def hint_of_columns(one: SplitRun, part: int) -> str | None:
    """What is wrong with the outputs of a layer that is split by columns; None if nothing is."""
    if one.is_right(part):
        return None
    network, wanted = one.network, one.wanted[part]
    n, ranks = network.sizes.examples, network.sizes.ranks
    if hint := _hint_of_kind(one, part):
        return hint
    by_rank = _results(one, part)
    for result, units in zip(by_rank, network.units(), strict=True):
        if result.shape == wanted.shape:
            continue
        if equal(result, wanted[:, units]):
            return "Each rank returns the columns of its own units only; the outputs of all units are wanted."
        if result.shape == (ranks * n, len(units)):
            return (
                "The ranks' outputs stand one below the other. They belong to the same examples and to different "
                "units: what is a row, and what is a column?"
            )
        if result.shape == (n, len(units)):
            return (
                "This adds up columns of different ranks, which belong to different units. Which of the two "
                "collectives adds, and which puts together?"
            )
        if result.shape == wanted.T.shape:
            return "The outputs are transposed: a row for each unit. A row for each example is wanted."
        return _hint_of_shape(result, wanted)
    return _hint_of_mistake(one, part, _mistaken_columns(network)) or _hint_of_order(by_rank[0], wanted)


def hint_of_sums(one: SplitRun, part: int) -> str | None:
    """What is wrong with the outputs of a layer that is split by rows; None if nothing is."""
    return _hint_of_sums(one, part, _mistaken_sums(one.network))


def hint_of_outputs(one: SplitRun, part: int) -> str | None:
    """What is wrong with the outputs of two layers; None if nothing is."""
    return _hint_of_sums(one, part, _mistaken_outputs(one.network))


def hint_of_gradient(one: SplitRun, part: int) -> str | None:
    """What is wrong with the gradient of the inputs; None if nothing is."""
    sizes = one.network.sizes
    if not one.is_right(part) and one.results is not None:
        result = one.results[0][part]
        widths = {sizes.hidden, len(one.network.units()[0])} - {sizes.inputs}
        if isinstance(result, np.ndarray) and result.ndim == 2 and result.shape[1] in widths:
            return "That is a gradient of the hidden layer. One more product leads to the inputs."
    return _hint_of_sums(one, part, _mistaken_gradients(one.network))


def hint_of_bytes(one: SplitRun, allowed: int) -> str | None:
    """Why more bytes travel than have to; None if not more do."""
    sent, sizes = one.largest_bytes_sent, one.network.sizes
    if sent <= allowed:
        return None
    text = f"With {one.circumstances} a rank sends {sent} bytes, and {allowed} are enough. "
    if len(one.wanted) == 2:
        if (sent - allowed) / gathered(sizes.ranks, sizes.examples, sizes.hidden) in (1, 2):
            return f"{text}The hidden layer travels, too. Which units does a rank need for its own rows?"
        return f"{text}Two arrays have to be added up over the ranks, one forward and one backward. What else travels?"
    if one.wanted[0].shape[1] == sizes.hidden:  # split by columns
        if sent >= gathered(sizes.ranks, sizes.inputs, sizes.hidden):
            return f"{text}The weights travel. What could travel in their place?"
        if sent >= reduced(sizes.ranks, sizes.examples, sizes.hidden):
            return f"{text}An all-reduce adds up arrays that are mostly zeros: nothing is to be added here."
    elif sent >= gathered(sizes.ranks, sizes.examples + sizes.outputs, sizes.hidden):
        return f"{text}Weights and inputs travel. What is left to do if every rank does its own part of each sum?"
    elif sent >= (sizes.ranks - 1) * sizes.examples * sizes.outputs * ELEMENT:
        return f"{text}Whole arrays go from rank to rank. What does an all-reduce on a ring send?"
    return f"{text}What travels more often, or further, than it has to?"


def _hint_of_sums(one: SplitRun, part: int, mistakes: Mistakes) -> str | None:
    if one.is_right(part):
        return None
    if hint := _hint_of_kind(one, part):
        return hint
    wanted, ranks = one.wanted[part], one.network.sizes.ranks
    rows, columns = wanted.shape
    for result in _results(one, part):
        if result.shape == wanted.shape:
            continue
        if result.shape in ((ranks * rows, columns), (rows, ranks * columns)):
            return (
                "What the ranks have is put together, but each has a part of *every* sum. What has to be done with the "
                "parts of a sum?"
            )
        if result.ndim == 2 and result.shape[1] == columns and result.shape[0] < rows:
            return "A rank returns some rows of the sum only; it is asked for all of them."
        return _hint_of_shape(result, wanted)
    return _hint_of_mistake(one, part, mistakes) or (
        "The numbers are wrong. Try two ranks, one example and two units by hand."
    )


def _hint_of_kind(one: SplitRun, part: int) -> str | None:
    """Whether something else than an array of numbers was returned."""
    if all(result[part] is None for result in one.results) and len(one.wanted) > 1:
        return "A pair is wanted from every rank: the outputs, and the gradient of the inputs."
    for rank, result in enumerate(one.results):
        given = result[part]
        if given is None:
            return f"Rank {rank} returns None, or nothing for this: does every rank come to a `return`?"
        if not isinstance(given, np.ndarray) or given.dtype.kind not in "iuf":
            return f"Rank {rank} returns no array of numbers; one of shape {one.wanted[part].shape} is wanted."
    return None


def _hint_of_shape(result: np.ndarray, wanted: np.ndarray) -> str:
    return f"The shape is {result.shape}, and {wanted.shape} is wanted: examples × units."


def _hint_of_mistake(one: SplitRun, part: int, mistakes: Mistakes) -> str | None:
    by_rank, units = _results(one, part), one.network.units()
    if equal(by_rank[0], one.wanted[part]):
        return WHOLE_TO_ONE
    for mistaken, hint in mistakes:
        if all(equal(result, mistaken(own)) for result, own in zip(by_rank, units, strict=True)):
            return hint
    return None


def _hint_of_order(result: np.ndarray, wanted: np.ndarray) -> str:
    if equal(np.sort(result, axis=1), np.sort(wanted, axis=1)):
        return "All columns are there, but not in the order of the ranks."
    return "The numbers are wrong. Try two ranks, one example and two units by hand."


def _results(one: SplitRun, part: int) -> list[np.ndarray]:
    return [result[part] for result in one.results]


def _mistaken_columns(network: Undivided) -> Mistakes:
    wanted = network.before_relu

    def padded(units: np.ndarray) -> np.ndarray:
        alone = np.zeros_like(wanted)
        alone[:, units] = wanted[:, units]
        return alone

    yield lambda units: wanted - network.first_bias, "The bias is missing."
    yield lambda units: np.maximum(wanted, 0), "There is no ReLU in this layer."
    yield padded, "On each rank only the columns of its own units are there; the others are still 0."


def _mistaken_sums(network: Undivided) -> Mistakes:
    hidden, second, bias, ranks = network.hidden, network.second, network.second_bias, network.sizes.ranks
    wanted = network.outputs

    def own(units: np.ndarray) -> np.ndarray:
        return hidden[:, units] @ second[units]

    part_only = "Each rank returns its own part of the sums: it has some of the units, and a sum goes over all of them."
    yield own, part_only
    yield lambda units: own(units) + bias, part_only
    yield lambda units: wanted + (ranks - 1) * bias, _many_times(ranks)
    yield lambda units: wanted - bias, "The bias is missing."
    mean = f"The sum is divided by {ranks}. The ranks have parts of one sum, not {ranks} estimates of it."
    yield lambda units: (wanted - bias) / ranks + bias, mean
    yield lambda units: (wanted + (ranks - 1) * bias) / ranks, mean
    yield lambda units: wanted / ranks, mean
    yield lambda units: np.maximum(wanted, 0), "There is no ReLU in this layer."


def _mistaken_outputs(network: Undivided) -> Mistakes:
    yield from _mistaken_sums(network)
    linear, second, bias, ranks = network.before_relu, network.second, network.second_bias, network.sizes.ranks
    relu = "The ReLU is missing between the layers."
    yield lambda units: linear @ second + bias, relu
    yield lambda units: np.maximum(linear @ second + bias, 0), "The ReLU belongs between the layers, not behind them."
    yield lambda units: np.maximum(linear @ second, 0) + bias, "The ReLU belongs between the layers, not behind them."
    yield lambda units: linear @ second + ranks * bias, f"{relu} {_many_times(ranks)}"
    without = np.maximum(linear - network.first_bias, 0)
    yield lambda units: without @ second + bias, "The first layer's bias is missing."


def _mistaken_gradients(network: Undivided) -> Mistakes:
    is_on, ranks, wanted = network.before_relu > 0, network.sizes.ranks, network.by_inputs
    by_hidden = network.by_outputs @ network.second.T

    def own(units: np.ndarray) -> np.ndarray:
        return (by_hidden * is_on)[:, units] @ network.first[:, units].T

    yield own, "Each rank returns the part of its own units. On which units does an input act?"
    yield (
        lambda units: by_hidden @ network.first.T,
        "The gradient goes past the ReLU. What does it do to units that were 0?",
    )
    yield (
        lambda units: by_hidden[:, units] @ network.first[:, units].T,
        "The gradient goes past the ReLU, and each rank returns the part of its own units only.",
    )
    yield (
        lambda units: by_hidden * network.hidden @ network.first.T,
        "The gradient is multiplied with the hidden units. What is the derivative of a ReLU?",
    )
    yield lambda units: wanted / ranks, f"The sum is divided by {ranks}, but the ranks have parts of one gradient."
    yield (
        lambda units: ranks * wanted,
        f"It is {ranks} times the gradient: something that every rank has whole is added up.",
    )


def _many_times(ranks: int) -> str:
    return f"The bias is in the sum {ranks} times. How many ranks add it?"
