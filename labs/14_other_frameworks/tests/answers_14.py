"""Answers to lab 14 as students give them."""

import numpy as np
from lab_14.fake_torch import cross_entropy
from lab_14.given import LINES, LOGS
from lab_14.hints import Lab14Hint as Hint
from lab_14.hints import Lab14PuzzleHint as Puzzle

from distlab.labs.number_judge import NumberHint
from distlab.labs.puzzle_layout import LayoutHint
from tests.distlab.labs.known_wrong import LabAnswers, written_solution

ANSWERS = LabAnswers()
wrong, right = ANSWERS.wrong, ANSWERS.right

# The puzzle

SOLUTION = written_solution("14", "program")


def without(*cards):
    return [name for name in SOLUTION if name not in cards]


def placed(card, before, layout=None):
    layout = [name for name in layout or SOLUTION if name != card]
    layout.insert(layout.index(before), card)
    return layout


def instead(card, replacement):
    return [replacement if name == card else name for name in SOLUTION]


def wrong_program(title, layout, *hints, wrong_steps=1):
    ANSWERS.wrong_value("program", title, layout, *hints, share=(8 - wrong_steps) / 8)


wrong_program("no_init", without("init"), Puzzle.NO_INIT, "1 initialise")
wrong_program("init_after_the_rate", placed("init", "optimizer"), Puzzle.USED_BEFORE_INIT, "'rate by size' needs")
wrong_program("not_pinned", without("pin by local rank"), Puzzle.NOT_PINNED)
wrong_program("pinned_by_rank", instead("pin by local rank", "pin by rank"), Puzzle.PINNED_BY_RANK)
wrong_program("pinned_after_the_network", placed("pin by local rank", "model"), Puzzle.PINNED_LATE)
wrong_program("rate_not_scaled", without("rate by size"), Puzzle.RATE_NOT_SCALED)
wrong_program("rate_by_local_size", instead("rate by size", "rate by local size"), Puzzle.RATE_BY_LOCAL_SIZE)
wrong_program("rate_before_the_options", placed("rate by size", "read options"), Puzzle.RATE_BEFORE_OPTIONS)
wrong_program("rate_after_the_optimizer", placed("rate by size", "restore"), Puzzle.RATE_LATE)
wrong_program("not_wrapped", without("wrap"), Puzzle.NOT_WRAPPED, Puzzle.STARTS_DIFFER, wrong_steps=2)
wrong_program(
    "wrapped_before_the_network",
    placed("wrap", "network"),
    Puzzle.WRAPPED_BEFORE_NETWORK,
    Puzzle.STARTS_DIFFER,
    wrong_steps=2,
)
wrong_program("wrapper_lost", placed("wrap", "model"), Puzzle.WRAPPER_LOST)
wrong_program("wrapped_in_each_step", placed("wrap", "loss"), Puzzle.WRAPPED_IN_LOOP)
wrong_program(
    "wrapped_after_the_first_loss",
    placed("wrap", "backward"),
    Puzzle.WRAPPED_IN_LOOP,
    Puzzle.STARTS_DIFFER,
    wrong_steps=2,
)
wrong_program(
    "wrapped_at_the_end", [*without("wrap"), "wrap"], Puzzle.WRAPPED_LATE, Puzzle.STARTS_DIFFER, wrong_steps=2
)
wrong_program("broadcast_by_hand", placed("broadcast", "wrap"), Puzzle.BROADCAST_BY_HAND)
wrong_program(
    "broadcast_instead_of_the_wrapper",
    instead("wrap", "broadcast"),
    Puzzle.NOT_WRAPPED,
)
wrong_program(
    "broadcast_at_the_end_instead_of_the_wrapper",
    [*without("wrap"), "broadcast"],
    Puzzle.NOT_WRAPPED,
    Puzzle.BROADCAST_WITHOUT_WRAP,
    wrong_steps=2,
)
wrong_program("all_save", without("only rank 0"), Puzzle.ALL_WRITE)
wrong_program("one_saves_on_each_host", instead("only rank 0", "only local rank 0"), Puzzle.ONE_PER_HOST_WRITES)
wrong_program("rank_0_restores_alone", placed("only rank 0", "restore"), Puzzle.GUARDS_RESTORE)
wrong_program("rank_0_wraps_alone", placed("only rank 0", "wrap"), Puzzle.GUARDS_A_COLLECTIVE, "'wrap'")
wrong_program("rank_0_loads_alone", placed("only rank 0", "images"), Puzzle.GUARDS_ANOTHER_LINE, "'images'")
wrong_program("guard_of_nothing", [*without("only rank 0"), "only rank 0"], Puzzle.GUARDS_NOTHING)
wrong_program(
    "rank_0_initialises_alone",
    ["only rank 0", *without("only rank 0")],
    Puzzle.USED_BEFORE_INIT,
    Puzzle.GUARDS_A_COLLECTIVE,
    wrong_steps=2,
)
wrong_program(
    "local_rank_0_initialises_alone",
    ["only local rank 0", *without("only rank 0")],
    Puzzle.INIT_GUARDED,
    Puzzle.GUARDS_A_COLLECTIVE,
    wrong_steps=2,
)
wrong_program("two_guards", placed("only local rank 0", "save"), Puzzle.SECOND_GUARD)
wrong_program("two_samplers", placed("shard by local rank", "shard"), Puzzle.SECOND_SHARD)
wrong_program("not_sharded", without("shard"), Puzzle.NOT_SHARDED, Puzzle.STEPS_FOLLOW, wrong_steps=2)
wrong_program(
    "shared_by_a_host",
    instead("shard", "shard by local rank"),
    Puzzle.SHARDED_PER_HOST,
    Puzzle.STEPS_FOLLOW,
    wrong_steps=2,
)
wrong_program(
    "sharded_before_the_images",
    placed("shard", "images"),
    Puzzle.SHARDED_BEFORE_IMAGES,
    Puzzle.STEPS_FOLLOW,
    wrong_steps=2,
)
wrong_program(
    "sharded_too_early",
    placed("shard", "sampler"),
    Puzzle.SET_EPOCH_OF_RANDOM_SAMPLER,
    Puzzle.STEPS_FOLLOW,
    wrong_steps=2,
)
wrong_program(
    "sharded_too_early_without_epochs",
    [name for name in placed("shard", "sampler") if name != "set epoch"],
    Puzzle.SHARDED_EARLY,
    Puzzle.STEPS_FOLLOW,
    wrong_steps=2,
)
wrong_program("sharded_too_late", placed("shard", "steps"), Puzzle.SHARDED_LATE, Puzzle.STEPS_FOLLOW, wrong_steps=2)
wrong_program("no_set_epoch", without("set epoch"), Puzzle.NO_SET_EPOCH)
wrong_program("set_epoch_before_the_loop", placed("set epoch", "epochs"), Puzzle.NO_EPOCH_YET)
wrong_program("set_epoch_in_each_step", placed("set epoch", "loss"), Puzzle.SET_EPOCH_LATE)
wrong_program("set_epoch_at_the_end", [*without("set epoch"), "set epoch"], Puzzle.SET_EPOCH_WITHOUT_EFFECT)
wrong_program("steps_divided", placed("steps by size", "epochs"), Puzzle.STEPS_DIVIDED)
wrong_program(
    "steps_divided_instead_of_shares",
    placed("steps by size", "epochs", without("shard", "set epoch")),
    Puzzle.NOT_SHARDED,
    Puzzle.STEPS_DIVIDED_OF_ALL,
    wrong_steps=2,
)
wrong_program(
    "steps_divided_after_a_late_share",
    placed("steps by size", "epochs", placed("shard", "steps")),
    Puzzle.SHARDED_LATE,
    Puzzle.STEPS_DIVIDED_OF_ALL,
    wrong_steps=2,
)
ANSWERS.wrong_value("program", "a_line_lost", without("images"), LayoutHint.LINES_CHANGED)
ANSWERS.wrong_value("program", "a_name_misspelt", instead("init", "initialise"), LayoutHint.UNKNOWN_NAME)
ANSWERS.wrong_value("program", "a_card_twice", ["init", *SOLUTION], LayoutHint.NAME_TWICE)
ANSWERS.wrong_value("program", "one_text", " ".join(SOLUTION), LayoutHint.NOT_NAMES)

