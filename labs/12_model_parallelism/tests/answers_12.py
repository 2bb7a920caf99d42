"""Answers to lab 12 as students give them."""

import numpy as np
from lab_12.hints import Lab12Hint
from lab_12.pipeline_plan import planned

from distlab.collectives import all_gather, ring_all_reduce
from distlab.labs.number_judge import NumberHint
from tests.distlab.labs.known_wrong import LabAnswers

ANSWERS = LabAnswers()
wrong, right, wrong_value = ANSWERS.wrong, ANSWERS.right, ANSWERS.wrong_value

# The table

TABLE = """
stage 0:  F0  F1  F2  F3  ..  ..  ..  ..  B3  B2  B1  B0
stage 1:  ..  F0  F1  F2  F3  ..  ..  B3  B2  B1  B0  ..
stage 2:  ..  ..  F0  F1  F2  F3  B3  B2  B1  B0  ..  ..
"""
UNTOUCHED_TABLE = "\n".join(f"stage {stage}:  {'..  ' * 16}" for stage in range(3))
ONE_FORWARD_ONE_BACKWARD = """
stage 0 | F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3
stage 1 | .  F0 F1 .  B0 F2 B1 F3 B2 .  B3
stage 2 | .  .  F0 B0 F1 B1 F2 B2 F3 B3
"""


def table(*orders: str, waits: tuple[int, ...] = (0, 1, 2)) -> str:
    """Rows of passes, each after its waits."""
    return "\n".join(f"stage {stage}: {'.. ' * waits[stage]}{order}" for stage, order in enumerate(orders))


def one_at_a_time(groups: list[list[int]]) -> str:
    """Every group of micro-batches goes through the whole pipeline before the next."""
    rows = []
    for stage in range(3):
        words = []
        for group in groups:
            words += [".."] * stage + [f"F{number}" for number in group] + [".."] * (2 - stage) * 2
            words += [f"B{number}" for number in group] + [".."] * stage
        rows.append(" ".join(words))
    return "\n".join(rows)


