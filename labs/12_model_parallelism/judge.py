"""The judge of lab 12: layers split by columns and by rows; `schedules` has the exercises on pipelines.

Each exercise is its right program, the cases, and the mistakes that are recognised.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from lab_12.schedules import (
    EXAMPLE,
    FEWEST,
    MICRO_BATCHES,
    ORDER,
    PLAN_OF_BATCH,
    SECONDS_OF_PASS,
    STAGES,
    Seen,
    counted,
    judge_table,
    plan,
    told,
)

from distlab import costs
from distlab.collectives import all_gather, ring_all_reduce
from distlab.labs import Answer, Exercise, Lab
from distlab.labs.answer_errors import first_sentence, sentence
from distlab.labs.by_programs import ByPrograms, Mistake, Program
from distlab.labs.plain_data import Array, Plain
from distlab.model_parallel import pipelines
from distlab.simulate import DeadlockError, Rank, SimulationError, UnreceivedMessageError, World

# Split layers --------------------------------------------------------------------------------------------------------

ELEMENT = 8
EQUAL, ANY, BYTES = ("equally many units", "any units", "bytes")
OUTPUTS, GRADIENT = "outputs", "gradient"
EVEN = ((4, 4, 12, 20, 4), (2, 4, 6, 8, 3))
UNEVEN = ((3, 4, 9, 16, 5), (1, 3, 5, 4, 2), (5, 3, 6, 3, 2))


class Layers(NamedTuple):
    """Ranks, examples, the units of the layers, and what each rank has of them."""

    ranks: int
    examples: int
    inputs: int
    hidden: int
    outputs: int
    own: Sequence[tuple[Array, ...]] = ()

    def gathered(self, rows: int, columns: int) -> int:
        """The bytes that the rank that sends most sends in a ring all-gather of (rows, columns), cut by columns."""
        longest = rows * -(-columns // self.ranks) * ELEMENT
        return int(costs.all_gather_ring(self.ranks, self.ranks * longest).largest_bytes_sent)

    def reduced(self, columns: int) -> int:
        """The same of a ring all-reduce of a row for each example, cut into whole rows."""
        longest = -(-self.examples // self.ranks) * columns * ELEMENT
        return int(costs.all_reduce("ring", self.ranks, self.ranks * longest).largest_bytes_sent)

    def most_bytes(self, name: str) -> int:
        """What an exercise's program may send."""
        if name == "by_columns":
            return self.gathered(self.examples, self.hidden)
        return self.reduced(self.outputs) + (self.reduced(self.inputs) if name == "two_layers" else 0)

    def __str__(self) -> str:
        return f"{counted(self.ranks, 'rank', 'ranks')}, {self.hidden} units"


def drawn_layers(name: str, generator: np.random.Generator, sizes: Sequence[int]) -> Layers:
    """Layers with inputs, weights and biases that are no whole numbers, divided among the ranks."""
    ranks, examples, inputs, hidden, outputs = sizes
    shapes = ((examples, inputs), (inputs, hidden), hidden, (hidden, outputs), outputs, (examples, outputs))
    whole, first, first_bias, second, second_bias, by_outputs = map(generator.normal, [0] * 6, [1] * 6, shapes)
    own = []
    for units in np.array_split(np.arange(hidden), ranks):
        columns, rows = first[:, units], second[units]
        of_units = np.maximum(whole @ columns + first_bias[units], 0)
        own.append(
            {
                "by_columns": (whole, columns, first_bias[units]),
                "by_rows": (of_units, rows, second_bias),
                "two_layers": (whole, columns, first_bias[units], rows, second_bias, by_outputs),
            }[name]
        )
    return Layers(ranks, examples, inputs, hidden, outputs, own)


def layers(name: str, generator: np.random.Generator) -> list[Layers]:
    """Units that the ranks divide, units that they do not, and drawn ones."""
    drawn = [generator.integers([2, 1, 2, 2, 1], [7, 6, 12, 20, 7]).tolist() for _ in range(2)]
    return [drawn_layers(name, generator, sizes) for sizes in (*EVEN, *UNEVEN, *drawn)]


def observe_layers(name: str, answer: Answer, case: Layers) -> tuple[Sequence[Plain] | SimulationError, int]:
    """What each rank returns, or why the run could not go on; the bytes of the rank that sends most."""
    try:
        run = answer.run(name, World(case.ranks), case.own)
    except SimulationError as error:
        return error, 0
    return run.results, int(run.bytes_sent_by_rank.max())


