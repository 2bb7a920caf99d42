"""Answers to lab 04 as students give them."""

from fractions import Fraction

import numpy as np
from lab_04 import accumulation
from lab_04 import masked_losses as masks_judge
from lab_04 import penalty as penalty_judge
from lab_04 import replica_losses as losses_judge
from lab_04.factors import factors as true_factors
from lab_04.hints import Lab04Hint

from distlab.labs.number_judge import NumberHint
from tests.distlab.labs.known_wrong import LabAnswers

ANSWERS, AGAIN = LabAnswers(), LabAnswers()
"""Known answers; and wrong ones that get the same text as one of these, judged in `test_lab`."""
wrong, right = ANSWERS.wrong, ANSWERS.right
Hint = Lab04Hint
TWO_THIRDS, THIRD = 2 / 3, 1 / 3
ALL_BY_CHANCE = [Hint.RIGHT_BY_CHANCE, Hint.FACTOR_OTHERWISE] * 3 + [Hint.RIGHT_BY_CHANCE, Hint.MICRO_BATCHES_OTHERWISE]


# Factors


def but_for(name, value):
    """The right factors but for one, computed from replicas, images and micro-batches."""

    def factors(replicas, images, micro_batches):
        return true_factors(replicas, images, micro_batches) | {name: value(replicas, images, micro_batches)}

    return factors


