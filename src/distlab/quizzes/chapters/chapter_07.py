"""Several workers: TF_CONFIG, batches and steps, sharding of the data, saving, uneven data."""

import json
import math

import numpy as np

from distlab import cluster_spec
from distlab.quizzes.item import Item, amount, other, pick


def _error_of(text: str) -> str:
    try:
        cluster_spec.check(text)
    except cluster_spec.ClusterSpecError as error:
        return str(error)
    raise RuntimeError("the text is a right TF_CONFIG")


def own_address(item: Item, workers: int = pick(4, 5, 6), index: int = pick(2, 3)) -> None:
    addresses = [f"node{number}:2222" for number in range(1, workers + 1)]
    item.choose("Where does the process with this TF_CONFIG listen?")
    item.block = cluster_spec.tf_config({"worker": addresses}, "worker", index)
    item.right(addresses[index]).why("The index counts the addresses from 0.")
    item.wrong(addresses[index - 1], "Counted from 1").why("The first address has index 0.")
    item.wrong(addresses[0], "The chief's address").why("Worker 0 listens there; each worker has its own address.")
    item.wrong("At all of them", "The list is its own").why("""The list is the cluster, the same for all; the index
        picks one.""")


def broken_config(
    item: Item,
    workers: int = pick(2, 3, 4),
    port: int = pick(12345, 23456, 34567),
    mistake: str = pick(
        "The index is counted from 1", "An address has no port", "An address appears twice", "It has Python's quotes"
    ),
) -> None:
    addresses = [f"host{index}:{port}" for index in range(1, workers + 1)]
    text = json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": workers - 1}})
    broken = {
        "The index is counted from 1": text.replace(f'"index": {workers - 1}', f'"index": {workers}'),
        "An address has no port": text.replace(f"host2:{port}", "host2"),
        "An address appears twice": text.replace("host2", "host1"),
        "It has Python's quotes": str(json.loads(text)),
    }

    item.choose("A worker of a cluster has this TF_CONFIG. What is wrong with it?")
    item.block = broken[mistake]
    item.right(f"{mistake}.").why(f"`cluster_spec.check` says: {_error_of(broken[mistake])}.")
    for name in broken:
        if name != mistake:
            item.wrong(f"{name}.", "Another fault").why(f"Then it would be `{broken[name]}`.")