def split_layers(name: str, case: Layers, seen: tuple[Any, int]) -> Mapping[str, Any]:
    """The results by part of the exercise, and the bytes that are too many, or fewer than it can be done with."""
    results, sent = seen
    most = case.most_bytes(name)
    is_even = tuple(case[:5]) in EVEN
    amount = max(0, sent - most) or (min(0, sent - most) if is_even else 0)
    bytes_seen = Seen(amount, f"a rank sends {sent} bytes, and {most} are enough.")
    if isinstance(results, SimulationError):
        results = Seen(type(results).__name__, why_stopped(results))
        bytes_seen = Seen(0)
    if name != "two_layers":
        return {EQUAL if is_even else ANY: results, BYTES: bytes_seen}
    if isinstance(results, Seen):
        return {OUTPUTS: results, GRADIENT: results, BYTES: bytes_seen}
    if all(isinstance(result, (tuple, list)) and len(result) == 2 for result in results):
        results = tuple(zip(*results, strict=True))
    elif any(result is not None for result in results):
        results = (Seen("no pair", "Every rank must return a pair: the outputs, and the gradient of the inputs."),) * 2
    return {OUTPUTS: results[0], GRADIENT: results[1], BYTES: bytes_seen}


ROWS_DO_NOT_FIT = (
    "`all_gather` puts the ranks' rows one below the other, and these arrays do not fit that way. What must be next to "
    "what?"
)


def why_stopped(error: SimulationError) -> str:
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
        return ROWS_DO_NOT_FIT
    if "shape" in text and "matmul" not in text:
        return (
            "Arrays of different shapes cannot be added to each other. Look at the shapes on two ranks: do the same "
            "places belong to the same units?"
        )
    return (
        f"{sentence(text)} Write the shapes of both factors next to it." if "matmul" in text else first_sentence(error)
    )


def hint_of_layer(case: Layers, seen: Any, columns: int) -> str:
    """What is wrong with results where no mistake is recognised: why the run stopped, the shape, or the numbers."""
    if isinstance(seen, Seen):
        return seen.text
    for rank, result in enumerate(seen):
        expected = (case.examples, columns)
        if not isinstance(result, np.ndarray) or result.dtype.kind not in "iuf":
            return (
                f"Rank {rank} returns no array of numbers; an array of shape {expected} is asked for. Does it reach a "
                "`return`?"
            )
        if result.shape != expected:
            return f"The shape is {result.shape}, and {expected} is asked for: examples × units."
    return "The numbers are wrong. Try two ranks, two examples and two units by hand. Are they computed in float64?"


def hint_of_bytes(case: Layers, seen: Seen) -> str:
    """More bytes than must travel, or fewer."""
    if seen.what < 0:
        return f"{seen.text} Fewer cannot bring the result in float64: what a rank needs must come in messages."
    return f"{seen.text} What travels more often, or further, than it must?"


def judge_layers(program: Program, mistakes: Sequence[Mistake]) -> ByPrograms:
    """The judge of a split layer."""
    name = program.__name__
    is_one = name != "two_layers"
    results = (EQUAL, ANY) if is_one else (OUTPUTS, GRADIENT)
    columns = {OUTPUTS: lambda case: case.outputs, GRADIENT: lambda case: case.inputs}
    of_one = (lambda case: case.hidden) if name == "by_columns" else columns[OUTPUTS]

    def otherwise(part: str) -> Callable[[Layers, Any], str]:
        return lambda case, seen: hint_of_layer(case, seen, columns.get(part, of_one)(case))

    return ByPrograms(
        program,
        partial(layers, name),
        said=lambda case: f"with {case}",
        parts=(*results, BYTES),
        split=partial(split_layers, name),
        weights={EQUAL: 1, ANY: 1, BYTES: 2} if is_one else None,
        after={ANY: [EQUAL], BYTES: [EQUAL, ANY]} if is_one else {BYTES: results},
        tolerance=1e-9,
        observe=partial(observe_layers, name),
        otherwise={part: otherwise(part) for part in results} | {BYTES: hint_of_bytes},
        praise=lambda cases: (
            f"{len(cases)} runs on 1 to {max(case.ranks for case in cases)} ranks are right; with {cases[0]} a rank "
            f"sends {cases[0].most_bytes(name)} bytes."
        ),
        mistakes=mistakes,
    )


