"""Several workers: TF_CONFIG, batches and steps, sharding of the data, saving, uneven data."""

import json
import math

import numpy as np

from distlab import cluster_spec
from distlab.large_batch import FourNumbers
from distlab.quizzes import simulations
from distlab.quizzes.item import Item, Wrong, number, one_number_of, one_of, several_of
from distlab.quizzes.numbers import Numbers


def broken_config(numbers: Numbers) -> Item:
    """What is wrong with this TF_CONFIG?"""
    workers = numbers.pick("workers", (2, 3, 4))
    port = numbers.pick("port", (12345, 23456, 34567))
    addresses = [f"host{index}:{port}" for index in range(1, workers + 1)]
    text = json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": workers - 1}})
    broken = {
        "The index is counted from 1": text.replace(f'"index": {workers - 1}', f'"index": {workers}'),
        "An address has no port": text.replace(f"host2:{port}", "host2"),
        "An address appears twice": text.replace("host2", "host1"),
        "It has Python's quotes": str(json.loads(text)),
    }
    mistake = numbers.pick("mistake", tuple(broken))
    error = _error_of(broken[mistake])
    wrong = (
        Wrong(f"{name}.", "Another fault", f"Then it would be `{broken[name]}`.") for name in broken if name != mistake
    )
    return one_of(
        "A worker of a cluster has this TF_CONFIG. What is wrong with it?",
        f"{mistake}.",
        f"`cluster_spec.check` says: {error}.",
        *wrong,
        block=broken[mistake],
    )


def _error_of(text: str) -> str:
    try:
        cluster_spec.check(text)
    except cluster_spec.ClusterSpecError as error:
        return str(error)
    raise RuntimeError("the text is a right TF_CONFIG")


def own_address(numbers: Numbers) -> Item:
    """Where does this worker listen?"""
    workers = numbers.pick("workers", (4, 5, 6))
    index = numbers.pick("index", (2, 3))
    addresses = [f"node{number}:2222" for number in range(1, workers + 1)]
    text = cluster_spec.tf_config({"worker": addresses}, "worker", index)
    spec = cluster_spec.check(text)
    return one_of(
        "Where does the process with this TF_CONFIG listen?",
        str(spec.address),
        "The index counts the addresses from 0.",
        Wrong(addresses[index - 1], "Counted from 1", "The first address has index 0."),
        Wrong(addresses[0], "The chief's address", "Worker 0 listens there; each worker has its own address."),
        Wrong(
            "At all of them", "The list is its own", "The list is the cluster, the same for all; the index picks one."
        ),
        block=text,
    )


def samples_of_a_worker(numbers: Numbers) -> Item:
    """How many samples does a worker get in a step?"""
    workers = numbers.pick("workers", (2, 3, 4, 6))
    batch = numbers.pick("batch", (48, 96, 240))
    samples = 9_600
    four = FourNumbers.of_global_batch(samples, workers, batch, 0.01, batch)
    return number(
        f"A program with `batch({batch})` trains under MultiWorkerMirroredStrategy with {workers} workers, one replica "
        "each. How many samples does each worker get in a step?",
        four.per_replica_batch,
        "samples",
        f"`batch` takes the global batch size, which {workers} workers share.",
        Wrong(batch, "The batch of each worker", "That is the global batch, of all workers together."),
        Wrong(batch * workers, "More workers, more samples", "The global batch does not grow by itself."),
        Wrong(samples / workers / batch, "Steps for samples", "That divides the data set, not the batch."),
        exact=True,
    )


