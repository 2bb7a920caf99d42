"""Answers to lab 04 as students give them."""

from fractions import Fraction

import numpy as np

from distlab.labs.lab_04 import accumulation
from distlab.labs.lab_04 import masked_losses as masks_judge
from distlab.labs.lab_04 import replica_losses as losses_judge
from distlab.labs.lab_04.factors import factors as true_factors
from distlab.labs.lab_04.hints import Lab04Hint
from distlab.labs.number_judge import NumberHint
from tests.labs.known_wrong import LabAnswers

ANSWERS = LabAnswers()
wrong, right = ANSWERS.wrong, ANSWERS.right
Hint = Lab04Hint
TWO_THIRDS, THIRD = 2 / 3, 1 / 3


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
    ("something_else", "micro-batches, summed", lambda r, i, m: m + 0.5, Hint.FACTOR_OTHERWISE),
    ("a_text", "sums, summed", lambda r, i, m: "r * i", NumberHint.NOT_A_NUMBER),
    ("two_places", "global means, averaged", lambda r, i, m: round(1 / r, 2), NumberHint.ROUNDED),
):
    ANSWERS.wrong_value("factors", title, but_for(name, value), hint, share=5 / 6)


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
    "and 0 examples: it raised ZeroDivisionError",
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


@wrong("with_penalty", Hint.PENALTY_OTHERWISE, Hint.NOT_A_NUMBER, share=THIRD)
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


@wrong("with_penalty", *[NumberHint.ROUNDED] * 3)
def in_float32(losses, penalty):
    return np.float32(losses_judge.with_penalty(losses, penalty))


@right("with_penalty")
def penalty_by_replicas(losses, penalty):
    examples = np.concatenate(losses).size
    return tuple((sum(own) * len(losses) + penalty * examples) / (examples * len(losses)) for own in losses)


ANSWERS.solved("with_penalty", lambda losses, penalty: losses_judge.with_penalty(losses, penalty))


# Accumulated gradients


@wrong("accumulated", Hint.MEAN_OF_ALL_MEANS, Hint.NAN_GRADIENT, share=THIRD)
def mean_of_means(gradients, counts):
    return gradients.mean(axis=(0, 1))


@wrong("accumulated", Hint.MEAN_OF_ALL_MEANS, Hint.MEAN_OF_ALL_MEANS, share=THIRD)
def mean_without_nan(gradients, counts):
    return np.nanmean(gradients, axis=(0, 1))


@wrong("accumulated", Hint.MICRO_BATCHES_SUMMED, Hint.MICRO_BATCHES_SUMMED, Hint.MICRO_BATCHES_SUMMED)
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


@wrong("accumulated", *[Hint.ACCUMULATED_OTHERWISE] * 3)
def means_divided_by_images(gradients, counts):
    return np.nansum(gradients / np.maximum(counts, 1)[..., None], axis=(0, 1))


@wrong("accumulated", *[Hint.DIVIDED_BY_MICRO_BATCHES] * 3)
def sums_by_micro_batches(gradients, counts):
    return sums_over_images(gradients, counts) / counts.size


@wrong("accumulated", *[NumberHint.ROUNDED] * 3)
def rounded_gradient(gradients, counts):
    return np.round(accumulation.accumulated(gradients, counts), 6)


@wrong("accumulated", *[Hint.ACCUMULATED_OTHERWISE] * 3)
def by_the_first_rank(gradients, counts):
    return sums_over_images(gradients, counts) / counts[0].sum()


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


@wrong("masked_losses", Hint.BY_SEQUENCES, Hint.BY_SEQUENCES, Hint.BY_SEQUENCES)
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