FORWARDS, BACKWARDS = "F0 F1 F2 F3", "B0 B1 B2 B3"
wrong_value("table", "a_number", 12, Lab12Hint.TABLE_IS_NO_TEXT)
wrong_value("table", "two_stages", "\n".join(TABLE.split("\n")[:3]), Lab12Hint.LINES, "has 2 lines")
wrong_value(
    "table",
    "two_passes_in_a_slot",
    TABLE.replace("B1  B0", "B1B0", 1),
    Lab12Hint.NO_PASS,
    "`B1B0` is neither one pass",
    "Stage 0",
)
wrong_value("table", "forward_only", table(FORWARDS, FORWARDS, FORWARDS), Lab12Hint.NEVER_DONE, "never does B0")
wrong_value(
    "table",
    "all_stages_start_together",
    table(*[f"{FORWARDS} {BACKWARDS}"] * 3, waits=(0, 0, 0)),
    Lab12Hint.SAME_SLOT,
    "Stage 1 and stage 0 do F0 in the same slot, 0",
)
wrong_value(
    "table",
    "the_model_upside_down",
    table(*[f"{FORWARDS} .. .. .. .. {BACKWARDS}"] * 3, waits=(2, 1, 0)),
    Lab12Hint.FORWARD_TOO_EARLY,
    "Stage 1 does F0 in slot 1, stage 0 only in slot 2",
)
wrong_value(
    "table",
    "backward_in_the_forward_direction",
    table(*[f"{FORWARDS} .. {BACKWARDS}"] * 3),
    Lab12Hint.BACKWARD_TOO_EARLY,
    "Stage 0 does B0 in slot 5, stage 1 only in slot 6",
)
wrong_value(
    "table",
    "the_last_stage_goes_back_first",
    TABLE.replace("F0  F1  F2  F3  B3", "B3  F0  F1  F2  F3"),
    Lab12Hint.BACKWARD_BEFORE_FORWARD,
    "before F3",
)
wrong_value(
    "table",
    "one_micro_batch_twice",
    TABLE.replace("F3  ..  ..  ..  ..", "F3  F3  ..  ..  .."),
    Lab12Hint.DONE_AGAIN,
    "does F3 2 times",
)
wrong_value(
    "table",
    "one_micro_batch_at_a_time",
    one_at_a_time([[0], [1], [2], [3]]),
    Lab12Hint.TOO_MANY_SLOTS,
    Lab12Hint.ONE_UNDER_WAY,
    "takes 24 slots, and 12 are enough",
    share=0.5,
)
wrong_value(
    "table",
    "filled_twice",
    one_at_a_time([[0, 1], [2, 3]]),
    Lab12Hint.TOO_MANY_SLOTS,
    Lab12Hint.FILLED_AGAIN,
    "takes 16 slots",
    "After 2 micro-batches the pipeline runs empty",
    share=0.5,
)
wrong_value(
    "table",
    "everybody_waits_for_the_slowest",
    TABLE.replace("..  ..  B3", "..  ..  ..  B3").replace("F3  B3", "F3  ..  B3"),
    Lab12Hint.TOO_MANY_SLOTS,
    Lab12Hint.LATER_THAN_POSSIBLE,
    "takes 13 slots",
    share=0.5,
)
wrong_value(
    "table",
    "too_few_under_way",
    """
    F0 F1 .. .. .. B0 F2 .. .. B1 F3 .. .. B2 .. .. .. B3
    .. F0 .. .. B0 F1 .. .. B1 F2 .. .. B2 F3 .. .. B3
    .. .. F0 B0 .. .. F1 B1 .. .. F2 B2 .. .. F3 B3
    """,
    Lab12Hint.TOO_MANY_SLOTS,
    Lab12Hint.KEPT_WAITING,
    "takes 18 slots",
    share=0.5,
)
ANSWERS.right_answers["table"].append(("one_forward_one_backward", {"table": ONE_FORWARD_ONE_BACKWARD}))

# One forward, one backward

ORDER = "one_forward_one_backward"


def in_turn(ahead, micro_batches):
    """`ahead` forward passes, then one forward and one backward in turn, then the rest."""
    ahead = min(ahead, micro_batches)
    order = [f"F{number}" for number in range(ahead)]
    for number in range(ahead, micro_batches):
        order += [f"F{number}", f"B{number - ahead}"]
    return order + [f"B{number}" for number in range(micro_batches - ahead, micro_batches)]


def scheduled(stage, stages, micro_batches):
    return in_turn(stages - stage - 1, micro_batches)


@wrong(ORDER, Lab12Hint.CARRIED_OUT, Lab12Hint.HOLDS_TOO_MUCH, Lab12Hint.GPIPE, "holds 8 micro-batches", share=0.75)
def gpipe(stage, stages, micro_batches):
    return in_turn(micro_batches, micro_batches)


@wrong(ORDER, Lab12Hint.CARRIED_OUT, Lab12Hint.TOO_SLOW, Lab12Hint.ONE_AFTER_THE_OTHER, share=0.75)
def one_after_the_other(stage, stages, micro_batches):
    return in_turn(0, micro_batches)


@wrong(
    ORDER,
    Lab12Hint.CARRIED_OUT,
    Lab12Hint.TOO_SLOW,
    Lab12Hint.TOO_FEW_AHEAD,
    "Stage 0 does 3 forward passes and then waits",
    share=0.75,
)
def one_too_few_ahead(stage, stages, micro_batches):
    return in_turn(max(stages - stage - 2, 0), micro_batches)


@wrong(
    ORDER, Lab12Hint.CARRIED_OUT, Lab12Hint.HOLDS_TOO_MUCH, Lab12Hint.ONE_TOO_MANY_AHEAD, "stage 0 holds 5", share=0.75
)
def one_too_many_ahead(stage, stages, micro_batches):
    return in_turn(stages - stage, micro_batches)