ANSWERS.right_answers["program"] += [
    ("pinned_before_init", {"program": placed("init", "read options")}),
    ("init_just_in_time", {"program": placed("init", "rate by size")}),
    ("wrapped_before_the_optimizer", {"program": placed("wrap", "optimizer")}),
    ("wrapped_before_the_restore", {"program": placed("wrap", "restore")}),
    ("wrapped_just_before_the_loop", {"program": tuple(placed("wrap", "epochs"))}),
    ("as_an_array", {"program": np.array(SOLUTION)}),
    ("rate_at_once", {"program": placed("rate by size", "network")}),
]
ANSWERS.solved("program", SOLUTION, untouched=list(LINES))


# The sampler


def order_of(images, number):
    return np.random.default_rng(number).permutation(images).tolist()


def by_rule(key=lambda seed, epoch, rank: seed + epoch, divided=None, taken=None, shuffled=order_of):
    """The rule with one part of it replaced."""

    def samples(images, ranks, rank, epoch, seed, drop_last):
        order = shuffled(images, key(seed, epoch, rank))
        order = (divided or evenly)(order, ranks, drop_last)
        return (taken or (lambda order, ranks, rank: order[rank::ranks]))(order, ranks, rank)

    return samples


def evenly(order, ranks, drop_last):
    if drop_last:
        return order[: len(order) // ranks * ranks]
    while len(order) % ranks:
        order = order + order[: -len(order) % ranks]
    return order


def blocks(order, ranks, rank):
    size = len(order) // ranks
    return order[rank * size : (rank + 1) * size]


def if_not_dropped(pad):
    return lambda order, ranks, drop_last: (
        evenly(order, ranks, True) if drop_last else pad(order, -len(order) % ranks, ranks)
    )


def shuffles_its_share(images, ranks, rank, epoch, seed, drop_last):
    share = evenly(list(range(images)), ranks, drop_last)[rank::ranks]
    return np.random.default_rng(seed + epoch).permutation(share).tolist()


def cuts_by_minus(order, ranks, drop_last):
    return order[: -(len(order) % ranks)] if drop_last else evenly(order, ranks, False)


def drops_the_head(order, ranks, drop_last):
    return order[len(order) % ranks :] if drop_last else evenly(order, ranks, False)


for title, answer, hints, share in (
    ("not_shuffled", by_rule(shuffled=lambda images, number: list(range(images))), [Hint.NOT_SHUFFLED] * 4, 0.0),
    ("epoch_ignored", by_rule(lambda seed, epoch, rank: seed), [Hint.EPOCH_IGNORED], 0.75),
    ("seed_ignored", by_rule(lambda seed, epoch, rank: epoch), [Hint.SEED_IGNORED] * 3, 0.25),
    ("seed_times_epoch", by_rule(lambda seed, epoch, rank: seed * epoch), [Hint.SEED_AND_EPOCH] * 3, 0.25),
    ("seed_by_rank", by_rule(lambda seed, epoch, rank: seed + epoch + rank), [Hint.SEED_BY_RANK] * 4, 0.0),
    ("all_to_all", by_rule(divided=lambda order, *_: order, taken=lambda order, *_: order), [Hint.ALL_TO_ALL] * 4, 0.0),
    ("blocks", by_rule(taken=blocks), [Hint.BLOCKS] * 4, 0.0),
    ("its_share_shuffled", shuffles_its_share, [Hint.SHUFFLED_AFTER] * 4, 0.0),
    ("left_as_it_is", by_rule(divided=lambda order, ranks, drop_last: order), [Hint.UNEVEN] * 2, 0.5),
    (
        "always_repeats",
        by_rule(divided=lambda order, ranks, _: evenly(order, ranks, False)),
        [Hint.DROP_LAST_IGNORED],
        0.75,
    ),
    (
        "always_drops",
        by_rule(divided=lambda order, ranks, _: evenly(order, ranks, True)),
        [Hint.DROP_LAST_IGNORED, "\nrepeat: "],
        0.75,
    ),
    ("drops_the_head", by_rule(divided=drops_the_head), [Hint.HEAD_DROPPED], 0.75),
    (
        "one_more",
        by_rule(divided=if_not_dropped(lambda order, missing, ranks: order + order[: ranks - len(order) % ranks])),
        [Hint.ONE_MORE, Hint.ONE_MORE, Hint.PADDED_ONCE],
        0.25,
    ),
    (
        "padded_from_the_end",
        by_rule(divided=if_not_dropped(lambda order, n, _: order + order[len(order) - n :])),
        [Hint.PADDED_FROM_END],
        0.75,
    ),
    (
        "padded_in_order",
        by_rule(divided=if_not_dropped(lambda order, n, _: order + list(range(n)))),
        [Hint.PADDED_IN_ORDER],
        0.75,
    ),
    ("padded_once", by_rule(divided=if_not_dropped(lambda order, n, _: order + order[:n])), [Hint.PADDED_ONCE], 0.75),
    ("backwards", by_rule(taken=lambda order, ranks, rank: order[rank::ranks][::-1]), [Hint.ANOTHER_ORDER] * 4, 0.0),
    (
        "from_the_last_rank",
        by_rule(taken=lambda order, ranks, rank: order[ranks - 1 - rank :: ranks]),
        [Hint.OF_ANOTHER_RANK] * 4,
        0.0,
    ),
    (
        "one_image_lost",
        by_rule(taken=lambda order, ranks, rank: order[rank : len(order) - 1 : ranks]),
        [Hint.WRONG_LENGTHS] * 4,
        0.0,
    ),
    (
        "rank_off_by_one",
        by_rule(taken=lambda order, ranks, rank: order[rank + 1 :: ranks]),
        [Hint.OF_ANOTHER_RANK] * 4,
        0.0,
    ),
    (
        "numbers_from_1",
        by_rule(taken=lambda order, ranks, rank: [n + 1 for n in order[rank::ranks]]),
        [Hint.NUMBERS_FROM_1] * 4,
        0.0,
    ),
    (
        "numbers_doubled",
        by_rule(taken=lambda order, ranks, rank: [2 * n for n in order[rank::ranks]]),
        [Hint.OTHER_SAMPLES] * 4,
        0.0,
    ),
):
    ANSWERS.wrong_value("samples", title, answer, *hints, share=share)


def first_of_a_generator(images, key):
    return np.random.RandomState(key).permutation(images).tolist()


def sorted_by_random_numbers(images, key):
    return np.random.default_rng(key).random(images).argsort().tolist()


def later_order(images, key):
    generator = np.random.default_rng(key)
    return [generator.permutation(images) for _ in range(2)][1].tolist()


def again_permuted(images, ranks, rank, epoch, seed, drop_last):
    generator = np.random.default_rng(seed + epoch)
    order = generator.permutation(images).tolist()
    count = (images // ranks if drop_last else -(-images // ranks)) * ranks
    while len(order) < count:
        order += generator.permutation(images).tolist()
    return order[:count][rank::ranks]


def counts_from_the_rank_before(images, ranks, rank, epoch, seed, drop_last):
    order = order_of(images, seed + epoch)
    count = (images // ranks if drop_last else -(-images // ranks)) * ranks
    return [order[place % images] for place in range(rank - 1, count, ranks)]


ONE_MORE_EPOCH = by_rule(lambda seed, epoch, rank: seed + epoch + 1)
for title, answer, hints, share in (
    ("cut_by_minus_zero", by_rule(divided=cuts_by_minus), [Hint.CUT_BY_MINUS_ZERO] * 2, 0.5),
    ("counts_from_the_rank_before", counts_from_the_rank_before, [Hint.OF_ANOTHER_RANK] * 4, 0.0),
    ("legacy_generator", by_rule(shuffled=first_of_a_generator), [Hint.ANOTHER_PERMUTATION] * 4, 0.0),
    ("sorted_by_random_numbers", by_rule(shuffled=sorted_by_random_numbers), [Hint.ANOTHER_PERMUTATION] * 4, 0.0),
    ("one_more_epoch", ONE_MORE_EPOCH, [Hint.ANOTHER_PERMUTATION] * 4, 0.0),
    ("second_order", by_rule(shuffled=later_order), [Hint.ANOTHER_PERMUTATION] * 4, 0.0),
    ("again_permuted", again_permuted, [Hint.PADDED_OTHERWISE], 0.75),
    (
        "padded_with_zeros",
        by_rule(divided=if_not_dropped(lambda order, n, _: (order + [0] * 99)[: len(order) + n])),
        [Hint.PADDED_OTHERWISE],
        0.75,
    ),
):
    ANSWERS.wrong_value("samples", title, answer, *hints, share=share)


@wrong("samples", *[Hint.NOT_NUMBERS] * 4)
def a_set(images, ranks, rank, epoch, seed, drop_last):
    return {"images": evenly(order_of(images, seed + epoch), ranks, drop_last)[rank::ranks]}


@right("samples")
def an_array(images, ranks, rank, epoch, seed, drop_last):
    order = np.random.default_rng(epoch + seed).permutation(images)
    count = int(np.floor(images / ranks) if drop_last else np.ceil(images / ranks))
    return np.resize(order, count * ranks).reshape(count, ranks)[:, rank]


@right("samples")
def a_generator(images, ranks, rank, epoch, seed, drop_last):
    order = order_of(images, seed + epoch)
    count = images // ranks if drop_last else (images + ranks - 1) // ranks
    return (order[(rank + ranks * place) % images] for place in range(count))


ANSWERS.solved("samples", by_rule())


# The logs


def by_signs(log, images):
    """By other signs than the lab's solution."""
    sizes = {len(set(share)) for share in log[1]}
    if sizes == {images}:
        return "no sampler"
    times = np.bincount([image for epochs in log for image in epochs[0]], minlength=images)
    if times.min() == 0 and times.max() > 1:
        return "a seed per rank"
    if log[1][0] != log[1][1]:
        return "nothing"
    if log[1][-1] != log[1][0]:
        return "set_epoch too late"
    return "no shuffling" if log[0][1][:3] == [0, len(log), 2 * len(log)] else "no set_epoch"


def confused(fault, said):
    """Everything right, but one fault is taken for another."""
    return lambda log, images: said if by_signs(log, images) == fault else by_signs(log, images)


def repeats_are_a_fault(log, images):
    seen = [image for epochs in log for image in epochs[0]]
    fault = by_signs(log, images)
    return "a seed per rank" if fault != "no sampler" and len(set(seen)) < len(seen) else fault


def missing_images_are_a_fault(log, images):
    seen = {image for epochs in log for image in epochs[0]}
    return "a seed per rank" if len(seen) < images else by_signs(log, images)


def every_rank_sorted(log, images):
    fault = by_signs(log, images)
    is_sorted = all(epochs[0] == sorted(epochs[0]) for epochs in log)
    return "no set_epoch" if fault == "no shuffling" and not is_sorted else fault


def compares_two_ranks(log, images):
    fault = by_signs(log, images)
    is_apart = not any(set(first) & set(second) for first, second in zip(*log[:2], strict=True))
    return "nothing" if fault == "a seed per rank" and is_apart else fault


def counts_loosely(is_seed_per_rank):
    """Everything right, but what ranks with seeds of their own have seen is compared with too loose a bound."""

    def diagnose(log, images):
        seen = [image for epochs in log for image in epochs[0]]
        fault = by_signs(log, images)
        return "nothing" if fault == "a seed per rank" and not is_seed_per_rank(seen, images, len(log)) else fault

    return diagnose


def too_many_repeats(seen, images, ranks):
    return len(seen) - len(set(seen)) > -images % ranks


def too_many_missing(seen, images, ranks):
    return len(set(seen)) < images - ranks + 1


def a_tenth_is_missing(seen, images, ranks):
    return len(set(seen)) < 0.9 * min(images, len(seen))


def in_every_epoch(is_seed_per_rank):
    """The same, if one epoch is enough to say so."""

    def diagnose(log, images):
        epochs = [[image for of_rank in log for image in of_rank[epoch]] for epoch in range(len(log[0]))]
        is_seen = any(is_seed_per_rank(seen, images, len(log)) for seen in epochs)
        fault = by_signs(log, images)
        return "nothing" if fault == "a seed per rank" and not is_seen else fault

    return diagnose


def begins_with_0_and_1(log, images):
    fault = by_signs(log, images)
    begins = all(share[0] == 0 for share in log[0][:3]) and log[1][0][0] == 1
    return "no shuffling" if fault == "no set_epoch" and begins else fault


def begins_with_0_and_ranks(log, images):
    fault = by_signs(log, images)
    return "no shuffling" if fault == "no set_epoch" and log[0][0][:2] == [0, len(log)] else fault


LOOSE = (too_many_repeats, too_many_missing, a_tenth_is_missing)
ALSO_WRONG = (
    missing_images_are_a_fault,
    every_rank_sorted,
    compares_two_ranks,
    *map(counts_loosely, LOOSE),
    *map(in_every_epoch, LOOSE),
    begins_with_0_and_1,
    begins_with_0_and_ranks,
)
FOUR_SIXTHS = 4 / 6
for fault, said, hints in (
    ("nothing", "a seed per rank", [Hint.MISSED_NOTHING, Hint.SAID_OF_ANOTHER]),
    ("no sampler", "a seed per rank", [Hint.MISSED_NO_SAMPLER, Hint.SAID_OF_ANOTHER]),
    ("a seed per rank", "nothing", [Hint.SAID_OF_ANOTHER, Hint.MISSED_SEED_PER_RANK]),
    ("no shuffling", "no set_epoch", [Hint.MISSED_NO_SHUFFLING, Hint.SAID_OF_ANOTHER]),
    ("no set_epoch", "no shuffling", [Hint.SAID_OF_ANOTHER, Hint.MISSED_NO_SET_EPOCH]),
    ("set_epoch too late", "no set_epoch", [Hint.SAID_OF_ANOTHER, Hint.MISSED_TOO_LATE]),
    ("set_epoch too late", "nothing", [Hint.SAID_OF_ANOTHER, Hint.MISSED_TOO_LATE]),
):
    title = f"{fault} is {said}".replace(" ", "_")
    ANSWERS.wrong_value("diagnose", title, confused(fault, said), *hints, share=FOUR_SIXTHS)
ANSWERS.wrong_value(
    "diagnose",
    "repeats_are_a_fault",
    repeats_are_a_fault,
    *[Hint.SAID_TOO_OFTEN] * 5,
    share=1 / 6,
)


@wrong("diagnose", Hint.ONLY_SHOWN, "'no sampler'")
def a_table(log, images):
    return by_signs(log, images) if log in [list(map(list, shown)) for shown in LOGS.values()] else "no sampler"


@wrong("diagnose", *[Hint.SAID_TOO_OFTEN] * 4, share=2 / 6)
def starts_with_0_is_enough(log, images):
    fault = by_signs(log, images)
    return "no shuffling" if fault in ("no set_epoch", "set_epoch too late", "nothing") else fault


@wrong(
    "diagnose",
    Hint.SAID_OF_ANOTHER,
    *(Hint[f"MISSED_{name}"] for name in ("NO_SAMPLER", "SEED_PER_RANK", "NO_SHUFFLING", "NO_SET_EPOCH", "TOO_LATE")),
)
def never_a_fault(log, images):
    return "nothing"


for title, answer, count in (
    ("too_many_missing", counts_loosely(too_many_missing), "14 images, 12 different ones of 13"),
    ("too_many_repeats", in_every_epoch(too_many_repeats), "12 images, 11 different ones of 13"),
):
    hints = [Hint.SAID_OF_ANOTHER, Hint.MISSED_BY_ONE_IMAGE, "jobs with 'a seed per rank'", count]
    ANSWERS.wrong_value("diagnose", title, answer, *hints, share=FOUR_SIXTHS)
begins_hints = [Hint.SAID_OF_ANOTHER, Hint.BEGINS_IN_ORDER]
ANSWERS.wrong_value("diagnose", "begins_with_0_and_1", begins_with_0_and_1, *begins_hints, share=FOUR_SIXTHS)


@wrong(
    "diagnose", "a seed per rank: not done yet: for a job of 2 ranks and 4 epochs: `diagnose` gives None", share=5 / 6
)
def without_its_last_return(log, images):
    fault = by_signs(log, images)
    return None if fault == "a seed per rank" else fault


@wrong(
    "diagnose", Hint.UNKNOWN_FAULT, "nothing: wrong: for a job of 2 ranks and 4 epochs: 'fine' is not in", share=5 / 6
)
def in_own_words(log, images):
    fault = by_signs(log, images)
    return "fine" if fault == "nothing" else fault


@wrong("diagnose", Hint.UNKNOWN_FAULT)
def a_letter(log, images):
    return "A"


ANSWERS.right_answers["diagnose"].append(("by_signs", {"diagnose": by_signs}))
ANSWERS.solved("diagnose", written_solution("14", "diagnose"))


# What DDP averages


def numbers(weight, factor):
    return lambda counts, rank: {
        "weight": weight(counts[rank], len(counts), sum(counts)),
        "factor": factor(counts[rank], len(counts), sum(counts)),
    }


def true_weight(own, ranks, together):
    return 1 / (ranks * own)


def true_factor(own, ranks, together):
    return ranks * own / together


for title, answer, hint in (
    ("not_averaged", numbers(lambda own, ranks, all_: 1 / own, true_factor), Hint.NOT_DIVIDED_BY_RANKS),
    ("ideal_weight", numbers(lambda own, ranks, all_: 1 / all_, true_factor), Hint.IDEAL_WEIGHT),
    ("share_of_images", numbers(lambda own, ranks, all_: own / all_, true_factor), Hint.OTHER_WEIGHT),
    ("inverse", numbers(true_weight, lambda own, ranks, all_: all_ / ranks / own), Hint.FACTOR_INVERTED),
    ("no_ranks", numbers(true_weight, lambda own, ranks, all_: own / all_), Hint.RANKS_FORGOTTEN),
    ("ideal_factor", numbers(true_weight, lambda own, ranks, all_: 1 / all_), Hint.IDEAL_FACTOR),
    ("a_sum", numbers(true_weight, lambda own, ranks, all_: ranks * own), Hint.MEAN_FORGOTTEN),
    ("no_count", numbers(true_weight, lambda own, ranks, all_: ranks / all_), Hint.OTHER_FACTOR),
):
    ANSWERS.wrong_value("uneven", title, answer, hint, share=0.5)


@wrong("uneven", NumberHint.ROUNDED, NumberHint.ROUNDED)
def rounded(counts, rank):
    return {name: round(number, 6) for name, number in numbers(true_weight, true_factor)(counts, rank).items()}


@wrong("uneven", "factor: not done yet: this is None", share=0.5)
def one_number(counts, rank):
    return {"weight": 1 / len(counts) / counts[rank], "factor": None}


@wrong("uneven", Hint.OTHER_COUNT, share=0.5)
def first_rank(counts, rank):
    return numbers(true_weight, true_factor)(counts, rank) | {"weight": 1 / len(counts) / counts[0]}


@wrong("uneven", 'the names "weight", "factor"')
def a_pair(counts, rank):
    return 1 / counts[rank] / len(counts), counts[rank] / np.mean(counts)


@right("uneven")
def in_float32(counts, rank):
    ranks, own, together = (np.float32(number) for number in (len(counts), counts[rank], sum(counts)))
    return {"weight": 1 / (ranks * own), "factor": ranks * own / together}


@right("uneven")
def by_the_mean(counts, rank):
    return {"weight": 1 / np.sum(counts[rank : rank + 1]) / len(counts), "factor": counts[rank] / np.mean(counts)}


ANSWERS.solved("uneven", numbers(true_weight, true_factor), lambda counts, rank: dict.fromkeys(("weight", "factor")))


# Several batches, one all-reduce


def add_up(model, batches, divisor):
    for images, labels in batches:
        (cross_entropy(model(images), labels) / divisor).backward()


def step(model, optimizer, batches, divisor=None, quiet=slice(0, -1)):
    divisor = divisor or len(batches)
    optimizer.zero_grad()
    rest = batches[len(batches[quiet]) :]
    with model.no_sync():
        add_up(model, batches[quiet], divisor)
    add_up(model, rest, divisor)
    optimizer.step()


@wrong("accumulate", Hint.SUMMED_BATCHES, share=0.5)
def not_divided(model, optimizer, batches):
    step(model, optimizer, batches, divisor=1)


@wrong("accumulate", Hint.DIVIDED_BY_RANKS, share=0.5)
def divided_by_ranks(model, optimizer, batches):
    step(model, optimizer, batches, divisor=3 * len(batches))


@wrong("accumulate", Hint.OLD_GRADIENTS, share=0.5)
def never_zero(model, optimizer, batches):
    with model.no_sync():
        add_up(model, batches[:-1], len(batches))
    add_up(model, batches[-1:], len(batches))
    optimizer.step()


@wrong("accumulate", Hint.LAST_BATCH_ONLY, share=0.5)
def zero_for_each_batch(model, optimizer, batches):
    with model.no_sync():
        for batch in batches[:-1]:
            optimizer.zero_grad()
            add_up(model, [batch], len(batches))
    optimizer.zero_grad()
    add_up(model, batches[-1:], len(batches))
    optimizer.step()


@wrong("accumulate", Hint.LAST_TWO_BATCHES, share=0.5)
def zero_in_the_quiet_loop(model, optimizer, batches):
    with model.no_sync():
        for batch in batches[:-1]:
            optimizer.zero_grad()
            add_up(model, [batch], len(batches))
    add_up(model, batches[-1:], len(batches))
    optimizer.step()


@wrong("accumulate", Hint.STEP_LENGTH, "the step is too ", share=0.5)
def divided_by_images(model, optimizer, batches):
    step(model, optimizer, batches, divisor=len(batches[0][0]))


@wrong("accumulate", Hint.STEP_EACH_BATCH, Hint.AVERAGED_EACH_TIME)
def a_step_for_each_batch(model, optimizer, batches):
    for batch in batches:
        optimizer.zero_grad()
        add_up(model, [batch], 1)
        optimizer.step()


@wrong("accumulate", Hint.NOT_APPLIED, share=0.5)
def never_applied(model, optimizer, batches):
    optimizer.zero_grad()
    with model.no_sync():
        add_up(model, batches[:-1], len(batches))
    add_up(model, batches[-1:], len(batches))


@wrong("accumulate", Hint.RANKS_DIFFER, Hint.NEVER_AVERAGED)
def all_quiet(model, optimizer, batches):
    step(model, optimizer, batches, quiet=slice(0, None))


@wrong("accumulate", Hint.AVERAGED_EARLY, share=0.5)
def first_averaged(model, optimizer, batches):
    optimizer.zero_grad()
    add_up(model, batches[:1], len(batches))
    with model.no_sync():
        add_up(model, batches[1:], len(batches))
    optimizer.step()


@wrong("accumulate", Hint.AVERAGED_EACH_TIME, share=0.5)
def averaged_each_time(model, optimizer, batches):
    optimizer.zero_grad()
    add_up(model, batches, len(batches))
    optimizer.step()


@wrong("accumulate", Hint.FORWARD_OUTSIDE, share=0.5)
def forward_outside(model, optimizer, batches):
    optimizer.zero_grad()
    for place, (images, labels) in enumerate(batches):
        loss = cross_entropy(model(images), labels) / len(batches)
        if place < len(batches) - 1:
            with model.no_sync():
                loss.backward()
        else:
            loss.backward()
    optimizer.step()


@wrong("accumulate", Hint.AVERAGED_EARLY, Hint.LOSSES_KEPT)
def last_forward_first(model, optimizer, batches):
    optimizer.zero_grad()
    last = cross_entropy(model(batches[-1][0]), batches[-1][1]) / len(batches)
    with model.no_sync():
        add_up(model, batches[:-1], len(batches))
    last.backward()
    optimizer.step()


@wrong("accumulate", Hint.AVERAGED_EARLY, Hint.LOSSES_KEPT)
def all_losses_first(model, optimizer, batches):
    optimizer.zero_grad()
    for loss in [cross_entropy(model(images), labels) / len(batches) for images, labels in batches]:
        loss.backward()
    optimizer.step()


@wrong("accumulate", Hint.LOSSES_KEPT, share=0.5)
def quiet_losses_kept(model, optimizer, batches):
    optimizer.zero_grad()
    with model.no_sync():
        losses = [cross_entropy(model(images), labels) / len(batches) for images, labels in batches[:-1]]
    for loss in losses:
        loss.backward()
    add_up(model, batches[-1:], len(batches))
    optimizer.step()


@wrong("accumulate", Hint.RANKS_DIFFER, Hint.FORWARD_INSIDE)
def last_forward_inside(model, optimizer, batches):
    optimizer.zero_grad()
    for place, (images, labels) in enumerate(batches):
        with model.no_sync():
            loss = cross_entropy(model(images), labels) / len(batches)
            if place < len(batches) - 1:
                loss.backward()
    loss.backward()
    optimizer.step()


@wrong("accumulate", Hint.WITHOUT_WITH, share=0.5)
def no_sync_without_with(model, optimizer, batches):
    optimizer.zero_grad()
    model.no_sync()
    add_up(model, batches, len(batches))
    optimizer.step()


@wrong("accumulate", Hint.NOT_IN_FAKE, "`optimizer.param_groups`")
def by_the_rate(model, optimizer, batches):
    step(model, optimizer, batches, divisor=1)
    optimizer.param_groups[0]["lr"] /= len(batches)


@wrong("accumulate", Hint.NOT_IN_FAKE, "`loss.sum`")
def sums_the_loss(model, optimizer, batches):
    for images, labels in batches:
        cross_entropy(model(images), labels).sum().backward()


@wrong("accumulate", Hint.RAISES, "takes first what the model gives, then the labels")
def arguments_swapped(model, optimizer, batches):
    for images, labels in batches:
        cross_entropy(labels, model(images)).backward()


@wrong("accumulate", Hint.RAISES, "with 1 pair rank 0 raises UnboundLocalError in line ")
def last_loss_of_the_loop(model, optimizer, batches):
    optimizer.zero_grad()
    for images, labels in batches[:-1]:
        with model.no_sync():
            loss = cross_entropy(model(images), labels) / len(batches)
            loss.backward()
    del loss
    add_up(model, batches[-1:], len(batches))
    optimizer.step()


@wrong("accumulate", Hint.STEP_LENGTH, "weights: wrong: with 1 pair: the step is too long, 1.33 times", share=0.5)
def a_single_pair_twice(model, optimizer, batches):
    step(model, optimizer, batches * 2 if len(batches) == 1 else batches, divisor=max(len(batches), 1.5))


@wrong("accumulate", Hint.OTHER_COUNT_OF_ALL_REDUCES, share=0.5)
def two_averaged(model, optimizer, batches):
    step(model, optimizer, batches, quiet=slice(0, max(0, len(batches) - 2)))


@wrong("accumulate", Hint.ONE_BACKWARD, "all-reduce and backward: wrong: there is one all-reduce, but ", share=0.5)
def one_backward(model, optimizer, batches):
    optimizer.zero_grad()
    (sum(cross_entropy(model(images), labels) for images, labels in batches) / len(batches)).backward()
    optimizer.step()


@wrong("accumulate", Hint.WRONG_STEP, share=0.5)
def last_batch_whole(model, optimizer, batches):
    optimizer.zero_grad()
    with model.no_sync():
        add_up(model, batches[:-1], len(batches))
    add_up(model, batches[-1:], 1)
    optimizer.step()


@wrong("accumulate", Hint.HANGS)
def rank_0_alone(model, optimizer, batches):
    optimizer.zero_grad()
    if model.process.number == 0:
        step(model, optimizer, batches)


@wrong("accumulate", Hint.RAISES, "KeyError")
def raises(model, optimizer, batches):
    raise KeyError("no batch")


@right("accumulate")
def in_training_mode(model, optimizer, batches):
    model.train()
    optimizer.zero_grad(set_to_none=True)
    for place, (images, labels) in enumerate(batches, start=1):
        model.require_backward_grad_sync = place == len(batches)  # PyTorch's own flag
        (-cross_entropy(model(images), labels)).div(-len(batches)).backward()
    optimizer.step()


@right("accumulate")
def network_for_the_first(model, optimizer, batches):
    optimizer.zero_grad()
    add_up(model.module, batches[:-1], len(batches))
    add_up(model, batches[-1:], len(batches))
    optimizer.step()


@right("accumulate")
def with_a_condition(model, optimizer, batches):
    for place, (images, labels) in enumerate(batches, start=1):
        is_last = place == len(batches)
        if is_last:
            (cross_entropy(model(images), labels) * (1 / len(batches))).backward()
        else:
            with model.no_sync():
                (cross_entropy(model(images), labels) * (1 / len(batches))).backward()
    optimizer.step()
    optimizer.zero_grad()


ANSWERS.solved("accumulate", step)