def samples_of_a_worker(item: Item, workers: int = pick(2, 3, 4, 6), batch: int = pick(48, 96, 240)) -> None:
    item.enter(f"""A program with `batch({batch})` trains under MultiWorkerMirroredStrategy with {workers} workers, one
        replica each. How many samples does each worker get in a step?""")
    item.right(batch // workers, "samples").why(f"`batch` takes the global batch size, which {workers} workers share.")
    item.wrong(batch, "The batch of each worker").why("That is the global batch, of all workers together.")
    item.wrong(batch * workers, "More workers, more samples").why("The global batch does not grow by itself.")
    item.wrong(batch / workers**2, "Divided twice").why("The strategy divides once; do not divide in `batch` as well.")


def steps_with_full_batches(
    item: Item, workers: int = pick(2, 4, 8), batch: int = pick(16, 32, 48), samples: int = pick(1_000, 5_000, 9_600)
) -> None:
    steps = samples // (batch * workers)
    item.choose(f"""An epoch has {samples:,} samples. You multiply the batch size of {batch} by the {workers} workers,
        so that each keeps a full batch. How many full steps does an epoch have now?""")
    item.right(steps, "steps").why(f"""The global batch is {batch * workers}, and an epoch has n / B steps, rounded
        down.""")
    item.wrong(samples // batch, "As before").why(f"Then each sample is used about {workers} times in an epoch.")
    item.wrong(samples // batch * workers, "More workers, more steps").why("All workers make each step together.")
    item.wrong(steps // workers, "Divided twice").why("""The workers do not share the steps: each takes part in every
        step.""")


def auto_sharding(
    item: Item,
    workers: int = pick(2, 4, 5),
    files_per_worker: int = pick(2, 3),
    of_file: int = pick(100, 250, 500),
    policy: str = pick("DATA", "FILE"),
) -> None:
    files = workers * files_per_worker
    samples = files * of_file
    read = {"DATA": workers * samples, "FILE": samples}
    notes = {
        "DATA": "Each worker reads everything and keeps its part of each batch.",
        "FILE": f"Each worker reads every {workers}th file, so each file is read once.",
    }
    item.choose(f"""{files} files with {of_file} samples each, {workers} workers, the auto-shard policy {policy}. How
        many samples do all workers together read from the files in an epoch?""")
    item.right(read[policy], "samples").why(notes[policy])
    item.wrong(other(read, policy), "The other policy").why("DATA reads all files in each worker, FILE does not.")
    item.wrong(samples // workers, "One worker's share").why("That is what one worker trains on.")
    item.wrong(samples * files, "Each file by itself").why("A file's samples are not read once per file.")


def too_few_files(item: Item, workers: int = pick(4, 6), files: int = pick(1, 2, 12, 24)) -> None:
    failure = "It fails, since there are fewer files than workers."
    share = f"Each worker reads {math.ceil(files / workers)} of the files."
    right, wrong = (share, failure) if files >= workers else (failure, share)
    item.choose(f"""A pipeline reads {amount(files, "files")}; there are {workers} workers and no policy is set. How is
        the data divided?""")
    item.right(right).why("""AUTO chooses FILE because the pipeline reads files, and FILE needs at least one file per
        worker.""")
    item.wrong(wrong, "The number of files").why("Compare the number of files with the number of workers.")
    item.wrong("Each worker reads all files and keeps its part of each batch.", "AUTO taken for DATA").why("""AUTO falls
        back to DATA only if the pipeline reads no files.""")
    item.wrong("Each worker trains on all samples.", "AUTO taken for OFF").why("Only OFF removes nothing.")


def save_by_the_chief(item: Item, layers: int = pick(0, 1, 3), workers: int = pick(2, 4, 8)) -> None:
    works, hangs = "It writes the checkpoint.", "It waits forever."
    right, wrong = (hangs, works) if layers else (works, hangs)
    kind = amount(layers, "batch-normalisation layers") if layers else "dense layers only"
    item.choose(f"""A model has {kind}. Of {workers} workers only the chief writes a `tf.train.Checkpoint` of model and
        SGD; the others wait for it. What does the chief do?""")
    item.right(right).why("""Mirrored weights are complete in every worker; moving averages have a part in each, and
        reading them is a collective.""")
    item.wrong(wrong, "The variables were not looked at").why("Ask which variables have a part in each worker.")
    item.wrong("It writes only its part of the weights.", "Weights in parts").why("""Mirrored weights are complete in
        every worker.""")
    item.wrong("It raises an error about the chief.", "A check by TensorFlow").why("""TensorFlow does not know who will
        call.""")


def metric_of_the_chief(
    item: Item,
    workers: int = pick(3, 4, 5),
    mean: float = pick(2.0, 4.0, 5.0),
    sums: tuple[float, float] = pick((100.0, 3.0), (60.0, 2.0), (90.0, 5.0)),
) -> None:
    first, second = sums
    total, count = (mean + (workers - 1) * first), (1 + (workers - 1) * second)
    item.choose(f"""Each of {workers} workers gave a Mean metric one value, {mean:g}. Only the chief reads it, which
        sums its total and its count over the workers. Meanwhile each other worker
        adds {first:g} to a sum and then {second:g} to another. What does
        the chief read?""")
    item.right(total / count).why(f"""TensorFlow pairs the calls in their order: total {total:g}, count {count:g}, and
        no error.""")
    item.wrong(mean, "The metric is its own").why("""Reading the metric is a collective, and the others take part with
        other calls.""")
    item.wrong(first / second, "The others' numbers only").why("The chief's own total and count are in the sums, too.")
    item.wrong((mean + first) / (1 + second), "One other worker").why(f"There are {workers - 1} other workers.")


def uneven_samples(
    item: Item,
    samples: int = pick(1_001, 1_030, 2_050, 3_070),
    batch: int = pick(100, 120, 200),
    feeding: str = pick("drop_remainder", "repeat"),
) -> None:
    steps = samples // batch
    uncounted = {"drop_remainder": samples - steps * batch, "repeat": (steps + 1) * batch - samples}
    question = {
        "drop_remainder": f"fed by `.batch({batch}, drop_remainder=True)`. How many are lost in an epoch?",
        "repeat": f"fed by `.repeat().batch({batch})` for {steps + 1} steps. How many are counted twice?",
    }
    item.enter(f"{samples:,} samples are {question[feeding]}")
    item.right(uncounted[feeding], "samples").why(f"""{steps} full batches take {steps * batch:,} samples; {steps + 1}
        would take {(steps + 1) * batch:,}.""")
    item.wrong(other(uncounted, feeding), "The other way to feed").why("""Dropping loses the remainder; repeating fills
        the last batch up.""")
    item.wrong(batch, "A whole batch").why("Only what lies between the samples and whole batches counts.")
    item.wrong(0, "Nothing happens").why("The batches do not divide the samples.")


def accuracy_of_workers(
    item: Item,
    counts: tuple[int, int] = pick((60, 20), (75, 25), (90, 10), (40, 10)),
    means: tuple[float, float] = pick((0.9, 0.5), (0.8, 0.6), (0.5, 0.9)),
) -> None:
    accuracy, exchanged = np.average(means, weights=counts), np.average(means, weights=counts[::-1])
    item.choose(f"""Worker 0 has {counts[0]} samples with accuracy {means[0]}, worker 1 has {counts[1]} with {means[1]}.
        What is true?""")
    item.right(f"The accuracy of all is {accuracy:.3f}.").why("Sums and counts are added, and divided once.")
    item.right("Keras's `evaluate` gives the right accuracy.").why("Its metrics all-reduce sums and counts.")
    item.wrong(f"The accuracy of all is {np.mean(means):.3f}.", "The mean of the means").why("""The workers have unequal
        counts.""")
    item.wrong(f"The accuracy of all is {exchanged:.3f}.", "The weights are exchanged").why("""Each mean belongs to its
        own count.""")
    item.wrong("The worker with fewer samples waits forever.", "A hang").why("""The strategy's iterator gives it an
        empty batch.""")
