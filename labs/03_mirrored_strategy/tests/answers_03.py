"""Answers to lab 03 as students give them; those to `mirrored` need TensorFlow and are in answers_03_mirrored."""

from lab_03.auto_sharding import samples_seen
from lab_03.four_numbers import NUMBERS, numbers_of
from lab_03.hints import Lab03Hint

from distlab.labs.number_judge import NumberHint
from tests.distlab.labs.known_wrong import LabAnswers

ANSWERS = LabAnswers()
wrong, right = ANSWERS.wrong, ANSWERS.right


# The four numbers


def but_for(**formulas):
    """The right numbers but for some, which are computed so."""

    def numbers(images, per_replica, replicas, epochs):
        right = numbers_of(images, per_replica, replicas, epochs)
        case = {"images": images, "per_replica": per_replica, "replicas": replicas, "epochs": epochs}
        case |= {name.replace(" ", "_"): value for name, value in right.items()}
        return right | {name.replace("_", " "): formula(case) for name, formula in formulas.items()}

    return numbers


for title, numbers, hint in (
    ("one_replicas_batch", but_for(global_batch_size=lambda c: c["per_replica"]), Lab03Hint.BATCH_OF_ONE_REPLICA),
    (
        "divides_by_the_replicas",
        but_for(global_batch_size=lambda c: c["per_replica"] // c["replicas"]),
        Lab03Hint.BATCH_DIVIDED,
    ),
    (
        "forgets_the_rest",
        but_for(steps_per_epoch=lambda c: c["images"] // c["global_batch_size"]),
        Lab03Hint.STEPS_WITHOUT_REST,
    ),
    (
        "steps_of_one_replica",
        but_for(steps_per_epoch=lambda c: -(-c["images"] // c["per_replica"])),
        Lab03Hint.STEPS_OF_ONE_REPLICA,
    ),
    ("one_epoch_alone", but_for(updates=lambda c: c["steps_per_epoch"]), Lab03Hint.UPDATES_OF_ONE_EPOCH),
    (
        "updates_of_each_replica",
        but_for(updates=lambda c: c["steps_per_epoch"] * c["epochs"] * c["replicas"]),
        Lab03Hint.UPDATES_TIMES_REPLICAS,
    ),
    (
        "nothing_in_the_last_batch",
        but_for(images_in_the_last_batch=lambda c: c["images"] % c["global_batch_size"]),
        Lab03Hint.LAST_BATCH_EMPTY,
    ),
    (
        "the_rest_of_small_batches",
        but_for(images_in_the_last_batch=lambda c: c["images"] % c["per_replica"]),
        Lab03Hint.LAST_BATCH_OF_SMALL_BATCHES,
    ),
):
    ANSWERS.wrong_value("numbers", title, numbers, hint, share=0.75)


@wrong("numbers", NumberHint.NAMES)
def a_tuple_of_numbers(images, per_replica, replicas, epochs):
    return tuple(numbers_of(images, per_replica, replicas, epochs).values())


@right("numbers")
def by_counting(images, per_replica, replicas, epochs):
    batches, left = [], images
    while left > 0:
        batches.append(min(left, per_replica * replicas))
        left -= batches[-1]
    values = (per_replica * replicas, len(batches), sum(1 for _ in range(epochs) for _ in batches), batches[-1])
    return dict(zip(NUMBERS, values, strict=True))


# The auto-shard table


def table(policies, formula, *hint, share):
    """The right table but for some policies."""

    def add(title):
        def samples(policy, files, workers, batch):
            if policy in policies:
                return formula(files, workers, batch)
            return samples_seen(policy, files, workers, batch)

        ANSWERS.wrong_value("samples_seen", title, samples, *hint, share=share)

    return add


def dealt(total, workers):
    return [len(range(worker, total, workers)) for worker in range(workers)]


def connected(files, workers):
    size, more = divmod(len(files), workers)
    counts = [size + (worker < more) for worker in range(workers)]
    starts = [sum(counts[:worker]) for worker in range(workers)]
    return [sum(files[start : start + count]) for start, count in zip(starts, counts, strict=True)]


def connected_batches(files, workers, batch):
    total = sum(files)
    sizes = [min(batch, total - at) for at in range(0, total, batch)]
    return connected(sizes, workers)


def data_without_refusal(files, workers, batch):
    total = sum(files)
    sizes = [min(batch, total - at) for at in range(0, total, batch)]
    return [sum(sizes[worker::workers]) for worker in range(workers)]


def parts_of_batches(files, workers, batch):
    total = sum(files)
    sizes = [min(batch, total - at) for at in range(0, total, batch)]
    return [sum(len(range(worker, size, workers)) for size in sizes) for worker in range(workers)]


table(["OFF"], lambda f, w, b: [sum(f) // w + (i < sum(f) % w) for i in range(w)], Lab03Hint.OFF_DIVIDES, share=0.8)(
    "off_divides"
)
table(["DATA"], lambda f, w, b: dealt(sum(f), w), Lab03Hint.DATA_BY_IMAGES, share=0.8)("data_by_images")
table(["DATA"], connected_batches, Lab03Hint.DATA_IN_BLOCKS, share=0.8)("data_in_halves")
table(["DATA"], lambda f, w, b: [sum(f)] * w, Lab03Hint.THIS_IS_OFF, share=0.8)("data_reads_and_keeps_all")
table(["FILE"], lambda f, w, b: connected(f, w) if len(f) >= w else None, Lab03Hint.FILES_IN_BLOCKS, share=0.8)(
    "file_in_halves"
)
table(
    ["FILE"],
    lambda f, w, b: [len(f[i::w]) for i in range(w)] if len(f) >= w else None,
    Lab03Hint.COUNTS_FILES,
    share=0.8,
)("counts_files")
table(
    ["AUTO"],
    lambda f, w, b: samples_seen("DATA", f, w, b) if len(f) >= w else None,
    Lab03Hint.AUTO_IS_NOT_DATA,
    share=0.8,
)("auto_is_data")
table(
    ["OFF"],
    lambda f, w, b: None if len(f) < w else [sum(f)] * w,
    Lab03Hint.FILES_DO_NOT_MATTER,
    share=0.8,
)("refuses_few_files_under_every_policy")
table(["DATA"], lambda f, w, b: data_without_refusal(f, w, b), Lab03Hint.SOMEBODY_WITHOUT_A_BATCH, share=0.8)(
    "data_never_refuses"
)
table(
    ["FILE", "AUTO"],
    lambda f, w, b: [sum(f[i::w]) for i in range(w)] if len(f) > w else None,
    *[Lab03Hint.NOT_REFUSED] * 2,
    share=0.6,
)("needs_more_files_than_workers")
table(
    ["FILE", "AUTO"],
    lambda f, w, b: [sum(f[i::w]) for i in range(w)] if len(f) >= w else [None] * w,
    Lab03Hint.NONE_FOR_ALL_TOGETHER,
    share=0.8,
)("none_for_each_worker")
table(
    ["FILE"],
    lambda f, w, b: [sum(f[(i + 1) % w :: w]) for i in range(w)] if len(f) >= w else None,
    Lab03Hint.OTHER_WORKERS,
    share=0.8,
)("workers_rotated")
table(
    ["DATA"],
    lambda f, w, b: parts_of_batches(f, w, b) if -(-sum(f) // b) >= w else None,
    Lab03Hint.BATCH_IS_DIVIDED,
    share=0.8,
)("batch_is_global")
table(
    ["FILE", "AUTO"],
    lambda f, w, b: [sum(f[i::w]) for i in range(w)],
    "few files or batches: wrong",
    Lab03Hint.SOMEBODY_WITHOUT_A_FILE,
    share=0.8,
)("gives_nothing_to_some")
table(["DATA"], lambda f, w, b: [sum(f) // b // w * b] * w, Lab03Hint.WRONG_SUM, share=0.8)("loses_the_rest")


@right("samples_seen")
def by_dealing(policy, files, workers, batch):
    numbers = [number for number, count in enumerate(files) for _ in range(count)]
    hands = [0] * workers
    if policy == "OFF":
        return [len(numbers) for _ in hands]
    if policy == "DATA":
        for place in range(len(numbers)):
            hands[place // batch % workers] += 1
        return tuple(hands) if all(hands) else None
    if workers > len(files):
        return None
    for number in numbers:
        hands[number % workers] += 1
    return hands


ANSWERS.solved("numbers", numbers_of)
ANSWERS.solved("samples_seen", samples_seen)