def of_layer(part: Callable[..., Any]) -> Program:
    """A program from the coroutine that `part(rank, …)` gives for the parts of a layer."""
    return lambda rank, layer: part(rank, *layer)


def mistakes_of(results: Mapping[Any, Callable[..., Any]], travels: Mapping[str, Callable[..., Any]]) -> list[Mistake]:
    """Mistakes in the results of a layer, and what travels without need, by hint."""
    wrong_ones = [Mistake({EQUAL: hint, ANY: hint}, of_layer(part)) for hint, part in results.items()]
    return wrong_ones + [Mistake({BYTES: told(question)}, of_layer(part)) for question, part in travels.items()]


async def after(result: Awaitable[Any], change: Callable[[Any], Any]) -> Any:
    """What is made of a collective's result."""
    return change(await result)


async def itself(array: Array) -> Array:
    """What needs no collective."""
    return array


async def by_columns(rank: Rank, layer: tuple[Array, ...]) -> Array:
    """The units of all ranks, gathered as rows."""
    inputs, columns, bias = layer
    return (await all_gather(rank, (inputs @ columns + bias).T)).T


async def padded(rank: Rank, own: Array) -> Array:
    """Zeros in the place of the other ranks' units, added up."""
    widths = await all_gather(rank, np.array([own.shape[1]]))
    whole, start = np.zeros((len(own), widths.sum())), widths[: rank.index].sum()
    whole[:, start : start + own.shape[1]] = own
    return await ring_all_reduce(rank, whole)


async def of_arrival(rank: Rank, own: Array) -> Array:
    """The other ranks' units in the order in which they come round a ring."""
    came = [own]
    for _ in range(rank.size - 1):
        came.append(await rank.exchange((rank.index + 1) % rank.size, came[-1], (rank.index - 1) % rank.size))
    return np.concatenate(came[1:] + came[:1], axis=1)


async def side_by_side(rank: Rank, x: Array, w: Array, b: Array) -> Array:
    """The rows of all ranks, put side by side as if all were as wide."""
    return np.concatenate(np.split(await all_gather(rank, x @ w + b), rank.size), axis=1)


async def gathered_weights(rank: Rank, x: Array, w: Array, b: Array) -> Array:
    """Weights travel instead of outputs."""
    return x @ (await all_gather(rank, w.T)).T + await all_gather(rank, b)


BELOW = (
    "The ranks' outputs are one below the other. They belong to the same examples and to different units: what is a "
    "row, and what is a column?"
)
ADDS_UP = (
    "This adds up columns of different ranks, which belong to different units. Which of the two collectives adds, and "
    "which puts together?"
)
TOGETHER = (
    "The ranks' arrays are put together, but each has a part of *every* sum. What must happen to the parts of a sum?"
)
BY_COLUMNS = mistakes_of(
    {
        "Each rank returns the columns of its own units only; the outputs of all units are asked for.": (
            lambda rank, x, w, b: itself(x @ w + b)
        ),
        BELOW: lambda rank, x, w, b: all_gather(rank, x @ w + b),
        ADDS_UP: lambda rank, x, w, b: ring_all_reduce(rank, x @ w + b),
        "The outputs are transposed: a row for each unit. A row for each example is asked for.": (
            lambda rank, x, w, b: all_gather(rank, (x @ w + b).T)
        ),
        "The bias is missing.": lambda rank, x, w, b: after(all_gather(rank, (x @ w).T), np.transpose),
        "There is no ReLU in this layer.": lambda rank, x, w, b: after(
            all_gather(rank, (x @ w + b).T), lambda rows: np.maximum(rows.T, 0)
        ),
        "All columns are there, but not in the order of the ranks.": (
            lambda rank, x, w, b: of_arrival(rank, x @ w + b)
        ),
    },
    {
        "The weights travel. What could travel instead?": gathered_weights,
        "An all-reduce adds up arrays that are mostly zeros: there is nothing to add here.": (
            lambda rank, x, w, b: padded(rank, x @ w + b)
        ),
    },
)


async def by_rows(rank: Rank, layer: tuple[Array, ...]) -> Array:
    """The sum of the ranks' parts, and the bias once."""
    inputs, rows, bias = layer
    return await ring_all_reduce(rank, inputs @ rows) + bias