@wrong(
    ORDER,
    Lab12Hint.CARRIED_OUT,
    Lab12Hint.TOO_SLOW,
    Lab12Hint.WAITS_IN_THE_MIDDLE,
    Lab12Hint.HOLDS_TOO_MUCH,
    Lab12Hint.SAME_ON_EVERY_STAGE,
    "stage 1 holds 4",
    share=0.5,
)
def as_many_ahead_everywhere(stage, stages, micro_batches):
    return in_turn(stages - 1, micro_batches)


@wrong(ORDER, Lab12Hint.CARRIED_OUT, Lab12Hint.HOLDS_TOO_MUCH, Lab12Hint.GRADIENT_WAITS, share=0.75)
def twice_as_many_ahead(stage, stages, micro_batches):
    return in_turn(2 * (stages - stage - 1), micro_batches)


@wrong(ORDER, Lab12Hint.DEADLOCK, "stage 0 wants to do B0 and waits for stage 1")
def counts_from_the_wrong_end(stage, stages, micro_batches):
    return in_turn(stage, micro_batches)


@wrong(ORDER, Lab12Hint.NO_SUCH_MICRO_BATCH, "can be carried out on", share=0.25)
def more_micro_batches_than_there_are(stage, stages, micro_batches):
    ahead = stages - stage - 1
    order = [f"F{number}" for number in range(ahead)]
    for number in range(ahead, micro_batches):
        order += [f"F{number}", f"B{number - ahead}"]
    return order + [f"B{number}" for number in range(max(micro_batches - ahead, 0), micro_batches)]


@wrong(ORDER, Lab12Hint.NO_SUCH_MICRO_BATCH, "Stage 0 does B-2", "0 to 1", share=0.25)
def without_min(stage, stages, micro_batches):
    ahead = stages - stage - 1
    order = [f"F{number}" for number in range(min(ahead, micro_batches))]
    for number in range(ahead, micro_batches):
        order += [f"F{number}", f"B{number - ahead}"]
    return order + [f"B{number}" for number in range(micro_batches - ahead, micro_batches)]


@wrong(ORDER, Lab12Hint.NEVER_DONE, "Stage 0 never does B5")
def stops_after_the_last_forward(stage, stages, micro_batches):
    ahead = min(stages - stage - 1, micro_batches)
    return scheduled(stage, stages, micro_batches)[: 2 * micro_batches - ahead]


@wrong(ORDER, Lab12Hint.BACKWARD_BEFORE_FORWARD, "Stage 3 does B0 before F0")
def backward_first(stage, stages, micro_batches):
    ahead = min(stages - stage - 1, micro_batches)
    order = [f"F{number}" for number in range(ahead)]
    for number in range(ahead, micro_batches):
        order += [f"B{number - ahead}", f"F{number}"]
    return order + [f"B{number}" for number in range(micro_batches - ahead, micro_batches)]


@wrong(ORDER, Lab12Hint.COUNTED_FROM_ONE, "Stage 0 does F8")
def counts_from_one(stage, stages, micro_batches):
    return [f"{text[0]}{int(text[1:]) + 1}" for text in scheduled(stage, stages, micro_batches)]


@wrong(ORDER, Lab12Hint.NO_ORDER)
def pairs(stage, stages, micro_batches):
    return [(text[0], int(text[1:])) for text in scheduled(stage, stages, micro_batches)]


@wrong(ORDER, Lab12Hint.DONE_AGAIN, "Stage 0 does B0 2 times")
def one_backward_twice(stage, stages, micro_batches):
    return [*scheduled(stage, stages, micro_batches), "B0"]


