"""Answers to lab 07 as students give them."""

import contextlib
import json
import shutil
import tempfile
from pathlib import Path

from distlab import cluster_spec
from distlab.labs.lab_07.given import BROKEN
from tests.labs.known_wrong import LabAnswers, written_solution

ANSWERS = LabAnswers()
wrong, right = ANSWERS.wrong, ANSWERS.right


# TF_CONFIG


@wrong("tf_config", "it is a dict", "holds text")
def a_dictionary(cluster, task_type, index):
    return {"cluster": cluster, "task": {"type": task_type, "index": index}}


@wrong("tf_config", "single quotes")
def pythons_text(cluster, task_type, index):
    return str({"cluster": cluster, "task": {"type": task_type, "index": index}})


@wrong("tf_config", "turned into text twice")
def dumped_twice(cluster, task_type, index):
    return json.dumps(json.dumps({"cluster": cluster, "task": {"type": task_type, "index": index}}))


@wrong("tf_config", "From which number does TensorFlow count")
def counted_from_one(cluster, task_type, index):
    return json.dumps({"cluster": cluster, "task": {"type": task_type, "index": index + 1}})


@wrong("tf_config", "where do the quotes come from")
def index_as_text(cluster, task_type, index):
    return json.dumps({"cluster": cluster, "task": {"type": task_type, "index": str(index)}})


@wrong("tf_config", "of the same type", "1 chief")
def always_a_worker(cluster, task_type, index):
    return json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}})


@wrong("tf_config", "How does it find the others")
def only_its_own_address(cluster, task_type, index):
    own = {task_type: [cluster[task_type][index]]}
    return json.dumps({"cluster": own, "task": {"type": task_type, "index": index}})


@wrong("tf_config", "at the top it has the names cluster, type, index")
def without_task(cluster, task_type, index):
    return json.dumps({"cluster": cluster, "type": task_type, "index": index})


@wrong("tf_config", "not a dictionary: each job")
def workers_as_a_list(cluster, task_type, index):
    return json.dumps({"cluster": cluster["worker"], "task": {"type": task_type, "index": index}})


@wrong("tf_config", "among the tasks of one type")
def numbered_through(cluster, task_type, index):
    tasks = [(job, place) for job in cluster for place in range(len(cluster[job]))]
    return json.dumps({"cluster": cluster, "task": {"type": task_type, "index": tasks.index((task_type, index))}})


@right("tf_config")
def glued_by_hand(cluster, task_type, index):
    jobs = ", ".join(
        '"{}": [{}]'.format(job, ", ".join(f'"{address}"' for address in addresses))
        for job, addresses in sorted(cluster.items())
    )
    return f'{{"task": {{"index": {index}, "type": "{task_type}"}},\n"cluster": {{{jobs}}}}}'


# The chief


@wrong("is_chief", "two would write the same file")
def worker_0_as_well(cluster, task_type, index):
    return task_type == "chief" or (task_type == "worker" and index == 0)


@wrong("is_chief", "A parameter server trains nothing")
def the_first_of_each_job(cluster, task_type, index):
    return task_type == "chief" or (task_type != "worker" and index == 0) or ("chief" not in cluster and index == 0)


@wrong("is_chief", "nobody says that it is the chief")
def only_a_task_called_chief(cluster, task_type, index):
    return task_type == "chief"


@wrong("is_chief", "Who is it when the cluster names one")
def always_worker_0(cluster, task_type, index):
    return task_type == "worker" and index == 0


@wrong("is_chief", "Who takes the part when the cluster names no chief")
def the_last_worker(cluster, task_type, index):
    return task_type == "worker" and index == len(cluster["worker"]) - 1


@wrong("is_chief", "but for the one that is")
def the_wrong_way_round(cluster, task_type, index):
    return not (task_type == "chief" or ("chief" not in cluster and task_type == "worker" and index == 0))


@wrong("is_chief", "asked for True or False")
def names_the_chief(cluster, task_type, index):
    return "chief 0" if "chief" in cluster else "worker 0"


@right("is_chief")
def by_the_first_address(cluster, task_type, index):
    first = cluster.get("chief", cluster["worker"])[0]
    return cluster[task_type][index] == first


# The diagnosis

SOLUTION = written_solution("07", "diagnosis")
ANSWERS.right_answers["diagnosis"].append(
    (
        "lists_in_another_order",
        {"diagnosis": {letter: list(SOLUTION[letter]) for letter in sorted(BROKEN, reverse=True)}},
    )
)


def but_for(letter, field, mend, *hint):
    title = f"{letter}_{field}_{mend}".replace(" ", "_")
    ANSWERS.wrong_value("diagnosis", title, SOLUTION | {letter: (field, mend)}, f"{letter}: wrong", *hint, share=5 / 6)


but_for("A", "cluster.worker", "write the same list in every process", "exceeds the maximum")
but_for("A", "task.index", "give every process a number of its own", "place is right", "one of them names no address")
but_for("B", "cluster.worker", "give every address another port", "place is right", "colons")
but_for("B", "task.index", "count from 0", "asks for a port")
but_for("C", "task.index", "count from 0", "whom does it call")
but_for(
    "C", "cluster.worker", "write the same list in every process", "place is right", "something else on every machine"
)
but_for("D", "cluster.worker", "write the same list in every process", "second character")
but_for("D", "the whole text", "write it in one line", "place is right", "Which character")
but_for("E", "cluster.worker", "give every address another port", "taken twice")
but_for("E", "task.index", "count from 0", "place is right", "compare them with each other")
but_for("F", "task.index", "give every process a number of its own", "Put the two below each other")
but_for("F", "cluster.worker", "give every address a port", "place is right", "Who is worker 0 for process 0")
but_for("F", "task.type", "write the same list in every process", "cannot be done in task.type")
but_for("E", "index", "count from 0", "not among the fields")