async def on_rank_0(rank: Rank, x: Array, w: Array, b: Array) -> Array:
    """Only one rank gets the sum."""
    if rank.index:
        await rank.send(0, x @ w)
        return x @ w
    return x @ w + sum([await rank.receive(source) for source in range(1, rank.size)]) + b


async def gathered_weights_and_inputs(rank: Rank, x: Array, w: Array, b: Array) -> Array:
    """Nothing is left of the split."""
    return (await all_gather(rank, x.T)).T @ await all_gather(rank, w) + b


def many_times(case: Layers, seen: Any) -> str:
    """The hint for a bias that all ranks add."""
    return f"The bias is in the sum {case.ranks} times. How many ranks add it?"


def mean(case: Layers, seen: Any) -> str:
    """The hint for a sum that is divided."""
    return f"The sum is divided by {case.ranks}. The ranks have parts of one sum, not {case.ranks} estimates of it."


BY_ROWS = mistakes_of(
    {
        "Each rank returns its own part of the sums: it has some of the units, and a sum goes over all of them.": (
            lambda rank, x, w, b: itself(x @ w + b)
        ),
        many_times: lambda rank, x, w, b: ring_all_reduce(rank, x @ w + b),
        "The bias is missing.": lambda rank, x, w, b: ring_all_reduce(rank, x @ w),
        TOGETHER: lambda rank, x, w, b: after(all_gather(rank, x @ w), lambda rows: rows + b),
        mean: lambda rank, x, w, b: after(ring_all_reduce(rank, x @ w), lambda total: total / rank.size + b),
        "There is no ReLU in this layer.": lambda rank, x, w, b: after(
            ring_all_reduce(rank, x @ w), lambda total: np.maximum(total + b, 0)
        ),
        "Only rank 0 returns what is asked for. Which rank needs it?": on_rank_0,
        "A rank returns some rows of the sum only; it is asked for all of them.": lambda rank, x, w, b: after(
            ring_all_reduce(rank, x @ w), lambda total: np.array_split(total + b, rank.size)[rank.index]
        ),
    },
    {
        "Weights and inputs travel. What is left to do if every rank does its own part of each sum?": (
            gathered_weights_and_inputs
        ),
        "Whole arrays go from rank to rank. What does an all-reduce on a ring send?": lambda rank, x, w, b: after(
            all_gather(rank, (x @ w)[None]), lambda parts: parts.sum(axis=0) + b
        ),
    },
)


def two_layers_but(
    between: bool = True,
    behind: bool = False,
    first_bias: bool = True,
    everywhere: bool = False,
    slope: Callable[[Array], Any] = lambda before: before > 0,
    gradient: Callable[..., Awaitable[Any]] = lambda rank, by_hidden, w: ring_all_reduce(rank, by_hidden @ w.T),
    gathers_hidden: bool = False,
) -> Program:
    """Two layers with a part of them computed in another way; `gradient` is of the hidden units' gradient."""

    async def two_layers(rank: Rank, network: tuple[Array, ...]) -> tuple[Array, Array]:
        inputs, columns, own_bias, rows, bias, by_outputs = network
        before = inputs @ columns + own_bias * first_bias
        hidden = np.maximum(before, 0) if between else before
        if gathers_hidden:
            await all_gather(rank, hidden.T)
        outputs = await ring_all_reduce(rank, hidden @ rows + bias * everywhere) + bias * (not everywhere)
        by_hidden = by_outputs @ rows.T * slope(inputs @ columns + own_bias)
        return np.maximum(outputs, 0) if behind else outputs, await gradient(rank, by_hidden, columns)

    return two_layers


async def added_twice(rank: Rank, by_hidden: Array, w: Array, share: bool = False) -> Array:
    """The sum is added up once more."""
    total = await ring_all_reduce(rank, by_hidden @ w.T)
    return await ring_all_reduce(rank, total / rank.size if share else total)


