"""The judges of lab 12's split layers: result, then the bytes that travel."""

from collections.abc import Callable, Sequence

import numpy as np

from distlab.labs.answer import Answer
from distlab.labs.lab_12.split_layer_hints import (
    hint_of_bytes,
    hint_of_columns,
    hint_of_error,
    hint_of_gradient,
    hint_of_outputs,
    hint_of_sums,
)
from distlab.labs.lab_12.split_layers import BY_COLUMNS, BY_ROWS, TWO_LAYERS, Sizes, Split, SplitRun, attempt, drawn
from distlab.labs.verdict import Verdict, not_done, parts, right, wrong

EVEN = (Sizes(4, 4, 12, 20, 4), Sizes(2, 4, 6, 8, 3))
UNEVEN = (Sizes(3, 4, 9, 16, 5), Sizes(1, 3, 5, 4, 2), Sizes(5, 3, 6, 3, 2))

HintOf = Callable[[SplitRun, int], str | None]


def judge_by_columns(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points for units that the ranks divide, a quarter for any, half for the bytes."""
    return _judged_layer(BY_COLUMNS, hint_of_columns, answer, generator)


def judge_by_rows(answer: Answer, generator: np.random.Generator) -> Verdict:
    """The same."""
    return _judged_layer(BY_ROWS, hint_of_sums, answer, generator)


def judge_two_layers(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A third of the points each for the outputs, the gradient of the inputs, and the bytes if both are right."""
    hints: dict[str, Verdict] = {}
    done = []
    for sizes in _cases(generator):
        one = attempt(answer, TWO_LAYERS, drawn(generator, sizes))
        if one.error is not None:
            return wrong(f"{one.circumstances}: {hint_of_error(one.error)}")
        for part, (name, hint_of) in enumerate((("outputs", hint_of_outputs), ("gradient", hint_of_gradient))):
            if name not in hints and (hint := hint_of(one, part)):
                hints[name] = wrong(f"{one.circumstances}: {hint}")
        done.append(one)
    if hints:
        hints["bytes"] = not_done("both results must be right first")
    elif hint := _first_hint_of_bytes(TWO_LAYERS, done):
        hints["bytes"] = wrong(hint)
    if hints:
        return parts({name: hints.get(name, right()) for name in ("outputs", "gradient", "bytes")})
    return right(_reached(done))


def _judged_layer(split: Split, hint_of: HintOf, answer: Answer, generator: np.random.Generator) -> Verdict:
    done: list[SplitRun] = []
    for sizes in _cases(generator):
        one = attempt(answer, split, drawn(generator, sizes))
        hint = hint_of_error(one.error) if one.error is not None else hint_of(one, 0)
        if hint:
            return wrong(_placed(hint, one, done), 0.25 if len(done) >= len(EVEN) else 0.0)
        done.append(one)
    if hint := _first_hint_of_bytes(split, done):
        return wrong(f"The result is right. {hint}", 0.5)
    return right(_reached(done))


def _cases(generator: np.random.Generator) -> list[Sizes]:
    def any_sizes() -> Sizes:
        ranks, examples, inputs, hidden, outputs = generator.integers([2, 1, 2, 2, 1], [7, 6, 12, 20, 7])
        return Sizes(int(ranks), int(examples), int(inputs), int(hidden), int(outputs))

    return [*EVEN, *UNEVEN, any_sizes(), any_sizes()]


def _placed(hint: str, one: SplitRun, done: Sequence[SplitRun]) -> str:
    sizes = one.network.sizes
    if not done:
        return f"With {one.circumstances}: {hint}"
    if sizes.hidden < sizes.ranks:
        return f"Right as long as every rank has a unit; wrong with {one.circumstances}. {hint}"
    if sizes.hidden % sizes.ranks and all(past.network.sizes.hidden % past.network.sizes.ranks == 0 for past in done):
        return f"Right as long as all ranks have equally many units; wrong with {one.circumstances}. {hint}"
    return f"Right in {len(done)} cases; wrong with {one.circumstances}. {hint}"


def _first_hint_of_bytes(split: Split, done: Sequence[SplitRun]) -> str | None:
    hints = (hint_of_bytes(one, split.bytes_at_most(one.network.sizes)) for one in done)
    return next(filter(None, hints), None)


def _reached(done: Sequence[SplitRun]) -> str:
    sizes = [one.network.sizes.ranks for one in done]
    first = done[0]
    return (
        f"{len(done)} runs on {min(sizes)} to {max(sizes)} ranks are right; with {first.circumstances} a rank sends "
        f"{first.largest_bytes_sent} bytes."
    )
