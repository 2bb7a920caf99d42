"""Answers to lab 11 as students give them."""

import numpy as np

from distlab import costs
from distlab.labs.lab_11.audit import audited, corrected, processed
from distlab.labs.lab_11.prediction import predicted
from tests.labs.known_wrong import LabAnswers

ANSWERS = LabAnswers()
wrong, right = ANSWERS.wrong, ANSWERS.right


# What a run processed


def but_for(**formulas):
    """The right numbers but for some, which are computed so."""

    def audit(images, batch, gpus, seconds, seconds_on_one):
        found = audited(images, batch, gpus, seconds, seconds_on_one)
        case = {"N": images, "b": batch, "p": gpus, "t": seconds, "t1": seconds_on_one}
        case |= {"steps": found["steps"], "done": found["images"], "of_one": processed(images, batch, 1)}
        return found | {name.replace("_", " "): formula(case) for name, formula in formulas.items()}

    return audit


for title, audit, hint in (
    ("rounds_up", but_for(steps=lambda c: -(-c["N"] // (c["b"] * c["p"]))), "not full is dropped"),
    ("steps_of_one", but_for(steps=lambda c: c["N"] // c["b"]), "these are the steps of one GPU"),
    ("parts_of_a_step", but_for(steps=lambda c: c["N"] / (c["b"] * c["p"])), "no parts of a step"),
    ("all_images", but_for(images=lambda c: c["N"]), "that is the data set"),
    ("one_gpus_images", but_for(images=lambda c: c["steps"] * c["b"]), "each GPU takes a batch of its own"),
    ("the_tables_rate", but_for(images_per_second=lambda c: c["N"] / c["t"]), "divides the whole data set"),
    ("rate_of_each", but_for(images_per_second=lambda c: c["done"] / c["t"] / c["p"]), "one GPU's share"),
    (
        "the_claim",
        but_for(efficiency=lambda c: c["t1"] / c["t"] / c["p"] if c["steps"] else None),
        "what the table claims",
    ),
    (
        "speed_up",
        but_for(efficiency=lambda c: c["done"] / c["t"] / (c["of_one"] / c["t1"]) if c["steps"] else None),
        "that is the speed-up",
    ),
    (
        "one_gpu_with_all_images",
        but_for(efficiency=lambda c: c["done"] / c["t"] / (c["N"] / c["t1"]) / c["p"] if c["steps"] else None),
        "one GPU dropped something too",
    ),
    (
        "zero_for_an_empty_loop",
        but_for(efficiency=lambda c: c["done"] / c["t"] / (c["of_one"] / c["t1"]) / c["p"]),
        "what was timed is an empty loop",
    ),
):
    ANSWERS.wrong_value("audit", title, audit, hint, share=0.75)


@wrong("audit", "images:", "images per second:", "efficiency:", "divides the whole data set", share=0.25)
def the_tables_way(images, batch, gpus, seconds, seconds_on_one):
    rates = images / seconds, images / seconds_on_one
    return {
        "steps": images // (batch * gpus),
        "images": images,
        "images per second": rates[0],
        "efficiency": rates[0] / rates[1] / gpus,
    }


@wrong("audit", "with no step at all", "ZeroDivisionError", share=0.75)
def divides_by_the_steps(images, batch, gpus, seconds, seconds_on_one):
    _ = seconds / (images // (batch * gpus))
    return audited(images, batch, gpus, seconds, seconds_on_one)


@wrong("audit", "dictionary with the names")
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


@wrong("corrected", "that is the claim")
def believes(claimed, images, batch, gpus):
    return claimed


@wrong("corrected", "which it is compared with, dropped something too")
def one_gpu_dropped_nothing(claimed, images, batch, gpus):
    return claimed * processed(images, batch, gpus) / images or None


@wrong("corrected", "were fewer images processed")
def turned_round(claimed, images, batch, gpus):
    return claimed * images / processed(images, batch, gpus)


@wrong("corrected", "which of the two runs dropped more")
def turned_round_for_both(claimed, images, batch, gpus):
    return claimed * processed(images, batch, 1) / processed(images, batch, gpus)


@wrong("corrected", "an efficiency is divided by the GPUs already")
def divides_again(claimed, images, batch, gpus):
    true = corrected(claimed, images, batch, gpus)
    return true and true / gpus


@wrong("corrected", "not full is dropped")
def keeps_the_last_batch(claimed, images, batch, gpus):
    return claimed * -(-images // (batch * gpus)) * batch * gpus / processed(images, batch, 1)


@wrong("corrected", "what was timed", share=0.5)
def nothing_is_zero(claimed, images, batch, gpus):
    return claimed * processed(images, batch, gpus) / processed(images, batch, 1)


@wrong("corrected", "raises ZeroDivisionError", share=0.5)
def divides_by_nothing(claimed, images, batch, gpus):
    return claimed / (processed(images, batch, 1) / processed(images, batch, gpus))


@right("corrected")
def by_the_tails(claimed, images, batch, gpus):
    kept = [images - images % (batch * count) for count in (gpus, 1)]
    return np.array(claimed * kept[0] / kept[1]) if batch * gpus <= images else None


# Amdahl's law


def law_columns(ranks):
    return np.stack([np.ones(len(ranks)), 1 / ranks], axis=1)


def law_of(ranks, seconds):
    found = costs.fit_amdahl(ranks, seconds)
    return found.serial_seconds, found.parallel_seconds


@wrong("amdahl", "in the other order")
def order(ranks, seconds):
    return law_of(ranks, seconds)[::-1]


@wrong("amdahl", "shares of one rank's time")
def shares(ranks, seconds):
    serial, parallel = law_of(ranks, seconds)
    return serial / (serial + parallel), parallel / (serial + parallel)


@wrong("amdahl", "a line over the number of ranks")
def line_over_ranks(ranks, seconds):
    slope, start = np.polyfit(ranks, seconds, 1)
    return start, slope


@wrong("amdahl", "the serial part is in that too")
def all_is_parallel(ranks, seconds):
    return np.mean(seconds - seconds[0] / ranks), seconds[0]


@wrong("amdahl", "some of the divided work is left")
def the_last_is_serial(ranks, seconds):
    return seconds[-1], seconds[0] - seconds[-1]


@wrong("amdahl", "Right where the first time is that of one rank")
def counts_from_one_rank(ranks, seconds):
    parallel = (seconds[0] - seconds[-1]) / (1 - 1 / ranks[-1])
    return seconds[0] - parallel, parallel


@wrong("amdahl", "Right for exact times", "longest times decide", share=0.5)
def absolute_errors(ranks, seconds):
    parallel, serial = np.polyfit(1 / ranks, seconds, 1)
    return serial, parallel


@wrong("amdahl", "two of the times decide", share=0.5)
def two_times(ranks, seconds):
    ends = [0, -1]
    serial, parallel = np.linalg.solve(law_columns(ranks[ends]), seconds[ends])
    return serial, parallel


@wrong("amdahl", "gives two numbers")
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
    found = least_squares(
        lambda x: np.log(law_columns(ranks) @ np.exp(x) / seconds), start, xtol=1e-12, ftol=1e-12, gtol=1e-12
    )
    return np.exp(found.x)


# α and β


def line(first, second, seconds):
    """The factors of two columns by relative least squares."""
    columns = np.stack([np.broadcast_to(first, len(seconds)), second], axis=1) / seconds[:, None]
    scale = columns.max(axis=0)
    return np.linalg.lstsq(columns / scale, np.ones(len(seconds)))[0] / scale


@wrong("alpha_beta", "latency:", "it has many messages", "seconds per byte:", "per byte of the array")
def as_one_message(ranks, sizes, seconds):
    return line(1, sizes, seconds)


@wrong("alpha_beta", "latency:", "a ring goes round twice", "seconds per byte:")
def half_a_ring(ranks, sizes, seconds):
    return line(ranks - 1, (ranks - 1) / ranks * sizes, seconds)


@wrong("alpha_beta", "chunks of it", share=0.25)
def sends_two_arrays(ranks, sizes, seconds):
    latency, per_byte = line(2 * (ranks - 1), 2 * sizes, seconds)
    return latency, per_byte


@wrong("alpha_beta", "one chunk, not the whole array", share=0.25)
def whole_array_in_each_step(ranks, sizes, seconds):
    return line(2 * (ranks - 1), 2.0 * (ranks - 1) * sizes, seconds)


@wrong("alpha_beta", "that is the bandwidth", share=0.25)
def bandwidth(ranks, sizes, seconds):
    latency, per_byte = in_order(ranks, sizes, seconds)
    return latency, 1 / per_byte


@wrong("alpha_beta", "in the other order")
def other_order(ranks, sizes, seconds):
    return in_order(ranks, sizes, seconds)[::-1]


@wrong("alpha_beta", "number of steps is not the number of ranks", share=0.25)
def steps_are_ranks(ranks, sizes, seconds):
    return line(ranks, 2 * (ranks - 1) / ranks * sizes, seconds)


@wrong("alpha_beta", "right on 8 ranks, not on 2")
def only_eight(ranks, sizes, seconds):
    return line(14, 14 / 8 * sizes, seconds)


@wrong("alpha_beta", "Right for exact times", "longest times decide", share=0.5)
def absolute_seconds(ranks, sizes, seconds):
    slope, start = np.polyfit(sizes, seconds, 1)
    steps = 2 * (ranks - 1)
    return start / steps, slope * ranks / steps


@wrong("alpha_beta", "another unit", share=0.25)
def microseconds(ranks, sizes, seconds):
    latency, per_byte = in_order(ranks, sizes, seconds)
    return 1e6 * latency, per_byte


@right("alpha_beta")
def in_order(ranks, sizes, seconds):
    found = costs.fit(sizes, seconds, lambda n: costs.all_reduce("ring", ranks, n))
    return found.latency, found.seconds_per_byte


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


@wrong("predicted", "the computing alone")
def computing_alone(*job):
    return pieces(job)[0].seconds(job[0])


@wrong("predicted", "serial part is missing")
def no_serial_part(*job):
    law, network = pieces(job)
    return law.parallel_seconds / job[0] + ring(network, job[0], job[-1])


@wrong("predicted", "serial part is divided too")
def ideal_computing(*job):
    law, network = pieces(job)
    return law.seconds(1) / job[0] + ring(network, job[0], job[-1])


@wrong("predicted", "still that of the ranks it was measured on")
def measured_ring(*job):
    law, network = pieces(job)
    return law.seconds(job[0]) + ring(network, job[3], job[-1])


@wrong("predicted", "so many times as long")
def ring_in_proportion(*job):
    law, network = pieces(job)
    return law.seconds(job[0]) + ring(network, job[3], job[-1]) * job[0] / job[3]


@wrong("predicted", "more ranks do not shorten an all-reduce")
def shorter_ring(*job):
    law, network = pieces(job)
    return law.seconds(job[0]) + ring(network, job[3], job[-1]) * job[3] / job[0]


@wrong("predicted", "more than one message")
def one_message(*job):
    law, network = pieces(job)
    return law.seconds(job[0]) + network.latency + network.seconds_per_byte * job[-1]


@wrong("predicted", "not divided again")
def divides_the_step(*job):
    return predicted(*job) / job[0]


@wrong("predicted", "another unit")
def milliseconds(*job):
    return 1e3 * predicted(*job)


@wrong("predicted", "Right for exact times", share=0.5)
def absolute_fits(ranks, cr, cs, rr, sizes, rs, nbytes):
    serial, parallel = absolute_errors(cr, cs)
    latency, per_byte = absolute_seconds(rr, sizes, rs)
    return serial + parallel / ranks + 2 * (ranks - 1) * (latency + nbytes / ranks * per_byte)


@wrong("predicted", "one number")
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
