"""One device: clocks, the input pipeline, fixed costs of a step, mixed precision."""

import math

from distlab import metrics
from distlab.quizzes.item import Item, other, pick


def speedup_of_two_clocks(
    item: Item,
    elapsed: tuple[int, int] = pick((10, 6), (24, 15), (30, 12)),
    cpu: tuple[int, int] = pick((14, 16), (20, 26), (28, 35)),
) -> None:
    item.choose("The same training was timed on one GPU and on two. What is the speed-up?")
    item.block = (
        f"one GPU:  elapsed {elapsed[0]:>2} s, process_time {cpu[0]} s\n"
        f"two GPUs: elapsed {elapsed[1]:>2} s, process_time {cpu[1]} s"
    )
    item.right(metrics.speedup(*elapsed)).why("Speed-up compares elapsed times.")
    item.wrong(metrics.speedup(*cpu), "CPU times compared").why("""`process_time` sums over threads and leaves out
        waiting.""")
    item.wrong(2, "Devices counted").why("The number of devices is the best case, not the result.")
    item.wrong(cpu[0] / elapsed[1], "Two clocks mixed").why("""That divides the CPU time of one run by the elapsed time
        of the other.""")


def cpu_time_of_threads(
    item: Item,
    seconds: int = pick(8, 12, 20),
    threads: int = pick(2, 4),
    clock: str = pick("time.perf_counter()", "time.process_time()"),
) -> None:
    shown = {"time.perf_counter()": seconds // threads, "time.process_time()": seconds}
    item.choose(f"""One thread hashes files for {seconds} s. Now {threads} threads share the same work on {threads} free
        cores. About how many seconds does `{clock}` show between start and end?""")
    item.right(shown[clock], "s").why("""Elapsed time falls with free cores; CPU time is the sum over threads, so it
        stays.""")
    item.wrong(other(shown, clock), "The other clock").why("Ask whether the clock sums over threads.")
    item.wrong(seconds * threads, "Threads add work").why("The same work is divided among them.")
    item.wrong(0, "Nothing computes").why("The threads belong to this process.")


def decoded_images(
    item: Item,
    images: int = pick(256, 1_000, 5_000),
    epochs: int = pick(3, 5, 10),
    line: str = pick("map(decode).cache()", "cache().map(decode)"),
) -> None:
    counts = {"map(decode).cache()": images, "cache().map(decode)": images * epochs}
    item.enter(f"""A pipeline is `records.{line}.batch(32)`, with {images:,} records. How many images are decoded in
        {epochs} epochs?""")
    item.right(counts[line], "images").why("""A cache keeps what comes before it; what comes after it is done in every
        epoch.""")
    item.wrong(other(counts, line), "The other order").why("Ask whether decoding comes before or after the cache.")
    item.wrong(math.ceil(images / 32) * epochs, "Batches counted").why("`map` before `batch` is called once per image.")
    item.wrong(32 * epochs, "One batch per epoch").why("Every record is read in every epoch.")


def prefetch(item: Item, prepare: int = pick(4, 6, 9, 15), compute: int = pick(5, 8, 12, 20)) -> None:
    item.enter(f"""Preparing a batch takes {prepare} ms, the step on the device {compute} ms. Another core is free. How
        many ms does a step take with `prefetch(2)`?""")
    item.right(max(prepare, compute), "ms").why("""The next batch is prepared while the device works, so the longer of
        the two decides.""")
    item.wrong(prepare + compute, "One after the other").why("That is the time without prefetch.")
    item.wrong(min(prepare, compute), "The shorter one").why("The device needs both: its data and its computing.")
    item.wrong((prepare + compute) / 2, "Half of the sum").why("That is true only if both take equally long.")


def batches_of_two_epochs(
    item: Item,
    images: int = pick(12, 22, 33, 47),
    batch: int = pick(5, 8, 10),
    order: str = pick("batch, repeat", "repeat, batch"),
) -> None:
    counts = {"batch, repeat": 2 * math.ceil(images / batch), "repeat, batch": math.ceil(2 * images / batch)}
    code = f"batch({batch}).repeat(2)" if order == "batch, repeat" else f"repeat(2).batch({batch})"
    item.choose(f"How many batches come from `tf.data.Dataset.range({images}).{code}`?")
    item.right(counts[order], "batches").why("""`repeat` after `batch` keeps the epochs apart; before it, a batch may
        hold numbers of both.""")
    item.wrong(other(counts, order), "The other order").why("Read from the left.")
    item.wrong(2 * (images // batch), "The rest is dropped").why("Only `drop_remainder=True` drops it.")
    item.wrong(images // batch, "One epoch").why("`repeat(2)` yields the numbers twice.")


def place_of_the_cache(item: Item, decoded: int = pick(20, 60, 400, 900), memory: int = pick(128, 256)) -> None:
    in_memory, in_file = "decode, cache in memory, random crop", "decode, cache in a file, random crop"
    right, wrong = (in_memory, in_file) if decoded < memory else (in_file, in_memory)
    item.choose(f"""Decoding is slow, the crop is random in every epoch, the decoded set has {decoded} GB, and {memory}
        GB of memory are free. Which order do you take?""")
    item.right(right).why("""The cache comes after the slow work that is always the same, and before what must be
        random.""")
    item.wrong(wrong, "The size not compared").why(f"""Compare {decoded} GB with {memory} GB: memory is faster, a file
        is larger.""")
    item.wrong("decode, random crop, cache in memory", "A frozen crop").why("A cache freezes what comes before it.")
    item.wrong("cache in memory, decode, random crop", "Reading cached only").why("""That saves the reading, not the
        slow decoding.""")


def throughput_of_a_batch(
    item: Item, fixed: int = pick(800, 1_500, 3_000), per_image: int = pick(5, 10, 20), batch: int = pick(32, 128, 512)
) -> None:
    rate = metrics.throughput(batch, 1e-6 * (fixed + per_image * batch))
    item.choose(f"""A step costs {fixed:,} µs whatever the batch, and {per_image} µs for each image. How many images per
        second does a batch of {batch} reach?""")
    item.right(rate, "images/s").why(f"A step takes {fixed + per_image * batch:,} µs.")
    item.wrong(1e6 / per_image, "No fixed cost").why("That is what very large batches come close to.")
    item.wrong(batch * 1e6 / fixed, "Only the fixed cost").why("Each image has its own cost, too.")
    item.wrong(1e6 / (fixed + per_image), "One image per step").why("""The fixed cost is paid once per step, not per
        image.""")


def updates_of_an_epoch(
    item: Item,
    images: int = pick(3_200, 6_400, 8_000),
    batch: int = pick(25, 50, 100),
    per_execution: int = pick(4, 8, 16),
) -> None:
    item.choose(
        f"""{images:,} images, batches of {batch}, `compile(steps_per_execution={per_execution})`. How many
        updates of the weights does an epoch make?"""
    )
    item.right(images // batch, "updates").why("""Several steps per execution are the same updates, one after the other;
        only Python runs less often.""")
    item.wrong(images // (batch * per_execution), "A larger batch").why("Each of these steps has its own update.")
    item.wrong(images // batch * per_execution, "More steps").why("The images of an epoch stay as many.")
    item.wrong(images // per_execution, "Batch size forgotten").why("An update takes a batch of images.")


KEPT = {
    "shuffle(5_000).cache().map(augment)": "the order",
    "map(augment).cache().shuffle(5_000)": "the augmentation",
    "shuffle(5_000).map(augment).cache()": "both",
    "cache().shuffle(5_000).map(augment)": "neither",
}
WHY_KEPT = {
    "the order": "A cache keeps the order of what comes before it, if that is shuffled.",
    "the augmentation": "A cache keeps what comes before it, also random augmentation.",
    "both": "All that comes before the cache is kept.",
    "neither": "What comes after the cache is done again in each epoch.",
}


def what_a_cache_keeps(item: Item, chain: str = pick(*KEPT)) -> None:
    kept = KEPT[chain]
    item.choose(f"""A pipeline is `images.{chain}`, and each call of `augment` gets a new seed. What does the second
        epoch repeat, the order of the images or their augmentation?""")
    item.right(kept).why(WHY_KEPT[kept])
    for answer in KEPT.values():
        if answer != kept:
            item.wrong(answer, f"Keeps {answer}").why("All that comes before the cache is kept, and nothing else.")


def scaled_gradient(item: Item, gradient: float = pick(1e-8, 2e-8), scale: int = pick(1_024, 4_096, 32_768)) -> None:
    item.choose(f"""The smallest number in `float16` is about 6e-08, so a gradient of {gradient:.0e} becomes 0. The loss
        is multiplied by {scale:,} first. Which gradient, roughly, updates the weights?""")
    item.right(f"{gradient:.0e}").why("""The gradient is multiplied like the loss, fits into 16 bits, and is divided by
        the factor before the update.""")
    item.wrong("0", "Still too small").why("The factor makes it large enough before it is stored in 16 bits.")
    item.wrong(f"{gradient * scale:.0e}", "Never divided").why("""The update would be too large by the factor, so the
        gradient is divided by it first.""")
    item.wrong(f"{gradient / scale:.0e}", "Divided only").why("It is multiplied first, then divided.")
