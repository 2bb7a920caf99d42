"""One device: clocks, the input pipeline, fixed costs of a step, the first loss as a test."""

import math

from distlab import metrics
from distlab.quizzes.item import Item, Wrong, number, one_number_of, one_of
from distlab.quizzes.numbers import Numbers


def speedup_of_two_clocks(numbers: Numbers) -> Item:
    """Which clock gives the speed-up?"""
    elapsed = numbers.pick("elapsed", ((10, 6), (24, 15), (30, 12)))
    cpu = numbers.pick("cpu", ((14, 16), (20, 26), (28, 35)))
    speedup = metrics.speedup(*elapsed)
    return one_number_of(
        "The same training was timed on one GPU and on two. What is the speed-up?",
        speedup,
        "",
        "Speed-up compares elapsed times.",
        Wrong(metrics.speedup(*cpu), "CPU times compared", "`process_time` sums over threads and leaves out waiting."),
        Wrong(2, "Devices counted", "The number of devices is the best case, not the result."),
        Wrong(
            cpu[0] / elapsed[1],
            "Two clocks mixed",
            "That divides the CPU time of one run by the elapsed time of the other.",
        ),
        block=(
            f"one GPU:  elapsed {elapsed[0]:>2} s, process_time {cpu[0]} s\n"
            f"two GPUs: elapsed {elapsed[1]:>2} s, process_time {cpu[1]} s"
        ),
    )


def cpu_time_of_threads(numbers: Numbers) -> Item:
    """What does the CPU time of threads say?"""
    seconds = numbers.pick("seconds", (8, 12, 20))
    threads = numbers.pick("threads", (2, 4))
    clock = numbers.pick("clock", ("time.perf_counter()", "time.process_time()"))
    elapsed = clock == "time.perf_counter()"
    right, mistaken = (seconds / threads, seconds) if elapsed else (seconds, seconds / threads)
    return one_number_of(
        f"One thread hashes files for {seconds} s. Now {threads} threads share the same work on {threads} free cores. "
        "About "
        f"how many seconds does `{clock}` show between start and end?",
        right,
        "s",
        "Elapsed time falls with free cores; CPU time is the sum over threads, so it stays.",
        Wrong(mistaken, "The other clock", "Ask whether the clock sums over threads."),
        Wrong(seconds * threads, "Threads add work", "The same work is divided among them."),
        Wrong(0, "Nothing computes", "The threads belong to this process."),
        exact=True,
    )


def prefetch(numbers: Numbers) -> Item:
    """How long is a step with prefetch?"""
    prepare = numbers.pick("prepare", (4, 6, 9, 15))
    compute = numbers.pick("compute", (5, 8, 12, 20))
    return number(
        f"Preparing a batch takes {prepare} ms, the step on the device {compute} ms. Another core is free. How many ms "
        "does a "
        "step take with `prefetch(2)`?",
        max(prepare, compute),
        "ms",
        "The next batch is prepared while the device works, so the longer of the two decides.",
        Wrong(prepare + compute, "One after the other", "That is the time without prefetch."),
        Wrong(min(prepare, compute), "The shorter one", "The device needs both: its data and its computing."),
        Wrong((prepare + compute) / 2, "Half of the sum", "That is true only if both take equally long."),
        exact=True,
    )


def decoded_images(numbers: Numbers) -> Item:
    """How many images are decoded?"""
    images = numbers.pick("images", (256, 1_000, 5_000))
    epochs = numbers.pick("epochs", (3, 5, 10))
    line = numbers.pick("line", ("map(decode).cache()", "cache().map(decode)"))
    counts = {"map(decode).cache()": images, "cache().map(decode)": images * epochs}
    mistaken = counts[next(each for each in counts if each != line)]
    return number(
        f"A pipeline is `records.{line}.batch(32)`, with {images:,} records. How many images are decoded in {epochs} "
        "epochs?",
        counts[line],
        "images",
        "A cache keeps what comes before it; what comes after it is done in every epoch.",
        Wrong(mistaken, "The other order", "Ask whether decoding comes before or after the cache."),
        Wrong(math.ceil(images / 32) * epochs, "Batches counted", "`map` before `batch` is called once per image."),
        Wrong(32 * epochs, "One batch per epoch", "Every record is read in every epoch."),
        exact=True,
    )


def throughput_of_a_batch(numbers: Numbers) -> Item:
    """How many images per second has a batch size?"""
    fixed = numbers.pick("fixed", (800, 1_500, 3_000))
    per_image = numbers.pick("per_image", (5, 10, 20))
    batch = numbers.pick("batch", (32, 128, 512))
    rate = metrics.throughput(batch, 1e-6 * (fixed + per_image * batch))
    return one_number_of(
        f"A step costs {fixed:,} µs whatever the batch, and {per_image} µs for each image. How many images per second "
        "does a "
        f"batch of {batch} reach?",
        rate,
        "images/s",
        f"A step takes {fixed + per_image * batch:,} µs.",
        Wrong(1e6 / per_image, "No fixed cost", "That is what very large batches come close to."),
        Wrong(batch * 1e6 / fixed, "Only the fixed cost", "Each image has its own cost, too."),
        Wrong(1e6 / (fixed + per_image), "One image per step", "The fixed cost is paid once per step, not per image."),
    )