two_layers = two_layers_but()
PAST = {"slope": lambda before: 1}
OWN = {"gradient": lambda rank, by_hidden, w: itself(by_hidden @ w.T)}
TWO_LAYERS = {
    OUTPUTS: {
        "The ReLU is missing between the layers.": {"between": False},
        "The ReLU belongs between the layers, not after them.": {"between": False, "behind": True},
        many_times: {"everywhere": True},
        "The first layer's bias is missing.": {"first_bias": False},
    },
    GRADIENT: {
        "Each rank returns the part of its own units. On which units does an input act?": OWN,
        "The gradient goes past the ReLU. What does it do to units that were 0?": PAST,
        "The gradient goes past the ReLU, and each rank returns the part of its own units only.": PAST | OWN,
        "The gradient is multiplied by the hidden units. What is the derivative of a ReLU?": {
            "slope": lambda before: np.maximum(before, 0)
        },
        "That is a gradient of the hidden layer. One more product leads to the inputs.": {
            "gradient": lambda rank, by_hidden, w: after(all_gather(rank, by_hidden.T), np.transpose)
        },
        (lambda case, _: f"The sum is divided by {case.ranks}, but the ranks have parts of one gradient."): {
            "gradient": lambda rank, by_hidden, w: added_twice(rank, by_hidden / rank.size**2, w)
        },
        (lambda case, _: f"It is {case.ranks} times the gradient: something that every rank has whole is added up."): {
            "gradient": added_twice
        },
    },
    BYTES: {
        told("The hidden layer travels, too. Which units does a rank need for its own rows?"): {"gathers_hidden": True},
        told("Two arrays must be added up over the ranks, one forward and one backward. What else travels?"): {
            "gradient": partial(added_twice, share=True)
        },
    },
}


async def swapped(rank: Rank, network: tuple[Array, ...]) -> tuple[Array, Array]:
    """The pair the other way round."""
    outputs, by_inputs = await two_layers(rank, network)
    return by_inputs, outputs


BOTH = [
    Mistake({part: hint}, two_layers_but(**options))
    for part, table in TWO_LAYERS.items()
    for hint, options in table.items()
]
PAIR = "The pair is the other way round: first the outputs, then the gradient of the inputs."
SWAPPED = Mistake({OUTPUTS: PAIR, GRADIENT: PAIR}, swapped)

# The lab -------------------------------------------------------------------------------------------------------------


def target(name: str) -> str:
    """What an exercise's answer must reach, by the closed formulas."""
    if name == "table":
        return f"{STAGES} stages, {MICRO_BATCHES} micro-batches, each pass one slot: {FEWEST} slots"
    if name == "one_forward_one_backward":
        lines = ["stages   micro-batches   seconds   held at most, by stage"]
        for case in ((4, 8), (4, 32), (4, 2), (1, 3)):
            most = (f"{pipelines.activations_held('1f1b', *case, stage):g}" for stage in range(case[0]))
            seconds = pipelines.seconds(*case, *SECONDS_OF_PASS)
            lines.append(f"{case[0]:>6}{case[1]:>16}{seconds:>10g}   {', '.join(most)}")
        return "\n".join(lines)
    if name == "plan":
        job = EXAMPLE
        call = f"plan(stages={job.stages}, batch={job.batch}, fits={job.fits}, fixed={job.fixed}, each={job.each})"
        return "\n".join([call, *(f"    {part:15}{value:>8.4g}" for part, value in plan(*job).items())])
    _, examples, inputs, hidden, outputs = sizes = (1, 8, 24, 64, 16)
    units = {
        "by_columns": f"{inputs} inputs, {hidden} units",
        "by_rows": f"{hidden} units, {outputs} outputs",
        "two_layers": f"{inputs} inputs, {hidden} hidden units, {outputs} outputs",
    }[name]
    lines = [f"{examples} examples, {units}, numbers of {ELEMENT} bytes", "ranks   bytes sent by a rank at most"]
    lines += [f"{ranks:>5}{Layers(ranks, *sizes[1:]).most_bytes(name):>31}" for ranks in (1, 2, 4, 8)]
    return "\n".join(lines)


LAB = Lab(
    "12_model_parallelism",
    [
        Exercise("table", 4, judge_table),
        Exercise("one_forward_one_backward", 4, ORDER),
        Exercise("plan", 4, PLAN_OF_BATCH),
        Exercise(
            "by_columns",
            4,
            judge_layers(by_columns, [Mistake({ANY: ROWS_DO_NOT_FIT}, of_layer(side_by_side)), *BY_COLUMNS]),
        ),
        Exercise("by_rows", 4, judge_layers(by_rows, BY_ROWS)),
        Exercise("two_layers", 6, judge_layers(two_layers, [*BOTH, SWAPPED])),
    ],
    solved_in=["distlab.model_parallel"],
    target=target,
)