@wrong(ORDER, Lab12Hint.CARRIED_OUT, Lab12Hint.TOO_SLOW, Lab12Hint.WAITS_IN_THE_MIDDLE, share=0.75)
def the_youngest_goes_back_first(stage, stages, micro_batches):
    order, waiting = [], []
    for text in scheduled(stage, stages, micro_batches):
        if text[0] == "F":
            waiting.append(text[1:])
            order.append(text)
        else:
            order.append(f"B{waiting.pop()}")
    return order


@right(ORDER)
def by_counting_the_activations(stage, stages, micro_batches):
    order, forward, backward = [], 0, 0
    while backward < micro_batches:
        if forward < micro_batches and forward - backward < stages - stage:
            order.append(f"F{forward}")
            forward += 1
        else:
            order.append(f"b {backward}")
            backward += 1
    return tuple(order)


@right(ORDER)
def as_a_generator(stage, stages, micro_batches):
    yield from scheduled(stage, stages, micro_batches)


@right(ORDER)
def by_zipping(stage, stages, micro_batches):
    numbers = range(micro_batches)
    after = stages - stage
    forwards = [(max(0, number - after + 1), 0, f"F{number}") for number in numbers]
    backwards = [(number, 1, f"B{number}") for number in numbers]
    return np.array([text for _, _, text in sorted(forwards + backwards, key=lambda each: each[:2])])


# The number of micro-batches


def chosen(stages, batch, fits, fixed, each, kept=None, seconds=None, bubble=None, divide=True):
    """The plan with a part of it computed in another way; kept and seconds are functions of the number."""

    def seconds_of(count):
        return (count + stages - 1) * (fixed + batch / count * each)

    def kept_of(count):
        return min(stages, count) * batch / count

    counts = [count for count in range(1, batch + 1) if not divide or batch % count == 0]
    fitting = [count for count in counts if (kept or kept_of)(count) <= fits]
    best = min(fitting or counts, key=seconds_of)
    share = (stages - 1) / (best + stages - 1)
    return {
        "micro-batches": best,
        "seconds": seconds_of(best) if seconds is None else seconds(best),
        "bubble": share if bubble is None else bubble(best),
    }


def with_number(count, stages, batch, fixed, each):
    """Time and bubble of a number, whatever it is."""
    return {
        "micro-batches": count,
        "seconds": (count + stages - 1) * (fixed + batch / count * each),
        "bubble": (stages - 1) / (count + stages - 1),
    }


@wrong("plan", Lab12Hint.SMALLEST_BUBBLE, share=0.5)
def smallest_bubble(stages, batch, fits, fixed, each):
    return with_number(batch, stages, batch, fixed, each)


@wrong("plan", Lab12Hint.DOES_NOT_FIT, share=0.5)
def forgets_the_memory(stages, batch, fits, fixed, each):
    return chosen(stages, batch, fits, fixed, each, kept=lambda count: 0)


@wrong("plan", Lab12Hint.FEWEST_THAT_FIT, share=0.5)
def fewest_that_fit(stages, batch, fits, fixed, each):
    counts = [
        count for count in range(1, batch + 1) if batch % count == 0 and min(stages, count) * batch / count <= fits
    ]
    return with_number(counts[0], stages, batch, fixed, each)


@wrong("plan", Lab12Hint.DOES_NOT_DIVIDE, "do not divide a batch of 48", share=0.5)
def by_the_square_root(stages, batch, fits, fixed, each):
    return with_number(max(1, int(np.ceil(np.sqrt((stages - 1) * batch * each / fixed)))), stages, batch, fixed, each)


@wrong("plan", Lab12Hint.NO_BUBBLE, share=0.75)
def no_bubble_in_the_time(stages, batch, fits, fixed, each):
    return chosen(stages, batch, fits, fixed, each, seconds=lambda count: count * fixed + batch * each)


@wrong("plan", Lab12Hint.ONE_TOO_LONG, share=0.75)
def a_stage_too_many(stages, batch, fits, fixed, each):
    return chosen(
        stages, batch, fits, fixed, each, seconds=lambda count: (count + stages) * (fixed + batch / count * each)
    )


