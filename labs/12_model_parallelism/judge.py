"""The judge of lab 12: layers split by columns and by rows; `schedules` has the exercises on pipelines.

Each exercise is its right program, the cases, and the mistakes that are recognised.
"""

from collections.abc import Callable, Mapping, Sequence
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
    judge_table,
    plan,
    told,
)

from distlab import costs
from distlab.collectives import all_gather, ring_all_reduce
from distlab.labs import Answer, Exercise, Lab
from distlab.labs.answer_errors import first_sentence, sentence
from distlab.labs.by_programs import ByPrograms, Mistake, Program, by_changes, changed
from distlab.labs.number_judge import counted
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
        return f"{counted(self.ranks, 'rank')}, {self.hidden} units"


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
    return first_sentence(error)


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


def judge_layers(program: Program, *known: Mistake) -> ByPrograms:
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
        mistakes=known,
    )


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


async def on_rank_0(rank: Rank, part: Array) -> Array:
    """Only one rank gets the sum."""
    if rank.index:
        await rank.send(0, part)
        return part
    return part + sum([await rank.receive(source) for source in range(1, rank.size)])


def many_times(case: Layers, seen: Any) -> str:
    """The hint for a bias that all ranks add."""
    return f"The bias is in the sum {case.ranks} times. How many ranks add it?"