for title, name, value, hint in (
    ("means_are_right", "means, summed", lambda r, i, m: 1, Hint.AS_IF_RIGHT),
    ("means_upside_down", "means, summed", lambda r, i, m: 1 / r, Hint.UPSIDE_DOWN),
    ("means_by_images", "means, summed", lambda r, i, m: r * i, Hint.SUMMED_MEANS),
    ("average_by_replicas", "means, averaged", lambda r, i, m: 1 / r, Hint.AVERAGED_MEANS),
    ("sums_by_replicas", "sums, summed", lambda r, i, m: r, Hint.SUMS_NEED_ALL),
    ("average_of_sums_by_all", "sums, averaged", lambda r, i, m: r * i, Hint.SUMS_AVERAGED),
    ("average_of_global_means", "global means, averaged", lambda r, i, m: 1 / i, Hint.DIVIDED_TWICE),
    ("micro_batches_upside_down", "micro-batches, summed", lambda r, i, m: 1 / m, Hint.UPSIDE_DOWN),
    ("micro_batches_by_replicas", "micro-batches, summed", lambda r, i, m: r, Hint.MICRO_BATCHES_ADDED),
    ("something_else", "micro-batches, summed", lambda r, i, m: m + 0.5, Hint.MICRO_BATCHES_OTHERWISE),
    ("micro_batches_squared", "micro-batches, summed", lambda r, i, m: m**2, Hint.MICRO_BATCHES_OTHERWISE),
    ("all_that_there_is", "micro-batches, summed", lambda r, i, m: r * i * m, Hint.MICRO_BATCHES_ADDED),
    ("micro_batches_of_sums", "sums, summed", lambda r, i, m: r * i * m, Hint.ONE_MICRO_BATCH),
    ("micro_batches_of_means", "means, averaged", lambda r, i, m: m, Hint.ONE_MICRO_BATCH),
    ("micro_batches_of_global_means", "global means, averaged", lambda r, i, m: m / r, Hint.ONE_MICRO_BATCH),
    ("integer_division", "global means, averaged", lambda r, i, m: 1 // r, Hint.INTEGER_DIVISION),
    ("half_of_the_sums", "sums, averaged", lambda r, i, m: i / r, Hint.FACTOR_OTHERWISE),
    ("six_places_of_a_third", "global means, averaged", lambda r, i, m: round(1 / r, 6), NumberHint.ROUNDED),
    ("a_text", "sums, summed", lambda r, i, m: "r * i", NumberHint.NOT_A_NUMBER),
    ("two_places", "global means, averaged", lambda r, i, m: round(1 / r, 2), NumberHint.ROUNDED),
):
    ANSWERS.wrong_value("factors", title, but_for(name, value), hint, share=5 / 6)

for title, name, value in (  # right for 2 replicas, 3 images, 7 micro-batches
    ("means_by_chance", "means, summed", lambda r, i, m: i - 1),
    ("sums_by_chance", "sums, summed", lambda r, i, m: i * (i - 1)),
    ("sums_and_micro_batches", "sums, summed", lambda r, i, m: m - 1),
    ("average_by_chance", "sums, averaged", lambda r, i, m: r * (r + 1) / 2),
    ("one_more_than_replicas", "sums, averaged", lambda r, i, m: r + 1),
    ("global_means_by_chance", "global means, averaged", lambda r, i, m: 1 / (i - 1)),
):
    hints = (Hint.RIGHT_BY_CHANCE, Hint.FACTOR_OTHERWISE)
    ANSWERS.wrong_value("factors", title, but_for(name, value), *hints, share=5 / 6)

for title, value in (("one_more_than_sums", lambda r, i, m: r * i + 1), ("images_squared", lambda r, i, m: i**2 - r)):
    hints = (Hint.RIGHT_BY_CHANCE, Hint.MICRO_BATCHES_OTHERWISE)
    ANSWERS.wrong_value("factors", title, but_for("micro-batches, summed", value), *hints, share=5 / 6)


@wrong("factors", *ALL_BY_CHANCE, share=2 / 6)
def all_by_chance(replicas, images, micro_batches):
    return true_factors(replicas, images, micro_batches) | {
        "means, summed": images - 1,
        "sums, summed": images * (images - 1),
        "global means, averaged": 1 / (images - 1),
        "micro-batches, summed": replicas * images + 1,
    }


@wrong("factors", *[Hint.ONE_MICRO_BATCH] * 5, Hint.MICRO_BATCHES_ADDED)
def micro_batches_everywhere(replicas, images, micro_batches):
    right_factors = true_factors(replicas, images, micro_batches)
    factors = {name: factor * micro_batches for name, factor in right_factors.items()}
    return factors | {"micro-batches, summed": replicas * micro_batches}


@wrong("factors", NumberHint.NAMES, '"means, summed" is missing, and "means,summed" is unknown.')
def a_name_without_its_space(replicas, images, micro_batches):
    answer = true_factors(replicas, images, micro_batches)
    answer["means,summed"] = answer.pop("means, summed")
    return answer


@wrong(
    "factors", '"sums, averaged", "global means, averaged", "micro-batches, summed": not done yet: this is', share=3 / 6
)
def half_done(replicas, images, micro_batches):
    done = list(true_factors(replicas, images, micro_batches).items())[:3]
    return dict.fromkeys(true_factors(replicas, images, micro_batches)) | dict(done)


@wrong("factors", NumberHint.NAMES)
def only_numbers(replicas, images, micro_batches):
    return list(true_factors(replicas, images, micro_batches).values())


@right("factors")
def by_summing(replicas, images, micro_batches):
    loops = {
        "means, summed": (1 / images, 1),
        "means, averaged": (1 / images, 1 / replicas),
        "sums, summed": (1, 1),
        "sums, averaged": (1, 1 / replicas),
        "global means, averaged": (1 / images / replicas, 1 / replicas),
    }
    sums = {name: replicas * images * each * then for name, (each, then) in loops.items()}
    return sums | {"micro-batches, summed": micro_batches * replicas * images / (images * replicas)}


@right("factors")
def in_fractions(replicas, images, micro_batches):
    return {name: Fraction(value) for name, value in true_factors(replicas, images, micro_batches).items()} | {
        "global means, averaged": Fraction(1, replicas)
    }


ANSWERS.solved("factors", lambda *loop: true_factors(*loop), lambda *loop: dict.fromkeys(true_factors(*loop)))


# The losses of replicas


def mean_of(total, count):
    """What NumPy gives, without its warning."""
    return total / count if count else np.nan


@wrong("replica_losses", Hint.OWN_MEAN, Hint.OWN_MEAN, Hint.NOT_A_NUMBER)
def own_means(losses):
    return [mean_of(np.sum(own), len(own)) for own in losses]


@wrong("replica_losses", Hint.MEAN_OF_MEANS, Hint.NOT_A_NUMBER, share=THIRD)
def means_by_replicas(losses):
    return [mean_of(np.sum(own), len(own)) / len(losses) for own in losses]


@wrong("replica_losses", Hint.MEAN_OF_MEANS, Hint.MEAN_OF_MEANS, share=THIRD)
def careful_means_by_replicas(losses):
    return [(np.mean(own) if len(own) else 0.0) / len(losses) for own in losses]


@wrong("replica_losses", Hint.NOT_DIVIDED, Hint.NOT_DIVIDED, Hint.NOT_DIVIDED)
def sums(losses):
    return [np.sum(own) for own in losses]


@wrong("replica_losses", Hint.FULL_BATCH_ASSUMED, Hint.FULL_BATCH_ASSUMED, share=THIRD)
def as_if_full(losses):
    return [np.sum(own) / (len(losses) * len(losses[0])) for own in losses]


@wrong("replica_losses", Hint.OWN_MEAN, Hint.DIVIDED_BY_ONE_REPLICA, Hint.DIVIDED_BY_ONE_REPLICA)
def by_the_first(losses):
    return [np.sum(own) / len(losses[0]) for own in losses]


@wrong("replica_losses", Hint.ALL_THE_SAME, Hint.ALL_THE_SAME, Hint.ALL_THE_SAME)
def the_mean_everywhere(losses):
    return [np.mean(np.concatenate(losses))] * len(losses)


@wrong("replica_losses", Hint.SHARED_OUT, Hint.SHARED_OUT, Hint.SHARED_OUT)
def the_mean_shared_out(losses):
    return [np.mean(np.concatenate(losses)) / len(losses)] * len(losses)


@wrong("replica_losses", *[Hint.DIVIDED_BY_REPLICAS] * 3)
def by_the_replicas(losses):
    return [np.sum(own) / len(losses) for own in losses]


@wrong("replica_losses", *[NumberHint.ROUNDED] * 3)
def six_places(losses):
    return [round(float(loss), 6) for loss in losses_judge.replica_losses(losses)]


@wrong("replica_losses", *[Hint.ANOTHER_ORDER] * 3)
def last_replica_first(losses):
    return losses_judge.replica_losses(losses)[::-1]


@wrong(
    "replica_losses",
    "a replica without examples: wrong: ",
    " examples: it raised ZeroDivisionError",
    share=TWO_THIRDS,
)
def mean_in_pure_python(losses):
    examples = sum(map(len, losses))
    return [sum(own) / len(own) * len(own) / examples for own in map(list, losses)]


@wrong("replica_losses", "a replica without examples: not done yet: ", "`replica_losses` gives None", share=TWO_THIRDS)
def nothing_without_examples(losses):
    return losses_judge.replica_losses(losses) if all(map(len, losses)) else None


@wrong("replica_losses", "It raised SystemExit")
def leaves_the_program(losses):
    raise SystemExit("enough")


@wrong("replica_losses", Hint.NO_LIST, Hint.NO_LIST, Hint.NO_LIST)
def one_number(losses):
    return np.mean(np.concatenate(losses))


@wrong("replica_losses", Hint.NO_LIST, "yours gives a list of ", share=TWO_THIRDS)
def skips_the_empty(losses):
    return [part for own, part in zip(losses, losses_judge.replica_losses(losses), strict=True) if len(own)]


@wrong("replica_losses", *[Hint.NO_LIST] * 3, "of which item 0 is an array of shape (")
def a_number_for_each_example(losses):
    return [own / sum(map(len, losses)) for own in losses]


@wrong("replica_losses", Hint.NO_LIST, "is None.", share=TWO_THIRDS)
def none_for_the_empty(losses):
    return [part if part else None for part in losses_judge.replica_losses(losses)]


@wrong("replica_losses", *[Hint.NO_LIST] * 3, "yours gives an empty list.")
def counts_with_the_iterator(losses):
    iterator = iter(losses)
    examples = sum(len(own) for own in iterator)
    return [own.sum() / examples for own in iterator]


@wrong("replica_losses", *[Hint.NO_LIST] * 3, "yours gives a dict.")
def by_replica(losses):
    return dict(enumerate(losses_judge.replica_losses(losses)))


@wrong("replica_losses", *[Hint.NO_LIST] * 3, "yours gives an array of shape (")
def a_column(losses):
    return np.array(losses_judge.replica_losses(losses))[:, None]


@wrong("replica_losses", Hint.ANOTHER_ORDER, share=TWO_THIRDS)
def the_empty_one_last(losses):
    full = [own for own in losses if len(own)]
    return losses_judge.replica_losses(full) + [0.0] * (len(losses) - len(full))


@wrong("replica_losses", Hint.LOSS_OTHERWISE, Hint.NAN_WITH_DATA, share=THIRD)
def as_many_as_the_fewest(losses):
    fewest = min(map(len, losses))
    return [mean_of(np.sum(own[:fewest]), fewest) / len(losses) for own in losses]


@wrong("replica_losses", *[Hint.DIVIDED_AGAIN] * 3)
def by_all_and_by_replicas(losses):
    return np.array(losses_judge.replica_losses(losses)) / len(losses)


@wrong("replica_losses", Hint.LOSS_DIVISOR, Hint.LOSS_DIVISOR, share=THIRD)
def only_the_last_is_short(losses):
    examples = (len(losses) - 1) * len(losses[0]) + len(losses[-1])
    return [np.sum(own) / examples for own in losses]


@wrong("replica_losses", Hint.LOSS_OTHERWISE, Hint.LOSS_OTHERWISE, Hint.LOSS_OTHERWISE)
def largest_losses(losses):
    return [max(own, default=0) for own in losses]


@right("replica_losses")
def by_a_dot_product(losses):
    weights = 1 / len(np.concatenate(losses))
    return np.array([own @ np.full(len(own), weights) for own in losses])


ANSWERS.solved("replica_losses", lambda losses: losses_judge.replica_losses(losses))


# The penalty


def losses_of(losses):
    return np.array([own.sum() for own in losses]) / sum(own.size for own in losses)


@wrong("with_penalty", Hint.PENALTY_ON_EACH, Hint.PENALTY_ON_EACH, Hint.PENALTY_ON_EACH)
def whole_penalty(losses, penalty):
    return losses_of(losses) + penalty


@wrong("with_penalty", Hint.PENALTY_FORGOTTEN, Hint.PENALTY_FORGOTTEN, Hint.PENALTY_FORGOTTEN)
def no_penalty(losses, penalty):
    return losses_of(losses)


@wrong("with_penalty", Hint.PENALTY_BY_EXAMPLES, Hint.PENALTY_BY_EXAMPLES, Hint.PENALTY_BY_EXAMPLES)
def penalty_by_examples(losses, penalty):
    return losses_of(losses) + penalty / sum(map(len, losses))


@wrong("with_penalty", Hint.PENALTY_ON_ONE, Hint.PENALTY_ON_ONE, Hint.PENALTY_ON_ONE)
def penalty_on_the_first(losses, penalty):
    return [loss + (penalty if replica == 0 else 0) for replica, loss in enumerate(losses_of(losses))]


@wrong("with_penalty", Hint.MEAN_OF_MEANS, Hint.NOT_A_NUMBER, share=THIRD)
def own_means_and_penalty(losses, penalty):
    return [(mean_of(np.sum(own), len(own)) + penalty) / len(losses) for own in losses]


@wrong("with_penalty", Hint.PENALTY_NOT_ON_EMPTY, share=TWO_THIRDS)
def no_penalty_without_examples(losses, penalty):
    return losses_of(losses) + np.array([penalty / len(losses) if len(own) else 0.0 for own in losses])


@wrong("with_penalty", Hint.PENALTY_UNEVEN, share=TWO_THIRDS)
def split_among_those_with_examples(losses, penalty):
    filled = np.array([len(own) > 0 for own in losses])
    return losses_of(losses) + filled * penalty / filled.sum()


@wrong("with_penalty", Hint.PENALTY_UNEVEN, Hint.PENALTY_UNEVEN, share=THIRD)
def by_its_examples(losses, penalty):
    counts = np.array([len(own) for own in losses])
    return losses_of(losses) + counts / counts.sum() * penalty


@wrong("with_penalty", *[Hint.PENALTY_SUBTRACTED] * 3)
def less_the_penalty(losses, penalty):
    return losses_of(losses) - penalty / len(losses)


@wrong("with_penalty", *[Hint.PENALTY_SUM] * 3)
def times_the_replicas(losses, penalty):
    return losses_of(losses) + penalty * len(losses)


@wrong("with_penalty", *[Hint.PENALTY_SUM] * 3)
def by_the_square_of_replicas(losses, penalty):
    return losses_of(losses) + penalty / len(losses) ** 2


@wrong(
    "with_penalty",
    *[Hint.OWN_MEAN] * 3,
    "the penalty is right, the losses are not: each replica",
)
def penalty_on_own_means(losses, penalty):
    return [np.sum(own) / max(len(own), 1) + penalty / len(losses) for own in losses]


@wrong("with_penalty", *[Hint.OWN_MEAN] * 3, "the penalty is wrong, and so are the losses: each replica has")
def whole_penalty_on_own_means(losses, penalty):
    return [np.sum(own) / max(len(own), 1) + penalty for own in losses]


@wrong("with_penalty", *[Hint.NOT_DIVIDED] * 3)
def penalty_on_sums(losses, penalty):
    return [np.sum(own) + penalty / len(losses) for own in losses]


@wrong("with_penalty", Hint.FULL_BATCH_ASSUMED, Hint.FULL_BATCH_ASSUMED, share=THIRD)
def penalty_on_full_batches(losses, penalty):
    return [np.sum(own) / (len(losses) * len(losses[0])) + penalty / len(losses) for own in losses]


@wrong("with_penalty", *[Hint.DIVIDED_AGAIN] * 3)
def all_by_replicas(losses, penalty):
    return (losses_of(losses) + penalty) / len(losses)


@wrong("with_penalty", *[Hint.PENALTY_BY_OWN_EXAMPLES] * 2, "it raised ZeroDivisionError")
def penalty_by_own_examples(losses, penalty):
    return [loss + penalty / len(own) for loss, own in zip(losses_of(losses), losses, strict=True)]


@wrong("with_penalty", *[Hint.LOSSES_MISSING] * 3)
def penalty_alone(losses, penalty):
    return [penalty / len(losses)] * len(losses)


@wrong("with_penalty", *[Hint.PENALTY_TIMES_LOSS] * 3)
def times_one_and_the_penalty(losses, penalty):
    return losses_of(losses) * (1 + penalty)


@wrong("with_penalty", *[Hint.PENALTY_OTHERWISE] * 3)
def penalty_on_squares(losses, penalty):
    return losses_of(losses) + penalty * losses_of(losses) ** 2


@wrong("with_penalty", *[Hint.PENALTY_PARTS] * 3)
def all_on_the_first(losses, penalty):
    return [sum(penalty_judge.with_penalty(losses, penalty))] + [0.0] * (len(losses) - 1)


@wrong("with_penalty", *[Hint.NO_LIST] * 3, "yours gives a list of ")
def one_number_more(losses, penalty):
    return [*losses_of(losses), penalty]


@wrong("with_penalty", *[Hint.EXERCISE_2_FIRST] * 3)
def on_an_empty_exercise_2(losses, penalty):
    return [loss + penalty / len(losses) for loss in None]


@wrong("with_penalty", *[NumberHint.ROUNDED] * 3)
def in_float32(losses, penalty):
    return np.float32(penalty_judge.with_penalty(losses, penalty))


@right("with_penalty")
def penalty_by_replicas(losses, penalty):
    examples = np.concatenate(losses).size
    return tuple((sum(own) * len(losses) + penalty * examples) / (examples * len(losses)) for own in losses)


ANSWERS.solved("with_penalty", lambda losses, penalty: penalty_judge.with_penalty(losses, penalty))


# Accumulated gradients


def weighted(gradients, counts):
    """The sums over the images of each micro-batch."""
    return np.where(counts[..., None] > 0, gradients, 0) * counts[..., None]


@wrong("accumulated", Hint.MEAN_OF_ALL_MEANS, Hint.NAN_GRADIENT, share=THIRD)
def mean_of_means(gradients, counts):
    return gradients.mean(axis=(0, 1))


@wrong("accumulated", Hint.MEAN_OF_ALL_MEANS, Hint.MEAN_OF_ALL_MEANS, share=THIRD)
def mean_without_nan(gradients, counts):
    return np.nanmean(gradients, axis=(0, 1))


@wrong("accumulated", Hint.MICRO_BATCHES_SUMMED, Hint.MEANS_ADDED, Hint.MEANS_ADDED)
def micro_batches_added(gradients, counts):
    return np.nansum(gradients, axis=1).mean(axis=0)


@wrong("accumulated", Hint.NAN_GRADIENT, share=TWO_THIRDS)
def nothing_times_nan(gradients, counts):
    return (gradients * counts[..., None]).sum(axis=(0, 1)) / counts.sum()


@wrong("accumulated", Hint.WEIGHTED_PER_RANK, Hint.WEIGHTED_PER_RANK, share=THIRD)
def ranks_count_equally(gradients, counts):
    sums = np.nansum(gradients * counts[..., None], axis=1)
    return (sums / counts.sum(axis=1)[:, None]).mean(axis=0)


@wrong("accumulated", Hint.WEIGHTED_PER_STEP, Hint.WEIGHTED_PER_STEP, share=THIRD)
def micro_batches_count_equally(gradients, counts):
    sums = np.nansum(gradients * counts[..., None], axis=0)
    return (sums / counts.sum(axis=0)[:, None]).mean(axis=0)


@wrong("accumulated", Hint.GRADIENTS_NOT_DIVIDED, Hint.GRADIENTS_NOT_DIVIDED, Hint.GRADIENTS_NOT_DIVIDED)
def sums_over_images(gradients, counts):
    return np.nansum(gradients * counts[..., None], axis=(0, 1))


@wrong("accumulated", Hint.FULL_MICRO_BATCHES, Hint.FULL_MICRO_BATCHES, share=THIRD)
def as_if_all_were_full(gradients, counts):
    return sums_over_images(gradients, counts) / (counts.max() * counts.size)


@wrong("accumulated", Hint.MICRO_BATCHES_SUMMED, Hint.MEANS_ADDED, Hint.NAN_GRADIENT)
def plain_sum(gradients, counts):
    return gradients.sum(axis=(0, 1))


@wrong("accumulated", *[Hint.IMAGES_MISSING] * 3)
def two_ranks_only(gradients, counts):
    return weighted(gradients, counts)[:2].sum(axis=(0, 1)) / counts[:2].sum()


@wrong("accumulated", *[Hint.IMAGES_MISSING] * 3, "Which ranks, or which micro-batches, are missing?")
def the_last_micro_batch_alone(gradients, counts):
    return weighted(gradients, counts)[:, -1].sum(axis=0) / counts[:, -1].sum()


@wrong("accumulated", Hint.LEFT_OUT_WITH_EMPTY, share=TWO_THIRDS)
def without_the_rank_of_the_empty_one(gradients, counts):
    full = counts.all(axis=1)
    return accumulation.accumulated(gradients[full], counts[full])


@wrong("accumulated", Hint.LEFT_OUT_WITH_EMPTY, share=TWO_THIRDS)
def without_the_step_of_the_empty_one(gradients, counts):
    full = counts.all(axis=0)
    return accumulation.accumulated(gradients[:, full], counts[:, full])


@wrong("accumulated", Hint.RANKS_ADDED, Hint.MEANS_ADDED, Hint.MEANS_ADDED)
def by_the_micro_batches_of_a_rank(gradients, counts):
    return np.nansum(gradients, axis=(0, 1)) / counts.shape[1]


@wrong("accumulated", *[Hint.DIVIDED_BY_RANKS_TOO] * 3)
def averaged_by_horovod_too(gradients, counts):
    return (weighted(gradients, counts).sum(axis=1) / counts.sum()).mean(axis=0)


@wrong("accumulated", Hint.RANKS_ADDED, *[Hint.DIVIDED_BY_ONE_RANK] * 2)
def means_of_ranks_added(gradients, counts):
    return (weighted(gradients, counts).sum(axis=1) / counts.sum(axis=1)[:, None]).sum(axis=0)


@wrong("accumulated", Hint.WEIGHTED_BETWEEN_RANKS, Hint.WEIGHTED_BETWEEN_RANKS, share=THIRD)
def ranks_weighted_alone(gradients, counts):
    return np.average(np.nanmean(gradients, axis=1), axis=0, weights=counts.sum(axis=1))


@wrong("accumulated", Hint.COUNTS_MIXED_UP, Hint.COUNTS_MIXED_UP, share=THIRD)
def counts_of_others(gradients, counts):
    means = np.nan_to_num(gradients).reshape(-1, gradients.shape[2])
    return np.average(means, axis=0, weights=counts.T.ravel())


@wrong("accumulated", *[Hint.PARAMETERS_ORDER] * 3)
def last_parameter_first(gradients, counts):
    return accumulation.accumulated(gradients, counts)[::-1]


@wrong("accumulated", *[Hint.ACCUMULATED_DIVISOR] * 3)
def by_all_and_by_micro_batches(gradients, counts):
    return accumulation.accumulated(gradients, counts) / counts.shape[1]


@wrong("accumulated", *[Hint.NAN_WITHOUT_EMPTY] * 2, Hint.NAN_GRADIENT)
def nan_everywhere(gradients, counts):
    return gradients[0, 0] * np.nan


@wrong("accumulated", *[Hint.NO_GRADIENT] * 3, "yours gives an array of shape (1, ")
def one_row(gradients, counts):
    return accumulation.accumulated(gradients, counts)[None]


@wrong("accumulated", *[Hint.NO_GRADIENT] * 3, "yours gives one number.")
def one_number_for_all(gradients, counts):
    return accumulation.accumulated(gradients, counts).mean()


@wrong("accumulated", *[Hint.MEANS_BY_COUNTS] * 3)
def means_divided_by_images(gradients, counts):
    return np.nansum(gradients / np.maximum(counts, 1)[..., None], axis=(0, 1))


@wrong("accumulated", *[Hint.DIVIDED_BY_MICRO_BATCHES] * 3)
def sums_by_micro_batches(gradients, counts):
    return sums_over_images(gradients, counts) / counts.size


@wrong("accumulated", *[NumberHint.ROUNDED] * 3)
def rounded_gradient(gradients, counts):
    return np.round(accumulation.accumulated(gradients, counts), 6)


@wrong("accumulated", "a micro-batch without images: wrong: ", "it raised ValueError", share=TWO_THIRDS)
def refuses_nothing(gradients, counts):
    if not counts.all():
        raise ValueError("no images")
    return accumulation.accumulated(gradients, counts)


@wrong("accumulated", Hint.NO_GRADIENT, Hint.NO_GRADIENT, Hint.NO_GRADIENT)
def for_each_rank(gradients, counts):
    return np.nansum(gradients * counts[..., None], axis=1) / counts.sum()


@wrong("accumulated", Hint.ACCUMULATED_OTHERWISE, Hint.ACCUMULATED_OTHERWISE, Hint.ACCUMULATED_OTHERWISE)
def the_first_alone(gradients, counts):
    return gradients[0, 0]


@right("accumulated")
def by_weights(gradients, counts):
    present = counts.ravel() > 0
    return np.average(gradients.reshape(-1, gradients.shape[2])[present], axis=0, weights=counts.ravel()[present])


ANSWERS.solved("accumulated", lambda gradients, counts: accumulation.accumulated(gradients, counts))


# Masks


def words_of(masks):
    return sum(mask.sum() for mask in masks)


@wrong("masked_losses", Hint.OWN_WORDS, Hint.OWN_WORDS, Hint.NOT_A_NUMBER)
def own_masked_means(losses, masks):
    return [mean_of(np.sum(own * mask), mask.sum()) for own, mask in zip(losses, masks, strict=True)]


@wrong("masked_losses", Hint.MEAN_OF_REPLICAS, Hint.MEAN_OF_REPLICAS, share=THIRD)
def mean_of_the_replicas(losses, masks):
    return [np.sum(own * mask) / max(mask.sum(), 1) / len(losses) for own, mask in zip(losses, masks, strict=True)]


@wrong("masked_losses", Hint.PADDING_COUNTED, Hint.PADDING_COUNTED, Hint.PADDING_COUNTED)
def by_all_positions(losses, masks):
    return [np.sum(own * mask) / sum(map(np.size, masks)) for own, mask in zip(losses, masks, strict=True)]


@wrong("masked_losses", Hint.PADDING_ADDED, Hint.PADDING_ADDED, Hint.PADDING_ADDED)
def padding_too(losses, masks):
    return [np.sum(own) / words_of(masks) for own in losses]


@wrong("masked_losses", Hint.MASKS_UNUSED, Hint.MASKS_UNUSED, Hint.MASKS_UNUSED)
def without_masks(losses, masks):
    return [np.sum(own) / sum(map(np.size, losses)) for own in losses]


@wrong("masked_losses", *[Hint.BY_SEQUENCES] * 3)
def sums_by_sequences(losses, masks):
    return np.array(sums_of_words(losses, masks)) / sum(map(len, masks))


@wrong("masked_losses", *[Hint.UPSIDE_DOWN_MASK] * 3)
def padding_alone(losses, masks):
    padding = sum((1 - mask).sum() for mask in masks)
    return [np.sum(own * (1 - mask)) / padding for own, mask in zip(losses, masks, strict=True)]


@wrong("masked_losses", *[Hint.BITS_TURNED] * 3)
def bits_of_integers(losses, masks):
    padding = sum((~mask).sum() for mask in masks)
    return [np.sum(own * ~mask) / padding for own, mask in zip(losses, masks, strict=True)]


@wrong("masked_losses", *[Hint.ROWS_PICKED] * 3)
def masks_as_indices(losses, masks):
    return [own[mask].sum() / words_of(masks) for own, mask in zip(losses, masks, strict=True)]


@wrong("masked_losses", Hint.WORDS_OF_ONE_REPLICA, Hint.WORDS_OF_ONE_REPLICA, share=THIRD)
def words_of_the_first(losses, masks):
    return np.array(sums_of_words(losses, masks)) / (masks[0].sum() * len(masks))


@wrong("masked_losses", *[Hint.MASKED_DIVISOR] * 3)
def masked_by_replicas(losses, masks):
    return np.array(sums_of_words(losses, masks)) / len(masks)


@wrong("masked_losses", Hint.NO_LIST, "yours gives a list of 2 numbers.", share=TWO_THIRDS)
def skips_padding(losses, masks):
    return [part for part in masks_judge.masked_losses(losses, masks) if part]


@wrong("masked_losses", *[Hint.SEQUENCE_MEANS] * 3)
def means_of_sequences(losses, masks):
    sequences = sum(map(len, masks))
    return [
        np.sum(np.sum(own * mask, axis=1) / np.maximum(mask.sum(axis=1), 1)) / sequences
        for own, mask in zip(losses, masks, strict=True)
    ]


@wrong("masked_losses", *[Hint.ZEROS_LEFT_OUT] * 3)
def words_by_their_losses(losses, masks):
    words = sum(np.count_nonzero(own * mask) for own, mask in zip(losses, masks, strict=True))
    return [np.sum(own * mask) / words for own, mask in zip(losses, masks, strict=True)]


@wrong("masked_losses", *[Hint.SHARED_OUT] * 3)
def the_mean_in_equal_parts(losses, masks):
    return [sum(masks_judge.masked_losses(losses, masks)) / len(losses)] * len(losses)


@wrong("masked_losses", "a replica of padding only: wrong: ", "it raised ZeroDivisionError", share=TWO_THIRDS)
def average_of_each(losses, masks):
    own = [np.average(loss, weights=mask) * mask.sum() for loss, mask in zip(losses, masks, strict=True)]
    return np.array(own) / words_of(masks)


@wrong("masked_losses", Hint.MASKED_NOT_DIVIDED, Hint.MASKED_NOT_DIVIDED, Hint.MASKED_NOT_DIVIDED)
def sums_of_words(losses, masks):
    return [np.sum(own * mask) for own, mask in zip(losses, masks, strict=True)]


@wrong("masked_losses", Hint.MASKED_OTHERWISE, Hint.MASKED_OTHERWISE, Hint.MASKED_OTHERWISE)
def largest_words(losses, masks):
    return [np.max(own * mask) for own, mask in zip(losses, masks, strict=True)]


@right("masked_losses")
def by_selection(losses, masks):
    return [own[mask == 1].sum() / words_of(masks) for own, mask in zip(losses, masks, strict=True)]


ANSWERS.solved("masked_losses", lambda losses, masks: masks_judge.masked_losses(losses, masks))


# Other ways to make mistakes that are above


@AGAIN.wrong("replica_losses", Hint.MEAN_OF_MEANS, Hint.MEAN_OF_MEANS, share=THIRD)
def mean_of_replicas_with_examples(losses):
    filled = sum(len(own) > 0 for own in losses)
    return [np.mean(own) / filled if len(own) else 0.0 for own in losses]


@AGAIN.wrong("accumulated", Hint.NAN_GRADIENT, share=TWO_THIRDS)
def expects_the_empty_one_last(gradients, counts):
    full = np.ones(counts.shape, bool)
    full[-1, -1] = counts[-1, -1] > 0
    return np.average(gradients[full], axis=0, weights=counts[full])


@AGAIN.wrong("accumulated", Hint.RANKS_ADDED, *[Hint.DIVIDED_BY_ONE_RANK] * 2)
def by_the_first_rank(gradients, counts):
    return sums_over_images(gradients, counts) / counts[0].sum()


@AGAIN.wrong("masked_losses", *[Hint.SEQUENCE_MEANS] * 3)
def means_of_sequences_then_replicas(losses, masks):
    pairs = zip(losses, masks, strict=True)
    means = [np.mean(np.sum(own * mask, axis=1) / np.maximum(mask.sum(axis=1), 1)) for own, mask in pairs]
    return np.array(means) / len(losses)


@AGAIN.wrong("masked_losses", *[Hint.UPSIDE_DOWN_MASK] * 3)
def masked_arrays(losses, masks):
    return [np.ma.array(own, mask=mask).sum() / words_of(masks) for own, mask in zip(losses, masks, strict=True)]