@wrong("plan", Lab12Hint.STAGES_IN_A_ROW, share=0.75)
def stages_in_a_row(stages, batch, fits, fixed, each):
    return chosen(
        stages, batch, fits, fixed, each, seconds=lambda count: stages * count * (fixed + batch / count * each)
    )


@wrong("plan", Lab12Hint.FIXED_MISSING, share=0.75)
def without_the_fixed_seconds(stages, batch, fits, fixed, each):
    return chosen(stages, batch, fits, fixed, each, seconds=lambda count: (count + stages - 1) * batch / count * each)


@wrong("plan", Lab12Hint.SHARE_OF_IDEAL, share=0.75)
def bubble_over_the_ideal_time(stages, batch, fits, fixed, each):
    return chosen(stages, batch, fits, fixed, each, bubble=lambda count: (stages - 1) / count)


@wrong("plan", Lab12Hint.SHARE_OF_WORK, share=0.75)
def the_share_of_work(stages, batch, fits, fixed, each):
    return chosen(stages, batch, fits, fixed, each, bubble=lambda count: count / (count + stages - 1))


@wrong("plan", Lab12Hint.PER_CENT, share=0.75)
def per_cent(stages, batch, fits, fixed, each):
    return chosen(stages, batch, fits, fixed, each, bubble=lambda count: 100 * (stages - 1) / (count + stages - 1))


@wrong("plan", Lab12Hint.BUBBLE_IN_SECONDS, share=0.75)
def bubble_in_seconds(stages, batch, fits, fixed, each):
    return chosen(stages, batch, fits, fixed, each, bubble=lambda count: (stages - 1) * (fixed + batch / count * each))


@wrong("plan", Lab12Hint.DOES_NOT_DIVIDE, "6 micro-batches do not divide", share=0.5)
def fractional_micro_batches(stages, batch, fits, fixed, each):
    right = planned(stages, batch, fits, fixed, each)["micro-batches"]
    counts = [count for count in range(1, batch + 1) if min(stages, count) * batch / count <= fits]
    best = min(counts, key=lambda count: with_number(count, stages, batch, fixed, each)["seconds"])
    return with_number(best if stages == 3 and batch == 32 else right, stages, batch, fixed, each)


@wrong("plan", Lab12Hint.OTHERS_ARE_FASTER, share=0.5)
def as_many_as_stages_at_least(stages, batch, fits, fixed, each):
    return chosen(stages, batch, fits, fixed, each, kept=lambda count: stages * batch / count)


@wrong("plan", Lab12Hint.NOTHING_FITS)
def memory_of_gpipe(stages, batch, fits, fixed, each):
    counts = [count for count in range(1, batch + 1) if batch % count == 0 and batch <= fits]
    return with_number(min(counts), stages, batch, fixed, each)


@wrong("plan", NumberHint.NAMES)
def a_tuple(stages, batch, fits, fixed, each):
    return tuple(chosen(stages, batch, fits, fixed, each).values())


@right("plan")
def by_the_examples_of_a_micro_batch(stages, batch, fits, fixed, each):
    best = None
    for examples in range(1, batch + 1):
        count, rest = divmod(batch, examples)
        if rest or examples * min(stages, count) > fits:
            continue
        per_micro_batch = fixed + examples * each
        seconds = (count + stages - 1) * per_micro_batch
        if best is None or seconds < best["seconds"]:
            best = {
                "seconds": seconds,
                "bubble": np.float64(1 - count * per_micro_batch / seconds),
                "micro-batches": np.int64(count),
            }
    return best


# By columns


@wrong("by_columns", Lab12Hint.OWN_COLUMNS)
async def keeps_its_own_columns(rank, layer):
    inputs, columns, bias = layer
    return inputs @ columns + bias


@wrong("by_columns", Lab12Hint.GATHERED_ROWS)
async def gathers_rows(rank, layer):
    inputs, columns, bias = layer
    return await all_gather(rank, inputs @ columns + bias)