KNOWN = {each.__name__: each for each in (all_gather, ring_all_reduce, padded, of_arrival, on_rank_0)}
"""What the programs call."""
BY_COLUMNS = """\
async def by_columns(rank, layer):
    inputs, columns, bias = layer
    own = inputs @ columns + bias
    rows = await all_gather(rank, own.T)
    return rows.T
"""
GATHER = "await all_gather(rank, own.T)"
WRONG_COLUMNS = {
    "Each rank returns the columns of its own units only; the outputs of all units are asked for.": (
        [[(GATHER, "own.T")]]
    ),
    "The ranks' outputs are one below the other. They belong to the same examples and to different units: what is a "
    "row, and what is a column?": [[("own.T", "own"), ("rows.T", "rows")]],
    "This adds up columns of different ranks, which belong to different units. Which of the two collectives adds, and "
    "which puts together?": [[(GATHER, "await ring_all_reduce(rank, own)"), ("rows.T", "rows")]],
    "The outputs are transposed: a row for each unit. A row for each example is asked for.": [[("rows.T", "rows")]],
    "The bias is missing.": [[(" + bias", "")]],
    "There is no ReLU in this layer.": [[("rows.T", "np.maximum(rows.T, 0)")]],
    "All columns are there, but not in the order of the ranks.": [[(GATHER, "(await of_arrival(rank, own)).T")]],
}
LONG_COLUMNS = {
    told("The weights travel. What could travel instead?"): [
        [
            (
                "inputs @ columns + bias",
                "inputs @ (await all_gather(rank, columns.T)).T + await all_gather(rank, bias)",
            ),
            (GATHER, "own.T"),
        ]
    ],
    told("An all-reduce adds up arrays that are mostly zeros: there is nothing to add here."): [
        [(GATHER, "(await padded(rank, own)).T")]
    ],
}
SIDE_BY_SIDE = changed(
    BY_COLUMNS, ("own.T", "own"), ("rows.T", "np.concatenate(np.split(rows, rank.size), axis=1)"), **KNOWN
)
BY_ROWS = """\
async def by_rows(rank, layer):
    inputs, rows, bias = layer
    total = await ring_all_reduce(rank, inputs @ rows)
    return total + bias
"""
SUM = "await ring_all_reduce(rank, inputs @ rows)"
WRONG_ROWS = {
    "Each rank returns its own part of the sums: it has some of the units, and a sum goes over all of them.": (
        [[(SUM, "inputs @ rows")]]
    ),
    many_times: [[("inputs @ rows", "inputs @ rows + bias"), ("total + bias", "total")]],
    "The bias is missing.": [[(" + bias", "")]],
    "The ranks' arrays are put together, but each has a part of *every* sum. What must happen to the parts of a sum?": (
        [[("ring_all_reduce", "all_gather")]]
    ),
    lambda case, seen: (
        f"The sum is divided by {case.ranks}. The ranks have parts of one sum, not {case.ranks} estimates of it."
    ): [[("total + bias", "total / rank.size + bias")]],
    "There is no ReLU in this layer.": [[("total + bias", "np.maximum(total + bias, 0)")]],
    "Only rank 0 returns what is asked for. Which rank needs it?": [
        [("ring_all_reduce", "on_rank_0"), ("total + bias", "total + bias * (rank.index == 0)")]
    ],
    "A rank returns some rows of the sum only; it is asked for all of them.": [
        [("total + bias", "np.array_split(total + bias, rank.size)[rank.index]")]
    ],
}
LONG_ROWS = {
    told("Weights and inputs travel. What is left to do if every rank does its own part of each sum?"): [
        [(SUM, "(await all_gather(rank, inputs.T)).T @ await all_gather(rank, rows)")]
    ],
    told("Whole arrays go from rank to rank. What does an all-reduce on a ring send?"): [
        [(SUM, "(await all_gather(rank, (inputs @ rows)[None])).sum(axis=0)")]
    ],
}
TWO_LAYERS = """\
async def two_layers(rank, network):
    inputs, columns, first_bias, rows, bias, by_outputs = network
    before = inputs @ columns + first_bias
    hidden = np.maximum(before, 0)
    outputs = await ring_all_reduce(rank, hidden @ rows) + bias
    by_hidden = by_outputs @ rows.T * (before > 0)
    by_inputs = await ring_all_reduce(rank, by_hidden @ columns.T)
    return outputs, by_inputs
"""
NO_RELU, PAST = ("np.maximum(before, 0)", "before"), (" * (before > 0)", "")
BY_INPUTS = "await ring_all_reduce(rank, by_hidden @ columns.T)"
OWN = (BY_INPUTS, "by_hidden @ columns.T")
WRONG_LAYERS = {
    OUTPUTS: {
        "The ReLU is missing between the layers.": [[NO_RELU]],
        "The ReLU belongs between the layers, not after them.": (
            [[NO_RELU, ("return outputs", "return np.maximum(outputs, 0)")]]
        ),
        many_times: [[("hidden @ rows) + bias", "hidden @ rows + bias)")]],
        "The first layer's bias is missing.": [[("np.maximum(before, 0)", "np.maximum(inputs @ columns, 0)")]],
    },
    GRADIENT: {
        "Each rank returns the part of its own units. On which units does an input act?": [[OWN]],
        "The gradient goes past the ReLU. What does it do to units that were 0?": [[PAST]],
        "The gradient goes past the ReLU, and each rank returns the part of its own units only.": [[PAST, OWN]],
        "The gradient is multiplied by the hidden units. What is the derivative of a ReLU?": (
            [[("(before > 0)", "hidden")]]
        ),
        "That is a gradient of the hidden layer. One more product leads to the inputs.": [
            [(BY_INPUTS, "(await all_gather(rank, by_hidden.T)).T")]
        ],
        (lambda case, _: f"The sum is divided by {case.ranks}, but the ranks have parts of one gradient."): [
            [(BY_INPUTS, f"{BY_INPUTS} / rank.size")]
        ],
        (lambda case, _: f"It is {case.ranks} times the gradient: something that every rank has whole is added up."): [
            [(BY_INPUTS, f"await ring_all_reduce(rank, {BY_INPUTS})")]
        ],
    },
    BYTES: {
        told("The hidden layer travels, too. Which units does a rank need for its own rows?"): [
            [("    outputs", "    await all_gather(rank, hidden.T)\n    outputs")]
        ],
        told("Two arrays must be added up over the ranks, one forward and one backward. What else travels?"): [
            [(BY_INPUTS, f"await ring_all_reduce(rank, {BY_INPUTS} / rank.size)")]
        ],
    },
}
SWAPPED = {
    "The pair is the other way round: first the outputs, then the gradient of the inputs.": [
        [("return outputs, by_inputs", "return by_inputs, outputs")]
    ],
}
two_layers = changed(TWO_LAYERS, **KNOWN)

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
            judge_layers(
                changed(BY_COLUMNS, **KNOWN),
                Mistake({ANY: ROWS_DO_NOT_FIT}, SIDE_BY_SIDE),
                *by_changes(BY_COLUMNS, WRONG_COLUMNS, (EQUAL, ANY), **KNOWN),
                *by_changes(BY_COLUMNS, LONG_COLUMNS, (BYTES,), **KNOWN),
            ),
        ),
        Exercise(
            "by_rows",
            4,
            judge_layers(
                changed(BY_ROWS, **KNOWN),
                *by_changes(BY_ROWS, WRONG_ROWS, (EQUAL, ANY), **KNOWN),
                *by_changes(BY_ROWS, LONG_ROWS, (BYTES,), **KNOWN),
            ),
        ),
        Exercise(
            "two_layers",
            6,
            judge_layers(
                two_layers,
                *(
                    each
                    for part, table in WRONG_LAYERS.items()
                    for each in by_changes(TWO_LAYERS, table, (part,), **KNOWN)
                ),
                *by_changes(TWO_LAYERS, SWAPPED, (OUTPUTS, GRADIENT), **KNOWN),
            ),
        ),
    ],
    solved_in=["distlab.model_parallel"],
    target=target,
)
