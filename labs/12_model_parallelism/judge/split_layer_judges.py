"""The judges of lab 12's split layers: the result, then the bytes that travel; each mistake gets the hint that fits."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from lab_12.hints import Lab12Hint
from lab_12.split_layers import (
    BY_COLUMNS,
    BY_ROWS,
    ELEMENT,
    TWO_LAYERS,
    Array,
    LayerSizes,
    LayerSplit,
    SplitRun,
    Undivided,
    Units,
    attempt,
    drawn,
    equal,
    gathered,
    numbers,
    reduced,
)

from distlab.labs.answer import Answer
from distlab.labs.answer_errors import first_sentence, sentence
from distlab.labs.verdict import AnyHint, Verdict, not_done, parts, right, wrong
from distlab.simulate import DeadlockError, MismatchError, RankFailedError, SimulationError, UnreceivedMessageError

EVEN = (LayerSizes(4, 4, 12, 20, 4), LayerSizes(2, 4, 6, 8, 3))
UNEVEN = (LayerSizes(3, 4, 9, 16, 5), LayerSizes(1, 3, 5, 4, 2), LayerSizes(5, 3, 6, 3, 2))

HintOf = Callable[[SplitRun, int], AnyHint | None]
Mistakes = Iterator[tuple[Callable[[Units], Array], AnyHint]]
"""What a mistake gives on a rank, as a function of the rank's units, and its hint."""