# Saving


def finish(worker, model, accuracy, folder):
    """The right way, to be used by wrong ones."""
    value = accuracy.result()
    with tempfile.TemporaryDirectory() as scratch:
        model.save((folder if worker.is_chief else Path(scratch)) / "model.keras")
    if worker.is_chief:
        (folder / "accuracy.txt").write_text(str(value))


@wrong("save", "the chief calls model.save", "waits for ever")
def only_the_chief_saves(worker, model, accuracy, folder):
    value = accuracy.result()
    if worker.is_chief:
        model.save(folder / "model.keras")
        (folder / "accuracy.txt").write_text(str(value))


@wrong("save", "the chief calls accuracy.result", "the next one of the others")
def only_the_chief_reads_the_accuracy(worker, model, accuracy, folder):
    with tempfile.TemporaryDirectory() as scratch:
        model.save((folder if worker.is_chief else Path(scratch)) / "model.keras")
    if worker.is_chief:
        (folder / "accuracy.txt").write_text(str(accuracy.result()))


@wrong("save", "does nothing at all")
def only_the_chief_does_anything(worker, model, accuracy, folder):
    if worker.is_chief:
        finish(worker, model, accuracy, folder)


@wrong("save", "a race")
def everybody_to_one_path(worker, model, accuracy, folder):
    value = accuracy.result()
    model.save(folder / "model.keras")
    if worker.is_chief:
        (folder / "accuracy.txt").write_text(str(value))


@wrong("save", "both write accuracy.txt")
def everybody_writes_the_accuracy(worker, model, accuracy, folder):
    finish(worker, model, accuracy, folder)
    (folder / "accuracy.txt").write_text("0.5" if not worker.is_chief else (folder / "accuracy.txt").read_text())


@wrong("save", "in the shared folder", "copy is not wanted")
def each_into_a_folder_of_its_own(worker, model, accuracy, folder):
    value = accuracy.result()
    own = folder if worker.is_chief else folder / f"{worker.task_type}-{worker.index}"
    own.mkdir(exist_ok=True)
    model.save(own / "model.keras")
    if worker.is_chief:
        (folder / "accuracy.txt").write_text(str(value))


@wrong("save", "who removes it")
def leaves_the_temporary_folder(worker, model, accuracy, folder):
    value = accuracy.result()
    model.save((folder if worker.is_chief else Path(tempfile.mkdtemp())) / "model.keras")
    if worker.is_chief:
        (folder / "accuracy.txt").write_text(str(value))


@wrong("save", "no model.keras in the folder")
def everybody_into_a_temporary_folder(worker, model, accuracy, folder):
    value = accuracy.result()
    with tempfile.TemporaryDirectory() as scratch:
        model.save(Path(scratch) / "model.keras")
    if worker.is_chief:
        (folder / "accuracy.txt").write_text(str(value))


@wrong("save", "in another order")
def the_chief_in_another_order(worker, model, accuracy, folder):
    if worker.is_chief:
        model.save(folder / "model.keras")
        (folder / "accuracy.txt").write_text(str(accuracy.result()))
    else:
        finish(worker, model, accuracy, folder)


@wrong("save", "1 chief", "a race")
def takes_worker_0_for_the_chief(worker, model, accuracy, folder):
    value = accuracy.result()
    with tempfile.TemporaryDirectory() as scratch:
        model.save((folder if worker.index == 0 else Path(scratch)) / "model.keras")
    if worker.is_chief:
        (folder / "accuracy.txt").write_text(str(value))


@wrong("save", "writes no accuracy.txt")
def forgets_the_accuracy(worker, model, accuracy, folder):
    accuracy.result()
    with tempfile.TemporaryDirectory() as scratch:
        model.save((folder if worker.is_chief else Path(scratch)) / "model.keras")


@right("save")
def with_a_finally(worker, model, accuracy, folder):
    place = folder if worker.is_chief else Path(tempfile.mkdtemp())
    try:
        model.save(str(place / "model.keras"))
        value = accuracy.result()
        if worker.is_chief:
            with open(folder / "accuracy.txt", "w") as file:  # noqa: PTH123
                file.write(f"{value:.4f}\n")
    finally:
        if not worker.is_chief:
            shutil.rmtree(place)


@right("save")
def with_a_stack(worker, model, accuracy, folder):
    with contextlib.ExitStack() as stack:
        place = folder if worker.is_chief else Path(stack.enter_context(tempfile.TemporaryDirectory()))
        value = accuracy.result()
        model.save(place / "model.keras")
        (place / "accuracy.txt").write_text(str(value))


ANSWERS.solved("tf_config", cluster_spec.tf_config)
ANSWERS.solved("is_chief", lambda *task: cluster_spec.check(cluster_spec.tf_config(*task)).is_chief)
ANSWERS.solved("diagnosis", SOLUTION, untouched=dict.fromkeys(BROKEN, (None, None)))
ANSWERS.solved("save", finish)