@wrong("by_columns", Lab12Hint.ADDED_COLUMNS)
async def adds_columns(rank, layer):
    inputs, columns, bias = layer
    return await ring_all_reduce(rank, inputs @ columns + bias)


@wrong("by_columns", Lab12Hint.TRANSPOSED)
async def forgets_to_turn_back(rank, layer):
    inputs, columns, bias = layer
    return await all_gather(rank, (inputs @ columns + bias).T)


@wrong("by_columns", Lab12Hint.BIAS_MISSING)
async def forgets_the_columns_bias(rank, layer):
    inputs, columns, _ = layer
    return (await all_gather(rank, (inputs @ columns).T)).T


@wrong("by_columns", Lab12Hint.NO_RELU_HERE)
async def adds_a_relu(rank, layer):
    inputs, columns, bias = layer
    return np.maximum((await all_gather(rank, (inputs @ columns + bias).T)).T, 0)


@wrong("by_columns", Lab12Hint.ROWS_DO_NOT_FIT, "equally many units", share=0.25)
async def gathers_the_same_number_of_columns(rank, layer):
    inputs, columns, bias = layer
    own = inputs @ columns + bias
    stacked = await all_gather(rank, own)
    return np.concatenate(np.split(stacked, rank.size), axis=1)


@wrong("by_columns", Lab12Hint.RESULT_RIGHT, Lab12Hint.TOO_MANY_BYTES, Lab12Hint.WEIGHTS_TRAVEL, share=0.5)
async def gathers_the_weights(rank, layer):
    inputs, columns, bias = layer
    weights = (await all_gather(rank, columns.T)).T
    return inputs @ weights + await all_gather(rank, bias)


@wrong("by_columns", Lab12Hint.RESULT_RIGHT, Lab12Hint.TOO_MANY_BYTES, Lab12Hint.ZEROS_ADDED, share=0.5)
async def adds_zeros(rank, layer):
    inputs, columns, bias = layer
    widths = await all_gather(rank, np.array([len(bias)]))
    whole = np.zeros((len(inputs), widths.sum()))
    start = widths[: rank.index].sum()
    whole[:, start : start + len(bias)] = inputs @ columns + bias
    return await ring_all_reduce(rank, whole)


@wrong("by_columns", Lab12Hint.WRONG_ORDER)
async def in_the_order_of_arrival(rank, layer):
    inputs, columns, bias = layer
    travelling = inputs @ columns + bias
    parts = [travelling]
    right, left = (rank.index + 1) % rank.size, (rank.index - 1) % rank.size
    for _ in range(rank.size - 1):
        travelling = await rank.exchange(right, travelling, left)
        parts.append(travelling)
    return np.concatenate(parts[1:] + parts[:1], axis=1)


@wrong("by_columns", Lab12Hint.NOT_THE_SAME_COLLECTIVES)
async def rank_0_computes_alone(rank, layer):
    inputs, columns, bias = layer
    own = inputs @ columns + bias
    return own if rank.index == 0 else (await all_gather(rank, own.T)).T


@right("by_columns")
async def round_the_ring(rank, layer):
    inputs, columns, bias = layer
    parts = {rank.index: inputs @ columns + bias}
    travelling = parts[rank.index]
    for step in range(1, rank.size):
        travelling = await rank.exchange((rank.index + 1) % rank.size, travelling, (rank.index - 1) % rank.size)
        parts[(rank.index - step) % rank.size] = travelling
    return np.hstack([parts[number] for number in range(rank.size)])


# By rows


@wrong("by_rows", Lab12Hint.OWN_PART)
async def keeps_its_own_part(rank, layer):
    inputs, rows, bias = layer
    return inputs @ rows + bias


@wrong("by_rows", Lab12Hint.BIAS_MANY_TIMES, "bias is in the sum 4 times")
async def every_rank_adds_the_bias(rank, layer):
    inputs, rows, bias = layer
    return await ring_all_reduce(rank, inputs @ rows + bias)