def judge_by_columns(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points for units that the ranks divide, a quarter for any, half for the bytes."""
    return _judged_layer(BY_COLUMNS, _hint_of_columns, answer, generator)


def judge_by_rows(answer: Answer, generator: np.random.Generator) -> Verdict:
    """The same."""
    return _judged_layer(BY_ROWS, _hint_of_rows, answer, generator)


def judge_two_layers(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A third of the points each for the outputs, the gradient of the inputs, and the bytes if both are right."""
    problems: dict[str, Verdict] = {}
    runs = []
    for sizes in _cases(generator):
        run = attempt(answer, TWO_LAYERS, drawn(generator, sizes))
        if run.error is not None:
            return wrong(_hint_of_error(run.error), context=f"{run.circumstances}: ")
        if all(equal(result[1 - part], run.expected[part]) for result in run.results for part in (0, 1)):
            return wrong(Lab12Hint.SWAPPED_PAIR)
        for part, (name, hint_of) in enumerate((("outputs", _hint_of_outputs), ("gradient", _hint_of_gradient))):
            if name not in problems and (hint := hint_of(run, part)):
                problems[name] = wrong(hint, context=f"{run.circumstances}: ")
        runs.append(run)
    if problems:
        problems["bytes"] = not_done("both results must be right first")
    elif hint := _first_hint_of_bytes(TWO_LAYERS, runs):
        problems["bytes"] = wrong(hint)
    if problems:
        return parts({name: problems.get(name, right()) for name in ("outputs", "gradient", "bytes")})
    return right(_reached(runs))


def _judged_layer(split: LayerSplit, hint_of: HintOf, answer: Answer, generator: np.random.Generator) -> Verdict:
    runs: list[SplitRun] = []
    for sizes in _cases(generator):
        run = attempt(answer, split, drawn(generator, sizes))
        hint = _hint_of_error(run.error) if run.error is not None else hint_of(run, 0)
        if hint:
            return wrong(hint, 0.25 if len(runs) >= len(EVEN) else 0.0, context=_place(run, runs))
        runs.append(run)
    if hint := _first_hint_of_bytes(split, runs):
        return wrong(Lab12Hint.RESULT_RIGHT.says().then(hint), 0.5)
    return right(_reached(runs))


def _cases(generator: np.random.Generator) -> list[LayerSizes]:
    def any_sizes() -> LayerSizes:
        ranks, examples, inputs, hidden, outputs = generator.integers([2, 1, 2, 2, 1], [7, 6, 12, 20, 7])
        return LayerSizes(int(ranks), int(examples), int(inputs), int(hidden), int(outputs))

    return [*EVEN, *UNEVEN, any_sizes(), any_sizes()]


def _place(run: SplitRun, runs: Sequence[SplitRun]) -> str:
    """Where the first wrong run is, after the right `runs`."""
    sizes = run.network.sizes
    if not runs:
        return f"With {run.circumstances}: "
    if sizes.hidden < sizes.ranks:
        return f"Right as long as every rank has a unit; wrong with {run.circumstances}. "
    if sizes.hidden % sizes.ranks and all(past.network.sizes.hidden % past.network.sizes.ranks == 0 for past in runs):
        return f"Right as long as all ranks have equally many units; wrong with {run.circumstances}. "
    return f"Right in {len(runs)} cases; wrong with {run.circumstances}. "


def _first_hint_of_bytes(split: LayerSplit, runs: Sequence[SplitRun]) -> AnyHint | None:
    for run in runs:
        if hint := _hint_of_bytes(run, split.bytes_at_most(run.network.sizes)):
            return hint
    return None


def _reached(runs: Sequence[SplitRun]) -> str:
    sizes = [run.network.sizes.ranks for run in runs]
    first = runs[0]
    return (
        f"{len(runs)} runs on {min(sizes)} to {max(sizes)} ranks are right; with {first.circumstances} a rank sends "
        f"{first.largest_bytes_sent} bytes."
    )


def _hint_of_error(error: SimulationError) -> AnyHint:
    """Why a run could not go on."""
    text = str(error).splitlines()[0]
    if isinstance(error, (DeadlockError, UnreceivedMessageError)):
        return Lab12Hint.NOT_THE_SAME_COLLECTIVES
    if "coroutine" in text:
        return Lab12Hint.NOT_AWAITED.says(error=sentence(text))
    if "concatenat" in text or "must match exactly" in text:
        return Lab12Hint.ROWS_DO_NOT_FIT
    if isinstance(error, MismatchError) or "broadcast" in text:
        return Lab12Hint.SHAPES_DIFFER
    if "matmul" in text:
        return Lab12Hint.FACTORS_DO_NOT_FIT.says(error=sentence(text))
    return first_sentence(error) if isinstance(error, RankFailedError) else sentence(text)


def _hint_of_columns(run: SplitRun, part: int) -> AnyHint | None:
    if run.is_right(part):
        return None
    arrays = _arrays(run, part)
    if not isinstance(arrays, list):
        return arrays
    network, expected = run.network, run.expected[part]
    n, ranks = network.sizes.examples, network.sizes.ranks
    for array, units in zip(arrays, network.units(), strict=True):
        if array.shape == expected.shape:
            continue
        if equal(array, expected[:, units]):
            return Lab12Hint.OWN_COLUMNS
        if array.shape == (ranks * n, len(units)):
            return Lab12Hint.GATHERED_ROWS
        if array.shape == (n, len(units)):
            return Lab12Hint.ADDED_COLUMNS
        if array.shape == expected.T.shape:
            return Lab12Hint.TRANSPOSED
        return Lab12Hint.SHAPE.says(shape=array.shape, expected=expected.shape)
    if hint := _hint_of_mistake(arrays, run, part, _mistaken_columns(network)):
        return hint
    is_sorted_alike = equal(np.sort(arrays[0], axis=1), np.sort(expected, axis=1))
    return Lab12Hint.WRONG_ORDER if is_sorted_alike else Lab12Hint.NUMBERS_OTHERWISE


def _hint_of_rows(run: SplitRun, part: int) -> AnyHint | None:
    return _hint_of_sums(run, part, _mistaken_sums(run.network))


def _hint_of_outputs(run: SplitRun, part: int) -> AnyHint | None:
    return _hint_of_sums(run, part, _mistaken_outputs(run.network))


def _hint_of_gradient(run: SplitRun, part: int) -> AnyHint | None:
    sizes = run.network.sizes
    array = numbers(run.results[0][part])
    widths = {sizes.hidden, len(run.network.units()[0])} - {sizes.inputs}
    if not run.is_right(part) and array is not None and array.ndim == 2 and array.shape[1] in widths:
        return Lab12Hint.GRADIENT_OF_HIDDEN
    return _hint_of_sums(run, part, _mistaken_gradients(run.network))


def _hint_of_sums(run: SplitRun, part: int, mistakes: Mistakes) -> AnyHint | None:
    if run.is_right(part):
        return None
    arrays = _arrays(run, part)
    if not isinstance(arrays, list):
        return arrays
    expected, ranks = run.expected[part], run.network.sizes.ranks
    rows, columns = expected.shape
    for array in arrays:
        if array.shape == expected.shape:
            continue
        if array.shape in ((ranks * rows, columns), (rows, ranks * columns)):
            return Lab12Hint.PARTS_PUT_TOGETHER
        if array.ndim == 2 and array.shape[1] == columns and array.shape[0] < rows:
            return Lab12Hint.SOME_ROWS
        return Lab12Hint.SHAPE.says(shape=array.shape, expected=expected.shape)
    return _hint_of_mistake(arrays, run, part, mistakes) or Lab12Hint.NUMBERS_OTHERWISE


def _hint_of_bytes(run: SplitRun, allowed: int) -> AnyHint | None:
    """Why more bytes travel than must; None if not more do."""
    sent, sizes = run.largest_bytes_sent, run.network.sizes
    if sent <= allowed:
        return None
    too_many = Lab12Hint.TOO_MANY_BYTES.says(case=run.circumstances, sent=sent, allowed=allowed)
    if len(run.expected) == 2:
        travels_too = (sent - allowed) / gathered(sizes.ranks, sizes.examples, sizes.hidden) in (1, 2)
        return too_many.then(Lab12Hint.HIDDEN_TRAVELS if travels_too else Lab12Hint.MORE_THAN_TWO_SUMS)
    if run.expected[0].shape[1] == sizes.hidden:  # split by columns
        if sent >= gathered(sizes.ranks, sizes.inputs, sizes.hidden):
            return too_many.then(Lab12Hint.WEIGHTS_TRAVEL)
        if sent >= reduced(sizes.ranks, sizes.examples, sizes.hidden):
            return too_many.then(Lab12Hint.ZEROS_ADDED)
    elif sent >= gathered(sizes.ranks, sizes.examples + sizes.outputs, sizes.hidden):
        return too_many.then(Lab12Hint.WEIGHTS_AND_INPUTS_TRAVEL)
    elif sent >= (sizes.ranks - 1) * sizes.examples * sizes.outputs * ELEMENT:
        return too_many.then(Lab12Hint.WHOLE_ARRAYS_TRAVEL)
    return too_many.then(Lab12Hint.BYTES_OTHERWISE)


def _arrays(run: SplitRun, part: int) -> list[Array] | AnyHint:
    """This part of what each rank returned; a hint if it is not an array of numbers everywhere."""
    results = [result[part] for result in run.results]
    if len(run.expected) > 1 and all(result is None for result in results):
        return Lab12Hint.NO_PAIR
    arrays = []
    for rank, result in enumerate(results):
        array = numbers(result)
        if result is None:
            return Lab12Hint.RANK_GIVES_NONE.says(rank=rank)
        if array is None:
            return Lab12Hint.RANK_GIVES_NO_NUMBERS.says(rank=rank, shape=run.expected[part].shape)
        arrays.append(array)
    return arrays


def _hint_of_mistake(arrays: Sequence[Array], run: SplitRun, part: int, mistakes: Mistakes) -> AnyHint | None:
    if equal(arrays[0], run.expected[part]):
        return Lab12Hint.ONLY_RANK_0
    for mistaken, hint in mistakes:
        if all(equal(array, mistaken(units)) for array, units in zip(arrays, run.network.units(), strict=True)):
            return hint
    return None


def _mistaken_columns(network: Undivided) -> Mistakes:
    expected = network.before_relu

    def padded(units: Units) -> Array:
        alone = np.zeros_like(expected)
        alone[:, units] = expected[:, units]
        return alone

    yield lambda units: expected - network.first_bias, Lab12Hint.BIAS_MISSING
    yield lambda units: np.maximum(expected, 0), Lab12Hint.NO_RELU_HERE
    yield padded, Lab12Hint.PADDED


def _mistaken_sums(network: Undivided) -> Mistakes:
    bias, ranks, expected = network.second_bias, network.sizes.ranks, network.outputs

    def own(units: Units) -> Array:
        return np.asarray(network.hidden[:, units] @ network.second[units])

    mean = Lab12Hint.MEAN.says(ranks=ranks)
    yield own, Lab12Hint.OWN_PART
    yield lambda units: own(units) + bias, Lab12Hint.OWN_PART
    yield lambda units: expected + (ranks - 1) * bias, Lab12Hint.BIAS_MANY_TIMES.says(ranks=ranks)
    yield lambda units: expected - bias, Lab12Hint.BIAS_MISSING
    yield lambda units: (expected - bias) / ranks + bias, mean
    yield lambda units: (expected + (ranks - 1) * bias) / ranks, mean
    yield lambda units: expected / ranks, mean
    yield lambda units: np.maximum(expected, 0), Lab12Hint.NO_RELU_HERE


def _mistaken_outputs(network: Undivided) -> Mistakes:
    yield from _mistaken_sums(network)
    linear, second, bias, ranks = network.before_relu, network.second, network.second_bias, network.sizes.ranks
    without_bias = np.maximum(linear - network.first_bias, 0)
    bias_many_times = Lab12Hint.BIAS_MANY_TIMES.says(ranks=ranks)
    yield lambda units: linear @ second + bias, Lab12Hint.RELU_MISSING
    yield lambda units: np.maximum(linear @ second + bias, 0), Lab12Hint.RELU_AFTER_SUM
    yield lambda units: np.maximum(linear @ second, 0) + bias, Lab12Hint.RELU_AFTER_SUM
    yield lambda units: linear @ second + ranks * bias, Lab12Hint.RELU_MISSING.says().then(bias_many_times)
    yield lambda units: without_bias @ second + bias, Lab12Hint.FIRST_BIAS_MISSING


def _mistaken_gradients(network: Undivided) -> Mistakes:
    is_on, ranks, expected = network.before_relu > 0, network.sizes.ranks, network.by_inputs
    by_hidden, first = network.by_outputs @ network.second.T, network.first
    yield lambda units: (by_hidden * is_on)[:, units] @ first[:, units].T, Lab12Hint.OWN_GRADIENT
    yield lambda units: by_hidden @ first.T, Lab12Hint.PAST_RELU
    yield lambda units: by_hidden[:, units] @ first[:, units].T, Lab12Hint.OWN_GRADIENT_PAST_RELU
    yield lambda units: by_hidden * network.hidden @ first.T, Lab12Hint.TIMES_HIDDEN
    yield lambda units: expected / ranks, Lab12Hint.MEAN_OF_GRADIENTS.says(ranks=ranks)
    yield lambda units: ranks * expected, Lab12Hint.WHOLE_ADDED_UP.says(ranks=ranks)
