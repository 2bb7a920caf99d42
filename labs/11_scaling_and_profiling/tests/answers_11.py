"""Answers to lab 11 as students give them."""

import numpy as np
from lab_11.audit import audited, corrected, processed
from lab_11.hints import Lab11Hint
from lab_11.prediction import predicted

from distlab import costs
from distlab.labs.number_judge import NumberHint
from tests.distlab.labs.known_wrong import LabAnswers

ANSWERS = LabAnswers()
wrong, right = ANSWERS.wrong, ANSWERS.right


# What a run processed


def but_for(**formulas):
    """The right numbers but for some, which are computed so."""

    def audit(images, batch, gpus, seconds, seconds_on_one):
        numbers = audited(images, batch, gpus, seconds, seconds_on_one)
        case = {"N": images, "b": batch, "p": gpus, "t": seconds, "t1": seconds_on_one}
        case |= {"steps": numbers["steps"], "done": numbers["images"], "of_one": processed(images, batch, 1)}
        return numbers | {name.replace("_", " "): formula(case) for name, formula in formulas.items()}

    return audit


for title, audit, hint in (
    ("rounds_up", but_for(steps=lambda c: -(-c["N"] // (c["b"] * c["p"]))), Lab11Hint.STEPS_ROUNDED_UP),
    ("steps_of_one", but_for(steps=lambda c: c["N"] // c["b"]), Lab11Hint.STEPS_OF_ONE_GPU),
    ("brackets", but_for(steps=lambda c: c["N"] // c["b"] * c["p"]), Lab11Hint.BRACKETS),
    ("none_for_zero", but_for(images=lambda c: c["done"] or None), Lab11Hint.NONE_FOR_ZERO),
    ("parts_of_a_step", but_for(steps=lambda c: c["N"] / (c["b"] * c["p"])), Lab11Hint.PARTS_OF_STEPS),
    ("all_images", but_for(images=lambda c: c["N"]), Lab11Hint.WHOLE_DATA_SET),
    ("one_gpus_images", but_for(images=lambda c: c["steps"] * c["b"]), Lab11Hint.EACH_GPU_HAS_A_BATCH),
    ("the_tables_rate", but_for(images_per_second=lambda c: c["N"] / c["t"]), Lab11Hint.RATE_OF_THE_TABLE),
    ("rate_of_each", but_for(images_per_second=lambda c: c["done"] / c["t"] / c["p"]), Lab11Hint.RATE_OF_ONE_GPU),
    (
        "the_claim",
        but_for(efficiency=lambda c: c["t1"] / c["t"] / c["p"] if c["steps"] else None),
        Lab11Hint.EFFICIENCY_OF_THE_TABLE,
    ),
    (
        "speed_up",
        but_for(efficiency=lambda c: c["done"] / c["t"] / (c["of_one"] / c["t1"]) if c["steps"] else None),
        Lab11Hint.SPEED_UP,
    ),
    (
        "one_gpu_with_all_images",
        but_for(efficiency=lambda c: c["done"] / c["t"] / (c["N"] / c["t1"]) / c["p"] if c["steps"] else None),
        Lab11Hint.ONE_GPU_DROPPED_TOO,
    ),
    (
        "zero_for_an_empty_loop",
        but_for(efficiency=lambda c: c["done"] / c["t"] / (c["of_one"] / c["t1"]) / c["p"]),
        Lab11Hint.EMPTY_LOOP,
    ),
):
    ANSWERS.wrong_value("audit", title, audit, hint, share=0.75)


@wrong("audit", Lab11Hint.WHOLE_DATA_SET, Lab11Hint.RATE_OF_THE_TABLE, Lab11Hint.EFFICIENCY_OF_THE_TABLE, share=0.25)
def the_tables_way(images, batch, gpus, seconds, seconds_on_one):
    rates = images / seconds, images / seconds_on_one
    return {
        "steps": images // (batch * gpus),
        "images": images,
        "images per second": rates[0],
        "efficiency": rates[0] / rates[1] / gpus,
    }


@wrong("audit", Lab11Hint.AUDIT_RAISES, "ZeroDivisionError", share=0.75)
def divides_by_the_steps(images, batch, gpus, seconds, seconds_on_one):
    _ = seconds / (images // (batch * gpus))
    return audited(images, batch, gpus, seconds, seconds_on_one)


@wrong("audit", NumberHint.NAMES)
def a_tuple(*run):
    return tuple(audited(*run).values())


@right("audit")
def by_counting(images, batch, gpus, seconds, seconds_on_one):
    left, steps = images, 0
    while left >= batch * gpus:
        left, steps = left - batch * gpus, steps + 1
    done, of_one = images - left, images - images % batch
    efficiency = np.float64(done * seconds_on_one) / (of_one * seconds * gpus) if steps else None
    return {"efficiency": efficiency, "images": done, "steps": steps, "images per second": done / seconds}


# The published table


@wrong("corrected", Lab11Hint.CLAIM_ITSELF)
def believes(claimed, images, batch, gpus):
    return claimed


@wrong("corrected", Lab11Hint.COMPARED_RUN_DROPPED_TOO)
def one_gpu_dropped_nothing(claimed, images, batch, gpus):
    return claimed * processed(images, batch, gpus) / images or None


@wrong("corrected", Lab11Hint.CLAIM_INVERTED)
def turned_round(claimed, images, batch, gpus):
    return claimed * images / processed(images, batch, gpus)


@wrong("corrected", Lab11Hint.BOTH_INVERTED)
def turned_round_for_both(claimed, images, batch, gpus):
    return claimed * processed(images, batch, 1) / processed(images, batch, gpus)


@wrong("corrected", Lab11Hint.DIVIDED_BY_GPUS)
def divides_again(claimed, images, batch, gpus):
    true = corrected(claimed, images, batch, gpus)
    return true and true / gpus


@wrong("corrected", Lab11Hint.STEPS_ROUNDED_UP)
def keeps_the_last_batch(claimed, images, batch, gpus):
    return claimed * -(-images // (batch * gpus)) * batch * gpus / processed(images, batch, 1)


@wrong("corrected", Lab11Hint.EFFICIENCY_WITHOUT_STEP, share=0.5)
def nothing_is_zero(claimed, images, batch, gpus):
    return claimed * processed(images, batch, gpus) / processed(images, batch, 1)


@wrong("corrected", Lab11Hint.RAISES_WITHOUT_STEP, "raises ZeroDivisionError", share=0.5)
def divides_by_nothing(claimed, images, batch, gpus):
    return claimed / (processed(images, batch, 1) / processed(images, batch, gpus))


@right("corrected")
def rounded_like_the_claims(claimed, images, batch, gpus):
    true = corrected(claimed, images, batch, gpus)
    return true and round(true, 2)


@right("corrected")
def by_the_tails(claimed, images, batch, gpus):
    kept = [images - images % (batch * count) for count in (gpus, 1)]
    return np.array(claimed * kept[0] / kept[1]) if batch * gpus <= images else None


# Amdahl's law


def law_columns(ranks):
    return np.stack([np.ones(len(ranks)), 1 / ranks], axis=1)


def law_of(ranks, seconds):
    law = costs.fit_amdahl(ranks, seconds)
    return law.serial_seconds, law.parallel_seconds


@wrong("amdahl", Lab11Hint.OTHER_ORDER)
def order(ranks, seconds):
    return law_of(ranks, seconds)[::-1]


@wrong("amdahl", Lab11Hint.SHARES)
def shares(ranks, seconds):
    serial, parallel = law_of(ranks, seconds)
    return serial / (serial + parallel), parallel / (serial + parallel)


@wrong("amdahl", Lab11Hint.LINE_OVER_RANKS)
def line_over_ranks(ranks, seconds):
    slope, start = np.polyfit(ranks, seconds, 1)
    return start, slope


@wrong("amdahl", Lab11Hint.ALL_PARALLEL)
def all_is_parallel(ranks, seconds):
    return np.mean(seconds - seconds[0] / ranks), seconds[0]


@wrong("amdahl", Lab11Hint.LAST_IS_SERIAL)
def the_last_is_serial(ranks, seconds):
    return seconds[-1], seconds[0] - seconds[-1]


@wrong("amdahl", Lab11Hint.RIGHT_FROM_ONE_RANK, Lab11Hint.OFF_ON_MOST_RANKS)
def counts_from_one_rank(ranks, seconds):
    parallel = (seconds[0] - seconds[-1]) / (1 - 1 / ranks[-1])
    return seconds[0] - parallel, parallel


@wrong("amdahl", Lab11Hint.RIGHT_FOR_EXACT_TIMES, Lab11Hint.LONGEST_DECIDES, share=0.5)
def absolute_errors(ranks, seconds):
    parallel, serial = np.polyfit(1 / ranks, seconds, 1)
    return serial, parallel


@wrong("amdahl", Lab11Hint.RIGHT_FOR_EXACT_TIMES, Lab11Hint.TWO_TIMES_DECIDE, share=0.5)
def two_times(ranks, seconds):
    ends = [0, -1]
    serial, parallel = np.linalg.solve(law_columns(ranks[ends]), seconds[ends])
    return serial, parallel


def weighted(power, by_ranks=False):
    def amdahl(ranks, seconds):
        weights = np.sqrt(ranks) if by_ranks else seconds**power
        return tuple(np.linalg.lstsq(law_columns(ranks) * weights[:, None], seconds * weights)[0])

    return amdahl


for title, power in (("by_the_root_of_the_times", -0.5), ("by_the_squares_of_the_times", -2.0), ("by_the_ranks", None)):
    ANSWERS.wrong_value(
        "amdahl",
        title,
        weighted(power, power is None),
        Lab11Hint.RIGHT_FOR_EXACT_TIMES,
        Lab11Hint.OTHER_WEIGHTS,
        share=0.5,
    )


@wrong("amdahl", Lab11Hint.RIGHT_SIDE_NOT_DIVIDED)
def right_side_not_divided(ranks, seconds):
    return tuple(np.linalg.lstsq(law_columns(ranks) / seconds[:, None], seconds)[0])


@wrong("amdahl", Lab11Hint.NOT_TWO_SECONDS)
def the_serial_share(ranks, seconds):
    return costs.fit_amdahl(ranks, seconds).serial_share


@right("amdahl")
def by_weighted_line(ranks, seconds):
    parallel, serial = np.polyfit(1 / ranks, seconds, 1, w=1 / seconds)
    return [serial, parallel]


@right("amdahl")
def by_logarithms(ranks, seconds):
    from scipy.optimize import least_squares

    start = np.log([seconds.min() / 2, seconds.max()])
    fit = least_squares(
        lambda x: np.log(law_columns(ranks) @ np.exp(x) / seconds), start, xtol=1e-12, ftol=1e-12, gtol=1e-12
    )
    return np.exp(fit.x)


# α and β


def line(first, second, seconds):
    """The factors of two columns by relative least squares."""
    columns = np.stack([np.broadcast_to(first, len(seconds)), second], axis=1) / seconds[:, None]
    scale = columns.max(axis=0)
    return np.linalg.lstsq(columns / scale, np.ones(len(seconds)))[0] / scale


@wrong("alpha_beta", Lab11Hint.WHOLE_ALL_REDUCE, Lab11Hint.PER_BYTE_OF_ARRAY)
def as_one_message(ranks, sizes, seconds):
    return line(1, sizes, seconds)


@wrong("alpha_beta", Lab11Hint.HALF_A_RING, Lab11Hint.HALF_A_RING)
def half_a_ring(ranks, sizes, seconds):
    return line(ranks - 1, (ranks - 1) / ranks * sizes, seconds)


@wrong("alpha_beta", Lab11Hint.WHOLE_ARRAYS, share=0.25)
def sends_two_arrays(ranks, sizes, seconds):
    latency, per_byte = line(2 * (ranks - 1), 2 * sizes, seconds)
    return latency, per_byte


@wrong("alpha_beta", Lab11Hint.WHOLE_ARRAY_PER_STEP, share=0.25)
def whole_array_in_each_step(ranks, sizes, seconds):
    return line(2 * (ranks - 1), 2.0 * (ranks - 1) * sizes, seconds)


@wrong("alpha_beta", Lab11Hint.BANDWIDTH, share=0.25)
def bandwidth(ranks, sizes, seconds):
    latency, per_byte = in_order(ranks, sizes, seconds)
    return latency, 1 / per_byte


@wrong("alpha_beta", Lab11Hint.OTHER_ORDER)
def other_order(ranks, sizes, seconds):
    return in_order(ranks, sizes, seconds)[::-1]


@wrong("alpha_beta", Lab11Hint.STEPS_ARE_RANKS, share=0.25)
def steps_are_ranks(ranks, sizes, seconds):
    return line(ranks, 2 * (ranks - 1) / ranks * sizes, seconds)


@wrong("alpha_beta", Lab11Hint.NETWORK_OTHERWISE, Lab11Hint.NETWORK_OTHERWISE, "right on 8 ranks, not on 2")
def only_eight(ranks, sizes, seconds):
    return line(14, 14 / 8 * sizes, seconds)


@wrong("alpha_beta", Lab11Hint.LONGEST_DECIDES, share=0.5)
def absolute_seconds(ranks, sizes, seconds):
    slope, start = np.polyfit(sizes, seconds, 1)
    steps = 2 * (ranks - 1)
    return start / steps, slope * ranks / steps


@wrong("alpha_beta", Lab11Hint.OTHER_WEIGHTS, share=0.5)
def by_the_root_of_the_seconds(ranks, sizes, seconds):
    slope, start = np.polyfit(sizes, seconds, 1, w=seconds**-0.5)
    steps = 2 * (ranks - 1)
    return start / steps, slope * ranks / steps


@wrong("alpha_beta", Lab11Hint.UNIT, share=0.25)
def microseconds(ranks, sizes, seconds):
    latency, per_byte = in_order(ranks, sizes, seconds)
    return 1e6 * latency, per_byte


@right("alpha_beta")
def in_order(ranks, sizes, seconds):
    fit = costs.fit(sizes, seconds, lambda n: costs.all_reduce("ring", ranks, n))
    return fit.latency, fit.seconds_per_byte


@right("alpha_beta")
def by_polynomial(ranks, sizes, seconds):
    slope, start = np.polyfit(2 * sizes / ranks * (ranks - 1), seconds, 1, w=1 / seconds)
    return np.array([start / (2 * ranks - 2), slope])


# 64 ranks


def pieces(job):
    """The two laws, as fitted rightly."""
    _, cr, cs, rr, sizes, rs, _ = job
    return costs.fit_amdahl(cr, cs), costs.fit(sizes, rs, lambda n: costs.all_reduce("ring", rr, n))


def ring(network, ranks, nbytes):
    return network.seconds(costs.all_reduce("ring", ranks, nbytes))


@wrong("predicted", Lab11Hint.COMPUTING_ALONE)
def computing_alone(*job):
    return pieces(job)[0].seconds(job[0])


@wrong("predicted", Lab11Hint.NO_SERIAL_PART)
def no_serial_part(*job):
    law, network = pieces(job)
    return law.parallel_seconds / job[0] + ring(network, job[0], job[-1])


@wrong("predicted", Lab11Hint.SERIAL_PART_DIVIDED)
def ideal_computing(*job):
    law, network = pieces(job)
    return law.seconds(1) / job[0] + ring(network, job[0], job[-1])


@wrong("predicted", Lab11Hint.MEASURED_ALL_REDUCE)
def measured_ring(*job):
    law, network = pieces(job)
    return law.seconds(job[0]) + ring(network, job[3], job[-1])


@wrong("predicted", Lab11Hint.ALL_REDUCE_IN_PROPORTION)
def ring_in_proportion(*job):
    law, network = pieces(job)
    return law.seconds(job[0]) + ring(network, job[3], job[-1]) * job[0] / job[3]


@wrong("predicted", Lab11Hint.ALL_REDUCE_SHORTER)
def shorter_ring(*job):
    law, network = pieces(job)
    return law.seconds(job[0]) + ring(network, job[3], job[-1]) * job[3] / job[0]


@wrong("predicted", Lab11Hint.SINGLE_MESSAGE)
def one_message(*job):
    law, network = pieces(job)
    return law.seconds(job[0]) + network.latency + network.seconds_per_byte * job[-1]


@wrong("predicted", Lab11Hint.NO_LATENCY)
def bytes_alone(*job):
    law, network = pieces(job)
    return law.seconds(job[0]) + 2 * (job[0] - 1) * job[-1] / job[0] * network.seconds_per_byte


@wrong("predicted", Lab11Hint.RIGHT_FOR_EXACT_TIMES, Lab11Hint.NOISE_MOVES_ALL_REDUCE, share=0.5)
def absolute_fit_of_the_ring(ranks, cr, cs, rr, sizes, rs, nbytes):
    law, _ = pieces((ranks, cr, cs, rr, sizes, rs, nbytes))
    latency, per_byte = absolute_seconds(rr, sizes, rs)
    return law.seconds(ranks) + 2 * (ranks - 1) * (latency + nbytes / ranks * per_byte)


@wrong("predicted", Lab11Hint.STEP_DIVIDED)
def divides_the_step(*job):
    return predicted(*job) / job[0]


@wrong("predicted", Lab11Hint.UNIT)
def milliseconds(*job):
    return 1e3 * predicted(*job)


@wrong("predicted", Lab11Hint.RIGHT_FOR_EXACT_TIMES, Lab11Hint.NOISE_MOVES_PREDICTION, share=0.5)
def absolute_fits(ranks, cr, cs, rr, sizes, rs, nbytes):
    serial, parallel = absolute_errors(cr, cs)
    latency, per_byte = absolute_seconds(rr, sizes, rs)
    return serial + parallel / ranks + 2 * (ranks - 1) * (latency + nbytes / ranks * per_byte)


@wrong("predicted", Lab11Hint.NOT_ONE_NUMBER)
def a_pair(*job):
    return predicted(*job), 0.0


@right("predicted")
def by_own_formulas(ranks, cr, cs, rr, sizes, rs, nbytes):
    serial, parallel = by_weighted_line(cr, cs)
    latency, per_byte = by_polynomial(rr, sizes, rs)
    return np.float64(serial + parallel / ranks + 2 * (ranks - 1) * latency + 2 * nbytes * per_byte * (1 - 1 / ranks))


ANSWERS.solved("audit", audited)
ANSWERS.solved("corrected", corrected)
ANSWERS.solved("amdahl", law_of)
ANSWERS.solved("alpha_beta", in_order)
ANSWERS.solved("predicted", predicted)