@wrong("by_rows", Lab12Hint.BIAS_MISSING)
async def forgets_the_bias(rank, layer):
    inputs, rows, _ = layer
    return await ring_all_reduce(rank, inputs @ rows)


@wrong("by_rows", Lab12Hint.PARTS_PUT_TOGETHER)
async def puts_the_parts_together(rank, layer):
    inputs, rows, bias = layer
    return await all_gather(rank, inputs @ rows) + bias


@wrong("by_rows", Lab12Hint.MEAN, "divided by 4")
async def gives_the_mean(rank, layer):
    inputs, rows, bias = layer
    return await ring_all_reduce(rank, inputs @ rows) / rank.size + bias


@wrong("by_rows", Lab12Hint.ONLY_RANK_0)
async def only_rank_0_has_the_sum(rank, layer):
    inputs, rows, bias = layer
    part = inputs @ rows
    if rank.index:
        await rank.send(0, part)
        return part
    for source in range(1, rank.size):
        part = part + await rank.receive(source)
    return part + bias


@wrong("by_rows", Lab12Hint.RESULT_RIGHT, Lab12Hint.TOO_MANY_BYTES, Lab12Hint.WEIGHTS_AND_INPUTS_TRAVEL, share=0.5)
async def gathers_weights_and_inputs(rank, layer):
    inputs, rows, bias = layer
    return (await all_gather(rank, inputs.T)).T @ await all_gather(rank, rows) + bias


@wrong("by_rows", Lab12Hint.RESULT_RIGHT, Lab12Hint.TOO_MANY_BYTES, Lab12Hint.WHOLE_ARRAYS_TRAVEL, share=0.5)
async def gathers_and_adds(rank, layer):
    inputs, rows, bias = layer
    parts = await all_gather(rank, (inputs @ rows)[None])
    return parts.sum(axis=0) + bias


@wrong("by_rows", Lab12Hint.SOME_ROWS)
async def half_an_all_reduce(rank, layer):
    inputs, rows, bias = layer
    whole = await ring_all_reduce(rank, inputs @ rows)
    return np.array_split(whole + bias, rank.size)[rank.index]


@right("by_rows")
async def rank_0_brings_the_bias(rank, layer):
    inputs, rows, bias = layer
    return await ring_all_reduce(rank, inputs @ rows + (bias if rank.index == 0 else 0.0))


async def by_columns(rank, layer):
    inputs, columns, bias = layer
    return (await all_gather(rank, (inputs @ columns + bias).T)).T


async def by_rows(rank, layer):
    inputs, rows, bias = layer
    return await ring_all_reduce(rank, inputs @ rows) + bias


# Two layers


def two(relu="between", gradient="whole", bias_everywhere=False, gather_hidden=False, past_relu=False, factor=1.0):
    """The two layers with a part of them computed in another way."""

    async def program(rank, network):
        inputs, columns, first_bias, rows, second_bias, by_outputs = network
        before = inputs @ columns + first_bias
        hidden = np.maximum(before, 0) if relu == "between" else before
        if gather_hidden:
            await all_gather(rank, hidden.T)
        part = hidden @ rows + (second_bias if bias_everywhere else 0)
        outputs = await ring_all_reduce(rank, part) + (0 if bias_everywhere else second_bias)
        if relu == "behind":
            outputs = np.maximum(outputs, 0)
        by_hidden = by_outputs @ rows.T
        if not past_relu:
            by_hidden = by_hidden * (before > 0)
        if gradient == "hidden":
            return outputs, (await all_gather(rank, by_hidden.T)).T
        by_inputs = by_hidden @ columns.T
        if gradient == "whole":
            by_inputs = await ring_all_reduce(rank, by_inputs)
        return outputs, by_inputs * (factor or 1 / rank.size)

    return program