def steps_with_full_batches(numbers: Numbers) -> Item:
    """How many steps has an epoch when each worker keeps its batch?"""
    workers = numbers.pick("workers", (2, 4, 8))
    batch = numbers.pick("batch", (16, 32, 48))
    samples = numbers.pick("samples", (1_000, 5_000, 9_600))
    steps = FourNumbers(samples, workers, batch, 0.01, batch).steps_per_epoch
    return one_number_of(
        f"An epoch has {samples:,} samples. You multiply the batch size of {batch} by the {workers} workers, so that "
        "each "
        "keeps a full batch. How many full steps has an epoch now?",
        steps,
        "steps",
        f"The global batch is {batch * workers}, and an epoch has n / B steps, rounded down.",
        Wrong(samples // batch, "As before", f"Then each sample is used about {workers} times in an epoch."),
        Wrong(samples // batch * workers, "More workers, more steps", "All workers make each step together."),
        Wrong(steps // workers, "Divided twice", "The workers do not share the steps: each takes part in every step."),
        exact=True,
    )


def auto_sharding(numbers: Numbers) -> Item:
    """How many samples are read under a policy?"""
    workers = numbers.pick("workers", (2, 4, 5))
    files = workers * numbers.pick("files per worker", (2, 3))
    of_file = numbers.pick("of_file", (100, 250, 500))
    policy = numbers.pick("policy", ("DATA", "FILE"))
    samples = files * of_file
    # Which samples each worker reads: all of them, or those of every W-th file.
    read = {
        "DATA": sum(samples for _ in range(workers)),
        "FILE": sum(len(range(worker, files, workers)) * of_file for worker in range(workers)),
    }
    notes = {
        "DATA": "Each worker reads everything and keeps its part of each batch.",
        "FILE": f"Each worker reads every {workers}th file, so each file is read once.",
    }
    return one_number_of(
        f"{files} files with {of_file} samples each, {workers} workers, the auto-shard policy {policy}. How many "
        "samples "
        "do all workers together read from the files in an epoch?",
        read[policy],
        "samples",
        notes[policy],
        Wrong(
            read["FILE" if policy == "DATA" else "DATA"],
            "The other policy",
            "DATA reads all files in each worker, FILE does not.",
        ),
        Wrong(samples // workers, "One worker's share", "That is what one worker trains on."),
        Wrong(samples * files, "Each file by itself", "A file's samples are not read once per file."),
        exact=True,
    )


def too_few_files(numbers: Numbers) -> Item:
    """What does AUTO do with these files?"""
    workers = numbers.pick("workers", (4, 6))
    files = numbers.pick("files", (1, 2, 12, 24))
    failure = "It fails, since there are fewer files than workers."
    share = f"Each worker reads {math.ceil(files / workers)} of the files."
    all_samples = "Each worker reads all files and keeps its part of each batch."
    whole = "Each worker trains on all samples."
    right, rejected = (share, failure) if files >= workers else (failure, share)
    return one_of(
        f"A pipeline reads {files} {'file' if files == 1 else 'files'}; there are {workers} workers and no policy is "
        "set. "
        "How is the data divided?",
        right,
        "AUTO chooses FILE because the pipeline reads files, and FILE needs at least one file per worker.",
        Wrong(rejected, "The number of files", "Compare the number of files with the number of workers."),
        Wrong(all_samples, "AUTO taken for DATA", "AUTO falls back to DATA only if the pipeline reads no files."),
        Wrong(whole, "AUTO taken for OFF", "Only OFF removes nothing."),
    )


def metric_of_the_chief(numbers: Numbers) -> Item:
    """What does the chief read when it is alone?"""
    workers = numbers.pick("workers", (3, 4, 5))
    mean = numbers.pick("mean", (2.0, 4.0, 5.0))
    first, second = numbers.pick("sums", ((100.0, 3.0), (60.0, 2.0), (90.0, 5.0)))
    total, count = simulations.sums_in_order(workers, (mean, 1.0), (first, second))
    return one_number_of(
        f"Each of {workers} workers gave a Mean metric one value, {mean:g}. Only the chief reads it, which sums its "
        "total "
        f"and its count over the workers. Meanwhile the others sum {first:g} and then {second:g}. What does the chief "
        "read?",
        total / count,
        "",
        f"TensorFlow pairs the calls in their order: total {total:g}, count {count:g}, and no error.",
        Wrong(
            mean,
            "The metric is its own",
            "Reading the metric is a collective, and the others take part with other calls.",
        ),
        Wrong(first / second, "The others' numbers only", "The chief's own total and count are in the sums, too."),
        Wrong((mean + first) / (1 + second), "One other worker", f"There are {workers - 1} other workers."),
    )


def save_by_the_chief(numbers: Numbers) -> Item:
    """Does the chief's save hang?"""
    layers = numbers.pick("layers", (0, 1, 3))
    workers = numbers.pick("workers", (2, 4, 8))
    works, hangs = "It writes the checkpoint.", "It waits forever."
    right, wrong = (hangs, works) if layers else (works, hangs)
    amount = f"{layers} batch-normalisation {'layer' if layers == 1 else 'layers'}" if layers else "dense layers only"
    return one_of(
        f"A model has {amount}. Of {workers} workers only the chief writes a `tf.train.Checkpoint` of model and SGD; "
        "the "
        "others wait for it. What does the chief do?",
        right,
        "Mirrored weights are complete in every worker; moving averages have a part in each, and reading them is a "
        "collective.",
        Wrong(wrong, "The variables were not looked at", "Ask which variables have a part in each worker."),
        Wrong(
            "It writes only its part of the weights.",
            "Weights in parts",
            "Mirrored weights are complete in every worker.",
        ),
        Wrong(
            "It raises an error about the chief.", "A check by TensorFlow", "TensorFlow does not know who will call."
        ),
    )


def uneven_samples(numbers: Numbers) -> Item:
    """How many samples are lost or counted twice?"""
    samples = numbers.pick("samples", (1_001, 1_030, 2_050, 3_070))
    batch = numbers.pick("batch", (100, 120, 200))
    feeding = numbers.pick("feeding", ("drop_remainder", "repeat"))
    steps = FourNumbers(samples, 1, batch, 0.01, batch).steps_per_epoch
    lost, twice = samples - steps * batch, (steps + 1) * batch - samples
    question = {
        "drop_remainder": f"fed by `.batch({batch}, drop_remainder=True)`. How many are lost in an epoch?",
        "repeat": f"fed by `.repeat().batch({batch})` for {steps + 1} steps. How many are counted twice?",
    }
    right, other_answer = (lost, twice) if feeding == "drop_remainder" else (twice, lost)
    return number(
        f"{samples:,} samples are {question[feeding]}",
        right,
        "samples",
        f"{steps} full batches take {steps * batch:,} samples; {steps + 1} would take {(steps + 1) * batch:,}.",
        Wrong(
            other_answer, "The other way to feed", "Dropping loses the remainder; repeating fills the last batch up."
        ),
        Wrong(batch, "A whole batch", "Only what lies between the samples and whole batches counts."),
        Wrong(0, "Nothing happens", "The batches do not divide the samples."),
        exact=True,
    )


def accuracy_of_workers(numbers: Numbers) -> Item:
    """Which is the accuracy of uneven workers?"""
    counts = numbers.pick("counts", ((60, 20), (75, 25), (90, 10), (40, 10)))
    means = numbers.pick("means", ((0.9, 0.5), (0.8, 0.6), (0.5, 0.9)))
    right = float(np.average(means, weights=counts))
    return several_of(
        f"Worker 0 has {counts[0]} samples with accuracy {means[0]}, worker 1 has {counts[1]} with {means[1]}. "
        "What is true?",
        {
            f"The accuracy of all is {right:.3f}.": "Sums and counts are added, and divided once.",
            "Keras's `evaluate` gives the right accuracy.": "Its metrics all-reduce sums and counts.",
        },
        Wrong(
            f"The accuracy of all is {np.mean(means):.3f}.", "The mean of the means", "The workers have unequal counts."
        ),
        Wrong(
            f"The accuracy of all is {float(np.average(means, weights=counts[::-1])):.3f}.",
            "The weights are exchanged",
            "Each mean belongs to its own count.",
        ),
        Wrong(
            "The worker with fewer samples waits forever.", "A hang", "The strategy's iterator gives it an empty batch."
        ),
    )


TEMPLATES = (
    own_address,
    broken_config,
    samples_of_a_worker,
    steps_with_full_batches,
    auto_sharding,
    too_few_files,
    save_by_the_chief,
    metric_of_the_chief,
    uneven_samples,
    accuracy_of_workers,
)