def updates_of_an_epoch(numbers: Numbers) -> Item:
    """How many updates has an epoch?"""
    images = numbers.pick("images", (3_200, 6_400, 8_000))
    batch = numbers.pick("batch", (25, 50, 100))
    per_execution = numbers.pick("per_execution", (4, 8, 16))
    return one_number_of(
        f"{images:,} images, batches of {batch}, `compile(steps_per_execution={per_execution})`. How many updates of "
        "the "
        "weights has an epoch?",
        images // batch,
        "updates",
        "Several steps per execution are the same updates, one after the other; only Python runs less often.",
        Wrong(images // (batch * per_execution), "A larger batch", "Each of these steps has its own update."),
        Wrong(images // batch * per_execution, "More steps", "The images of an epoch stay as many."),
        Wrong(images // per_execution, "The batch forgotten", "An update takes a batch of images."),
        exact=True,
    )


def first_loss(numbers: Numbers) -> Item:
    """Which loss has an untrained classifier?"""
    classes = numbers.pick("classes", (5, 20, 50, 100, 1_000))
    return number(
        f"A classifier for {classes:,} classes has not been trained. Which cross-entropy do you expect, if loss and "
        "last layer "
        "fit?",
        math.log(classes),
        "",
        f"Each class gets a probability near 1/{classes:,}, so the loss is near ln {classes:,}.",
        Wrong(math.log2(classes), "Logarithm to base 2", "Keras takes the natural logarithm."),
        Wrong(math.log10(classes), "Logarithm to base 10", "Keras takes the natural logarithm."),
        Wrong(1 - 1 / classes, "The share of errors", "That is one minus the accuracy; the loss is a logarithm."),
    )


def diagnose_the_loss(numbers: Numbers) -> Item:
    """What is wrong with this loss?"""
    classes = numbers.pick("classes", (10, 20, 100))
    fault = numbers.pick("fault", ("logits as probabilities", "softmax twice"))
    chance, floor = math.log(classes), math.log(1 + (classes - 1) / math.e)
    first, last = (2.9 * chance, 2.4 * chance) if fault == "logits as probabilities" else (chance, floor + 0.01)
    answers = {
        "logits as probabilities": "The loss takes logits for probabilities",
        "softmax twice": "A softmax is applied twice",
    }
    mistaken = next(answers[each] for each in answers if each != fault)
    return one_of(
        f"A classifier for {classes} classes trains on easy images. What is wrong?",
        answers[fault],
        f"ln {classes} is {chance:.2f}: another first loss means that loss and last layer do not fit. Two softmaxes "
        "begin "
        f"there, but never fall below {floor:.2f}.",
        Wrong(mistaken, "The first loss misread", "Compare the loss before training with that of a guess."),
        Wrong("The learning rate is too small", "Patience", "Then the loss would begin at a guess and go on falling."),
        Wrong("The images are not shuffled", "The data", "The loss before training does not depend on their order."),
        block=f"before training: loss {first:.2f}\nepoch 10:        loss {last:.2f}\nepoch 20:        loss {last:.2f}",
    )


def batches_of_two_epochs(numbers: Numbers) -> Item:
    """How many batches has a repeated pipeline?"""
    images = numbers.pick("images", (12, 22, 33, 47))
    batch = numbers.pick("batch", (5, 8, 10))
    order = numbers.pick("order", ("batch, repeat", "repeat, batch"))
    counts = {"batch, repeat": 2 * math.ceil(images / batch), "repeat, batch": math.ceil(2 * images / batch)}
    code = f"batch({batch}).repeat(2)" if order == "batch, repeat" else f"repeat(2).batch({batch})"
    return one_number_of(
        f"How many batches come from `tf.data.Dataset.range({images}).{code}`?",
        counts[order],
        "batches",
        "`repeat` after `batch` keeps the epochs apart; before it, a batch may hold numbers of both.",
        Wrong(
            counts["repeat, batch" if order == "batch, repeat" else "batch, repeat"],
            "The other order",
            "Read from the left.",
        ),
        Wrong(2 * (images // batch), "The rest is dropped", "Only `drop_remainder=True` drops it."),
        Wrong(images // batch, "One epoch", "`repeat(2)` yields the numbers twice."),
        exact=True,
    )


def place_of_the_cache(numbers: Numbers) -> Item:
    """Where does the cache go?"""
    decoded = numbers.pick("decoded", (20, 60, 400, 900))
    memory = numbers.pick("memory", (128, 256))
    in_memory, in_file = "decode, cache in memory, random crop", "decode, cache in a file, random crop"
    right, wrong = (in_memory, in_file) if decoded < memory else (in_file, in_memory)
    return one_of(
        f"Decoding is slow, the crop is random in every epoch, the decoded set has {decoded} GB, and {memory} GB of "
        "memory are "
        "free. Which order do you take?",
        right,
        "The cache comes after the slow work that is always the same, and before what must be random.",
        Wrong(
            wrong,
            "The size not compared",
            f"Compare {decoded} GB with {memory} GB: memory is faster, a file is larger.",
        ),
        Wrong("decode, random crop, cache in memory", "A frozen crop", "A cache freezes what comes before it."),
        Wrong(
            "cache in memory, decode, random crop",
            "Reading cached only",
            "That saves the reading, not the slow decoding.",
        ),
    )


TEMPLATES = (
    speedup_of_two_clocks,
    cpu_time_of_threads,
    decoded_images,
    prefetch,
    batches_of_two_epochs,
    place_of_the_cache,
    throughput_of_a_batch,
    updates_of_an_epoch,
    first_loss,
    diagnose_the_loss,
)