THIRD, TWO_THIRDS = 1 / 3, 2 / 3
wrong_value(
    "two_layers",
    "keeps_its_part_of_the_gradient",
    two(gradient="own"),
    Lab12Hint.OWN_GRADIENT,
    share=THIRD,
)
wrong_value("two_layers", "gradient_past_the_relu", two(past_relu=True), Lab12Hint.PAST_RELU, share=THIRD)
wrong_value(
    "two_layers", "both_of_these", two(gradient="own", past_relu=True), Lab12Hint.OWN_GRADIENT_PAST_RELU, share=THIRD
)
wrong_value(
    "two_layers", "stops_at_the_hidden_layer", two(gradient="hidden"), Lab12Hint.GRADIENT_OF_HIDDEN, share=THIRD
)
wrong_value(
    "two_layers", "mean_of_the_gradients", two(factor=None), Lab12Hint.MEAN_OF_GRADIENTS, "divided by 4", share=THIRD
)
wrong_value("two_layers", "forgets_the_relu", two(relu="no"), Lab12Hint.RELU_MISSING, share=THIRD)
wrong_value("two_layers", "relu_behind_the_sum", two(relu="behind"), Lab12Hint.RELU_AFTER_SUM, share=THIRD)
wrong_value(
    "two_layers",
    "the_bias_on_every_rank",
    two(bias_everywhere=True),
    Lab12Hint.BIAS_MANY_TIMES,
    "bias is in the sum 4 times",
    share=THIRD,
)
wrong_value(
    "two_layers",
    "gathers_the_hidden_layer",
    two(gather_hidden=True),
    Lab12Hint.TOO_MANY_BYTES,
    Lab12Hint.HIDDEN_TRAVELS,
    share=TWO_THIRDS,
)


@wrong("two_layers", Lab12Hint.NO_PAIR, Lab12Hint.NO_PAIR)
async def outputs_alone(rank, network):
    return (await two()(rank, network))[0]


@wrong("two_layers", Lab12Hint.SWAPPED_PAIR)
async def the_pair_swapped(rank, network):
    return (await two()(rank, network))[::-1]


@wrong("two_layers", Lab12Hint.TOO_MANY_BYTES, Lab12Hint.MORE_THAN_TWO_SUMS, share=TWO_THIRDS)
async def adds_up_the_gradient_twice(rank, network):
    outputs, by_inputs = await two()(rank, network)
    return outputs, await ring_all_reduce(rank, by_inputs / rank.size)


@wrong("two_layers", Lab12Hint.WHOLE_ADDED_UP, "4 times the gradient", share=THIRD)
async def adds_up_the_whole(rank, network):
    outputs, by_inputs = await two()(rank, network)
    return outputs, await ring_all_reduce(rank, by_inputs)


@right("two_layers")
async def in_one_message(rank, network):
    inputs, columns, first_bias, rows, second_bias, by_outputs = network
    hidden = inputs @ columns + first_bias
    is_on = hidden > 0
    part = np.where(is_on, hidden, 0) @ rows
    by_inputs = np.where(is_on, by_outputs @ rows.T, 0) @ columns.T
    both = await ring_all_reduce(rank, np.hstack([part, by_inputs]))
    return [both[:, : part.shape[1]] + second_bias, both[:, part.shape[1] :]]


async def untouched(rank, layer):
    _, _, _ = layer


async def untouched_network(rank, network):
    _, _, _, _, _, _ = network


def untouched_plan(*arguments):
    return dict.fromkeys(("micro-batches", "seconds", "bubble"))


ANSWERS.solved("table", TABLE, UNTOUCHED_TABLE)
ANSWERS.solved(ORDER, scheduled)
ANSWERS.solved("plan", planned, untouched_plan)
ANSWERS.solved("by_columns", by_columns, untouched)
ANSWERS.solved("by_rows", by_rows, untouched)
ANSWERS.solved("two_layers", two(), untouched_network)
