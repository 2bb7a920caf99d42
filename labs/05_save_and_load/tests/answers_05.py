"""Answers to the exercises of lab 05 that need no TensorFlow, as students give them."""

import numpy as np
from lab_05 import positions, whole_checkpoints
from lab_05.hints import Lab05Hint

from tests.distlab.labs.known_wrong import LabAnswers

ANSWERS = LabAnswers()
wrong, right = ANSWERS.wrong, ANSWERS.right
Hint = Lab05Hint
HALF = 0.5
GOES_ON = np.random.default_rng(0)


# The images of a step


def epoch_and_place(step, images, batch):
    return divmod(step, images // batch)


def cut(order, place, batch):
    return order[place * batch : (place + 1) * batch]


@wrong("numbers_of", Hint.DEPENDS_ON_CALLS)
def generator_that_goes_on(step, images, batch, seed):
    _, place = epoch_and_place(step, images, batch)
    return cut(GOES_ON.permutation(images), place, batch)


@wrong("numbers_of", Hint.TWICE_IN_EPOCH)
def shuffled_in_each_step(step, images, batch, seed):
    return np.random.default_rng([seed, step]).permutation(images)[:batch]


@wrong("numbers_of", Hint.SAME_EVERY_EPOCH)
def same_order_in_each_epoch(step, images, batch, seed):
    _, place = epoch_and_place(step, images, batch)
    return cut(np.random.default_rng(seed).permutation(images), place, batch)


@wrong("numbers_of", Hint.SAME_FOR_EVERY_SEED)
def without_the_seed(step, images, batch, seed):
    epoch, place = epoch_and_place(step, images, batch)
    return cut(np.random.default_rng(epoch).permutation(images), place, batch)


@wrong("numbers_of", Hint.NEVER_USED)
def cut_before_it_is_shuffled(step, images, batch, seed):
    epoch, place = epoch_and_place(step, images, batch)
    return cut(np.random.default_rng([seed, epoch]).permutation(images // batch * batch), place, batch)


@wrong("numbers_of", Hint.ONLY_SHIFTED)
def shifted_by_the_epoch(step, images, batch, seed):
    epoch, place = epoch_and_place(step, images, batch)
    return cut(np.roll(np.arange(images), epoch + seed), place, batch)


@wrong("numbers_of", Hint.ONLY_BATCHES)
def batches_shuffled(step, images, batch, seed):
    epoch, place = epoch_and_place(step, images, batch)
    places = np.random.default_rng([seed, epoch]).permutation(images // batch)
    return cut(np.arange(images), places[place], batch)


@wrong("numbers_of", Hint.NO_NUMBERS)
def a_last_batch_that_is_smaller(step, images, batch, seed):
    epoch, place = divmod(step, -(-images // batch))
    return cut(np.random.default_rng([seed, epoch]).permutation(images), place, batch)


@wrong("numbers_of", Hint.TWICE_IN_STEP)
def drawn_with_replacement(step, images, batch, seed):
    epoch, place = epoch_and_place(step, images, batch)
    return cut(np.random.default_rng([seed, epoch]).integers(0, images, images), place, batch)


@wrong("numbers_of", Hint.NOT_SHUFFLED_AGAIN)
def one_order_that_begins_elsewhere(step, images, batch, seed):
    epoch, place = epoch_and_place(step, images, batch)
    return cut(np.roll(np.random.default_rng(seed).permutation(images), epoch), place, batch)


@wrong("numbers_of", Hint.NOT_SHUFFLED_AGAIN)
def backwards_in_every_second_epoch(step, images, batch, seed):
    epoch, place = epoch_and_place(step, images, batch)
    order = np.random.default_rng([seed, epoch // 2]).permutation(images)
    return cut(order[::-1] if epoch % 2 else order, place, batch)


@wrong("numbers_of", Hint.SAME_EVERY_EPOCH)
def same_order_in_two_epochs(step, images, batch, seed):
    epoch, place = epoch_and_place(step, images, batch)
    return cut(np.random.default_rng([seed, (epoch + 1) // 2]).permutation(images), place, batch)


@wrong("numbers_of", Hint.SEED_DOES_NOT_SHUFFLE)
def seed_added_to_the_numbers(step, images, batch, seed):
    epoch, place = epoch_and_place(step, images, batch)
    return cut((np.random.default_rng(epoch).permutation(images) + seed) % images, place, batch)


@wrong("numbers_of", Hint.SAME_FOR_SEEDS_IN_AN_EPOCH)
def seed_times_epoch(step, images, batch, seed):
    epoch, place = epoch_and_place(step, images, batch)
    return cut(np.random.default_rng((seed + 1) * epoch).permutation(images), place, batch)


@wrong("numbers_of", Hint.NO_NUMBERS, "not whole numbers")
def floats(step, images, batch, seed):
    return positions.numbers_of(step, images, batch, seed) * 1.0


@wrong("numbers_of", Hint.NO_NUMBERS, "shape (1, ")
def in_a_row(step, images, batch, seed):
    return positions.numbers_of(step, images, batch, seed)[None]


@right("numbers_of")
def seed_plus_epoch(step, images, batch, seed):
    epoch, place = epoch_and_place(step, images, batch)
    return cut(np.random.default_rng(seed + epoch).permutation(images), place, batch)


@wrong("numbers_of", Hint.NO_NUMBERS)
def from_one(step, images, batch, seed):
    return positions.numbers_of(step, images, batch, seed) + 1


@right("numbers_of")
def another_generator_and_a_list(step, images, batch, seed):
    epoch, place = epoch_and_place(step, images, batch)
    order = list(range(images))
    np.random.RandomState(1000 * seed + epoch).shuffle(order)
    return cut(order, place, batch)


ANSWERS.solved("numbers_of", positions.numbers_of)


# What a checkpoint lacks


def likeness(before, after):
    """By name of what a record holds, whether it is equal in two records."""
    factors = np.array(after["changes"]) / np.array(before["changes"])
    return {
        "data position": after["numbers"] == before["numbers"],
        "random state": after["mask"] == before["mask"],
        "weights": np.isclose(after["loss"], before["loss"], atol=0),
        "learning rate": after["learning_rate"] == before["learning_rate"],
        "averages": np.allclose(factors, factors[0]),
    }


def first_that_differs(same, order=("data position", "random state", "weights", "learning rate", "averages")):
    return next((part for part in order if not same[part]), "step count")


def true_lacks(straight, resumed):
    return first_that_differs(likeness(straight[0], resumed[0]))


@wrong("lacks", Hint.NOT_AVERAGES, Hint.NOT_STEP_COUNT, Hint.NOT_LEARNING_RATE, share=3 / 6)
def last_step(straight, resumed):
    return first_that_differs(likeness(straight[-1], resumed[-1]))


@wrong("lacks", *[Hint.COMPARED_EXACTLY] * 3, share=3 / 6)
def exactly_the_same_loss(straight, resumed):
    same = likeness(straight[0], resumed[0])
    return first_that_differs(same | {"weights": straight[0]["loss"] == resumed[0]["loss"]})


@wrong("lacks", Hint.NOT_POSITION, Hint.NOT_RANDOM, share=4 / 6)
def loss_before_what_it_depends_on(straight, resumed):
    order = ("weights", "data position", "random state", "learning rate", "averages")
    return first_that_differs(likeness(straight[0], resumed[0]), order)


@wrong("lacks", Hint.NOT_STEP_COUNT, share=5 / 6)
def any_change_of_the_changes(straight, resumed):
    part = true_lacks(straight, resumed)
    return "averages" if part == "step count" else part


@wrong("lacks", Hint.NOT_AVERAGES, Hint.NOT_STEP_COUNT, share=4 / 6)
def averages_and_count_exchanged(straight, resumed):
    part = true_lacks(straight, resumed)
    return {"averages": "step count", "step count": "averages"}.get(part, part)


@wrong("lacks", Hint.NOT_STEP_COUNT, share=5 / 6)
def a_lost_count_makes_every_change_larger(straight, resumed):
    part = true_lacks(straight, resumed)
    grows = abs(resumed[0]["changes"][0]) > abs(straight[0]["changes"][0])
    return "averages" if part == "step count" and not grows else part


@wrong("lacks", "KeyError", share=5 / 6)
def an_error_for_one_part(straight, resumed):
    part = true_lacks(straight, resumed)
    return {}[part] if part == "step count" else part


@wrong("lacks", "gives None", share=4 / 6)
def nothing_for_two_parts(straight, resumed):
    part = true_lacks(straight, resumed)
    return None if part in ("step count", "averages") else part


@wrong("lacks", Hint.NOT_LEARNING_RATE, share=5 / 6)
def rate_not_looked_at(straight, resumed):
    return first_that_differs(likeness(straight[0], resumed[0]) | {"learning rate": True})


@wrong("lacks", Hint.NOT_WEIGHTS, share=5 / 6)
def loss_not_looked_at(straight, resumed):
    return first_that_differs(likeness(straight[0], resumed[0]) | {"weights": True})


@wrong("lacks", *[Hint.UNKNOWN_PART] * 6)
def in_other_words(straight, resumed):
    return "the momentum"


@right("lacks")
def by_the_spread_of_the_factors(straight, resumed):
    before, after = straight[0], resumed[0]
    same = likeness(before, after)
    factors = np.divide(after["changes"], before["changes"])
    return first_that_differs(same | {"averages": np.ptp(factors) < 0.001})


ANSWERS.solved("lacks", true_lacks)


# Which checkpoint to use

true_housekeeping = whole_checkpoints.housekeeping


def by_rule(is_whole, newest=max):
    """Housekeeping with another rule for what is whole, or which one is the newest."""

    def housekeeping(checkpoints, keep):
        whole = sorted(files["number"] for files in checkpoints if is_whole(files))
        if not whole:
            return {"resume": None, "delete": []}
        older = [files["number"] for files in checkpoints if files["number"] < whole[-1]]
        return {"resume": newest(whole), "delete": [number for number in older if number not in whole[-keep:]]}

    return housekeeping


def whole(files):
    return files["index"] and all(files["data"])


def resume(rule):
    """The right numbers to delete, and another one to resume from."""
    return lambda checkpoints, keep: true_housekeeping(checkpoints, keep) | {"resume": rule(checkpoints)}


def delete(rule):
    """The right number to resume from, and others to delete."""
    return lambda checkpoints, keep: true_housekeeping(checkpoints, keep) | {"delete": rule(checkpoints, keep)}


def numbers(checkpoints, is_chosen):
    return [files["number"] for files in checkpoints if is_chosen(files)]


HOUSEKEEPING = {
    "index not looked at": (by_rule(lambda files: all(files["data"])), (Hint.RESUMES_WITHOUT_INDEX, Hint.DELETES_KEPT)),
    "index may be empty": (
        by_rule(lambda files: files["index"] is not None and all(files["data"])),
        (Hint.RESUMES_WITHOUT_INDEX, Hint.DELETES_NEWER),
    ),
    "any data file": (
        by_rule(lambda files: files["index"] and any(files["data"])),
        (Hint.RESUMES_WITHOUT_DATA, Hint.DELETES_KEPT),
    ),
}


def add_wrong_housekeeping():
    first_listed = resume(lambda checkpoints: next(iter(numbers(checkpoints, whole)), None))
    oldest = resume(lambda checkpoints: min(numbers(checkpoints, whole), default=None))
    zero = resume(lambda checkpoints: max(numbers(checkpoints, whole), default=0))
    none_for_zero = resume(lambda checkpoints: max(numbers(checkpoints, whole), default=0) or None)
    for title, answer, hint in (
        ("first whole one listed", first_listed, Hint.RESUMES_OLDER),
        ("oldest whole one", oldest, Hint.RESUMES_OLDER),
        ("0 if there is none", zero, Hint.RESUMES_WITHOUT_WHOLE),
        ("never", resume(lambda checkpoints: None), Hint.RESUMES_NOTHING),
        ("none if it is 0", none_for_zero, Hint.RESUMES_NOTHING),
        ("newest, whole or not", resume(lambda every: max(numbers(every, bool), default=None)), None),
    ):
        hints = [hint] if hint else []
        ANSWERS.wrong_value("housekeeping", title, answer, *hints, share=HALF)

    def of_newest(checkpoints):
        return max(numbers(checkpoints, whole), default=0)

    def all_damaged(checkpoints, keep):
        right_ones = true_housekeeping(checkpoints, keep)["delete"]
        return [
            *right_ones,
            *numbers(checkpoints, lambda files: not whole(files) and files["number"] not in right_ones),
        ]

    def all_where_none_is_whole(checkpoints, keep):
        return (
            true_housekeeping(checkpoints, keep)["delete"]
            if numbers(checkpoints, whole)
            else numbers(checkpoints, bool)
        )

    def whole_only(checkpoints, keep):
        return sorted(numbers(checkpoints, whole))[:-keep]

    def damaged_only(checkpoints, keep):
        return numbers(checkpoints, lambda files: not whole(files) and files["number"] < of_newest(checkpoints))

    def one_kept(checkpoints, keep):
        return numbers(checkpoints, lambda files: files["number"] < of_newest(checkpoints))

    for title, rule, hint in (
        ("all damaged ones", all_damaged, Hint.DELETES_NEWER),
        ("all where none is whole", all_where_none_is_whole, Hint.DELETES_WITHOUT_WHOLE),
        ("no damaged one", whole_only, Hint.KEEPS_DAMAGED),
        ("damaged ones only", damaged_only, Hint.KEEPS_OLD),
        ("all but one", one_kept, Hint.DELETES_KEPT),
        ("nothing", lambda checkpoints, keep: [], Hint.DELETES_NOTHING),
        ("each twice", lambda *folder: 2 * true_housekeeping(*folder)["delete"], Hint.DELETES_TWICE),
        ("a single number", lambda checkpoints, keep: 3, Hint.NO_LIST),
        ("names", lambda checkpoints, keep: ["ckpt-3"], Hint.DELETES_UNKNOWN),
    ):
        ANSWERS.wrong_value("housekeeping", title, delete(rule), hint, share=HALF)


add_wrong_housekeeping()
for title, (answer, hints) in HOUSEKEEPING.items():
    ANSWERS.wrong_value("housekeeping", title, answer, *hints)
ANSWERS.wrong_value("housekeeping", "a number alone", lambda checkpoints, keep: 11, Hint.NO_DICTIONARY)


@wrong("housekeeping", "keep=2, it raised ValueError")
def newest_of_none(checkpoints, keep):
    max(numbers(checkpoints, whole))
    return true_housekeeping(checkpoints, keep)


@wrong("housekeeping", "keep=2, `housekeeping` gives None")
def nothing_without_a_whole_one(checkpoints, keep):
    return true_housekeeping(checkpoints, keep) if numbers(checkpoints, whole) else None


@wrong("housekeeping", Hint.NO_DICTIONARY, 'without "delete"')
def one_name_only(checkpoints, keep):
    return {"resume": true_housekeeping(checkpoints, keep)["resume"]}


@right("housekeeping")
def by_going_back(checkpoints, keep):
    newest, kept, to_delete = None, 0, []
    for files in sorted(checkpoints, key=lambda files: -files["number"]):
        is_whole = None not in (files["index"], *files["data"]) and 0 not in (files["index"], *files["data"])
        if is_whole and newest is None:
            newest = files["number"]
        kept += is_whole
        if newest is not None and (not is_whole or kept > keep):
            to_delete.append(files["number"])
    return {"resume": newest, "delete": to_delete}


ANSWERS.solved("housekeeping", true_housekeeping)
