"""Answers to lab 03 as students give them; those to `mirrored` need TensorFlow and are in answers_03_mirrored."""

from distlab.labs.lab_03.auto_shard import samples_seen
from distlab.labs.lab_03.lab import NUMBERS, numbers_of
from tests.labs.known_wrong import LabAnswers

ANSWERS = LabAnswers()
wrong, right = ANSWERS.wrong, ANSWERS.right


# The four numbers


def but_for(**formulas):
    """The right numbers but for some, which are computed so."""

    def numbers(images, per_replica, replicas, epochs):
        found = numbers_of(images, per_replica, replicas, epochs)
        case = {"images": images, "per_replica": per_replica, "replicas": replicas, "epochs": epochs, **found}
        case |= {name.replace(" ", "_"): value for name, value in found.items()}
        return found | {name.replace("_", " "): formula(case) for name, formula in formulas.items()}

    return numbers


for title, numbers, hint in (
    ("one_replicas_batch", but_for(global_batch_size=lambda c: c["per_replica"]), "that is what one replica gets"),
    (
        "divides_by_the_replicas",
        but_for(global_batch_size=lambda c: c["per_replica"] // c["replicas"]),
        "larger or smaller than a part",
    ),
    (
        "forgets_the_rest",
        but_for(steps_per_epoch=lambda c: c["images"] // c["global_batch_size"]),
        "rest that does not fill a batch",
    ),
    (
        "steps_of_one_replica",
        but_for(steps_per_epoch=lambda c: -(-c["images"] // c["per_replica"])),
        "one batch of each replica at the same time",
    ),
    ("one_epoch_alone", but_for(updates=lambda c: c["steps_per_epoch"]), "that is one epoch"),
    (
        "updates_of_each_replica",
        but_for(updates=lambda c: c["steps_per_epoch"] * c["epochs"] * c["replicas"]),
        "make each update together",
    ),
    (
        "nothing_in_the_last_batch",
        but_for(images_in_the_last_batch=lambda c: c["images"] % c["global_batch_size"]),
        "the last batch is a full one",
    ),
    (
        "the_rest_of_small_batches",
        but_for(images_in_the_last_batch=lambda c: c["images"] % c["per_replica"]),
        "rest after global batches",
    ),
):
    ANSWERS.wrong_value("numbers", title, numbers, hint, share=0.75)


@wrong("numbers", "dictionary with the names")
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

    def plant(title):
        def samples(policy, files, workers, batch):
            if policy in policies:
                return formula(files, workers, batch)
            return samples_seen(policy, files, workers, batch)

        ANSWERS.wrong_value("samples_seen", title, samples, *hint, share=share)

    return plant


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


table(["OFF"], lambda f, w, b: [sum(f) // w + (i < sum(f) % w) for i in range(w)], "nothing is rewritten", share=0.8)(
    "off_divides"
)
table(["DATA"], lambda f, w, b: dealt(sum(f), w), "whole batches, not single images", share=0.8)("data_by_images")
table(["DATA"], connected_batches, "not cut into connected parts", share=0.8)("data_in_halves")
table(["DATA"], lambda f, w, b: [sum(f)] * w, "this would be OFF", share=0.8)("data_reads_and_keeps_all")
table(["FILE"], lambda f, w, b: connected(f, w) if len(f) >= w else None, "files are dealt out like cards", share=0.8)(
    "file_in_halves"
)
table(
    ["FILE"], lambda f, w, b: [len(f[i::w]) for i in range(w)] if len(f) >= w else None, "these are files", share=0.8
)("counts_files")
table(
    ["AUTO"],
    lambda f, w, b: samples_seen("DATA", f, w, b) if len(f) >= w else None,
    "what does AUTO try first",
    share=0.8,
)("auto_is_data")
table(
    ["FILE", "AUTO"],
    lambda f, w, b: [sum(f[i::w]) for i in range(w)],
    "fewer files than workers",
    "What does TensorFlow do then",
    share=0.8,
)("gives_nothing_to_some")
table(["DATA"], lambda f, w, b: [sum(f) // b // w * b] * w, "they add up to", share=0.8)("loses_the_rest")


@right("samples_seen")
def by_dealing(policy, files, workers, batch):
    numbers = [number for number, count in enumerate(files) for _ in range(count)]
    hands = [0] * workers
    if policy == "OFF":
        return [len(numbers) for _ in hands]
    if policy == "DATA":
        for place in range(len(numbers)):
            hands[place // batch % workers] += 1
        return tuple(hands)
    if workers > len(files):
        return None
    for number in numbers:
        hands[number % workers] += 1
    return hands


ANSWERS.solved("numbers", numbers_of)
ANSWERS.solved("samples_seen", samples_seen)
