"""Answers to lab 07 as students give them."""

import contextlib
import json
import shutil
import tempfile
from pathlib import Path

from lab_07.given import BROKEN
from lab_07.hints import Lab07Hint

from distlab import cluster_spec
from tests.distlab.labs.known_wrong import LabAnswers, written_solution

ANSWERS = LabAnswers()
wrong, right = ANSWERS.wrong, ANSWERS.right


# TF_CONFIG


@wrong("tf_config", Lab07Hint.A_CONTAINER)
def a_dictionary(cluster, task_type, index):
    return {"cluster": cluster, "task": {"type": task_type, "index": index}}


@wrong("tf_config", Lab07Hint.SINGLE_QUOTES)
def pythons_text(cluster, task_type, index):
    return str({"cluster": cluster, "task": {"type": task_type, "index": index}})


@wrong("tf_config", Lab07Hint.DUMPED_TWICE)
def dumped_twice(cluster, task_type, index):
    return json.dumps(json.dumps({"cluster": cluster, "task": {"type": task_type, "index": index}}))


@wrong("tf_config", Lab07Hint.INDEX_FROM_ONE)
def counted_from_one(cluster, task_type, index):
    return json.dumps({"cluster": cluster, "task": {"type": task_type, "index": index + 1}})


@wrong("tf_config", Lab07Hint.INDEX_IS_TEXT)
def index_as_text(cluster, task_type, index):
    return json.dumps({"cluster": cluster, "task": {"type": task_type, "index": str(index)}})


@wrong("tf_config", Lab07Hint.ANOTHER_TYPE, "1 chief")
def always_a_worker(cluster, task_type, index):
    return json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}})


@wrong("tf_config", Lab07Hint.CLUSTER_OF_ONE)
def only_its_own_address(cluster, task_type, index):
    own = {task_type: [cluster[task_type][index]]}
    return json.dumps({"cluster": own, "task": {"type": task_type, "index": index}})


@wrong("tf_config", Lab07Hint.WRONG_NAMES, "the names cluster, type, index")
def without_task(cluster, task_type, index):
    return json.dumps({"cluster": cluster, "type": task_type, "index": index})


@wrong("tf_config", Lab07Hint.CLUSTER_NO_DICTIONARY)
def workers_as_a_list(cluster, task_type, index):
    return json.dumps({"cluster": cluster["worker"], "task": {"type": task_type, "index": index}})


@wrong("tf_config", Lab07Hint.INDEX_AMONG_ALL)
def numbered_through(cluster, task_type, index):
    tasks = [(job, place) for job in cluster for place in range(len(cluster[job]))]
    return json.dumps({"cluster": cluster, "task": {"type": task_type, "index": tasks.index((task_type, index))}})


@wrong("tf_config", Lab07Hint.SHELL_QUOTES)
def quoted_for_a_shell(cluster, task_type, index):
    return f"'{json.dumps({'cluster': cluster, 'task': {'type': task_type, 'index': index}})}'"


@right("tf_config")
def glued_by_hand(cluster, task_type, index):
    jobs = ", ".join(
        '"{}": [{}]'.format(job, ", ".join(f'"{address}"' for address in addresses))
        for job, addresses in sorted(cluster.items())
    )
    return f'{{"task": {{"index": {index}, "type": "{task_type}"}},\n"cluster": {{{jobs}}}}}'


# The chief


@wrong("is_chief", Lab07Hint.SEVERAL_CHIEFS)
def worker_0_as_well(cluster, task_type, index):
    return task_type == "chief" or (task_type == "worker" and index == 0)


@wrong("is_chief", Lab07Hint.PARAMETER_SERVER_TOO)
def the_first_of_each_job(cluster, task_type, index):
    return task_type == "chief" or (task_type != "worker" and index == 0) or ("chief" not in cluster and index == 0)


@wrong("is_chief", Lab07Hint.NO_CHIEF)
def only_a_task_called_chief(cluster, task_type, index):
    return task_type == "chief"


@wrong("is_chief", Lab07Hint.CHIEF_IS_NAMED)
def always_worker_0(cluster, task_type, index):
    return task_type == "worker" and index == 0


@wrong("is_chief", Lab07Hint.CHIEF_IS_NOT_NAMED)
def the_last_worker(cluster, task_type, index):
    return task_type == "worker" and index == len(cluster["worker"]) - 1


@wrong("is_chief", Lab07Hint.ALL_BUT_THE_CHIEF)
def the_wrong_way_round(cluster, task_type, index):
    return not (task_type == "chief" or ("chief" not in cluster and task_type == "worker" and index == 0))


@wrong("is_chief", Lab07Hint.NO_TRUTH_VALUE)
def names_the_chief(cluster, task_type, index):
    return "chief 0" if "chief" in cluster else "worker 0"


@wrong("is_chief", Lab07Hint.PARAMETER_SERVER_TOO, "a cluster of 2 worker, 1 ps")
def index_0_without_a_chief(cluster, task_type, index):
    return task_type == "chief" if "chief" in cluster else index == 0


@wrong("is_chief", Lab07Hint.PARAMETER_SERVER, "a cluster of 2 ps, 2 worker, 1 chief")
def first_of_the_dictionary(cluster, task_type, index):
    return (task_type, index) == (next(iter(cluster)), 0)


@wrong("is_chief", Lab07Hint.PARAMETER_SERVER, "a cluster of 2 worker, 1 ps")
def first_sorted_job(cluster, task_type, index):
    return (task_type, index) == (sorted(cluster)[0], 0)


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


def but_for(letter, field, fix, *hints):
    title = f"{letter}_{field}_{fix}".replace(" ", "_")
    ANSWERS.wrong_value("diagnosis", title, SOLUTION | {letter: (field, fix)}, f"{letter}: wrong", *hints, share=5 / 6)


but_for("A", "cluster.worker", "write the same list in every process", Lab07Hint.A_PLACE)
but_for("A", "task.index", "give every process a number of its own", Lab07Hint.A_FIX, "place is right")
but_for("B", "cluster.worker", "give every address another port", Lab07Hint.B_FIX, "place is right")
but_for("B", "task.index", "count from 0", Lab07Hint.B_PLACE)
but_for("C", "task.index", "count from 0", Lab07Hint.C_PLACE)
but_for("C", "cluster.worker", "write the same list in every process", Lab07Hint.C_FIX, "place is right")
but_for("D", "cluster.worker", "write the same list in every process", Lab07Hint.D_PLACE)
but_for("D", "the whole text", "write it in one line", Lab07Hint.D_FIX, "place is right")
but_for("E", "cluster.worker", "give every address another port", Lab07Hint.E_PLACE)
but_for("E", "task.index", "count from 0", Lab07Hint.E_FIX, "place is right")
but_for("F", "task.index", "give every process a number of its own", Lab07Hint.F_PLACE)
but_for("F", "cluster.worker", "give every address a port", Lab07Hint.F_FIX, "place is right")
but_for("F", "task.type", "write the same list in every process", Lab07Hint.NOT_IN_THIS_FIELD, "task.type")
but_for("E", "index", "count from 0", Lab07Hint.NOT_IN_THE_LIST, "list of fields")


# Saving


def finish(worker, model, accuracy, folder):
    """The right way, to be used by wrong ones."""
    value = accuracy.result()
    with tempfile.TemporaryDirectory() as scratch:
        model.save((folder if worker.is_chief else Path(scratch)) / "model.keras")
    if worker.is_chief:
        (folder / "accuracy.txt").write_text(str(value))


@wrong("save", Lab07Hint.SAVE_WITHOUT_OTHERS)
def only_the_chief_saves(worker, model, accuracy, folder):
    value = accuracy.result()
    if worker.is_chief:
        model.save(folder / "model.keras")
        (folder / "accuracy.txt").write_text(str(value))


@wrong("save", Lab07Hint.RESULT_WITHOUT_OTHERS)
def only_the_chief_reads_the_accuracy(worker, model, accuracy, folder):
    with tempfile.TemporaryDirectory() as scratch:
        model.save((folder if worker.is_chief else Path(scratch)) / "model.keras")
    if worker.is_chief:
        (folder / "accuracy.txt").write_text(str(accuracy.result()))


@wrong("save", Lab07Hint.DOES_NOTHING)
def only_the_chief_does_anything(worker, model, accuracy, folder):
    if worker.is_chief:
        finish(worker, model, accuracy, folder)


@wrong("save", Lab07Hint.RACE)
def everybody_to_one_path(worker, model, accuracy, folder):
    value = accuracy.result()
    model.save(folder / "model.keras")
    if worker.is_chief:
        (folder / "accuracy.txt").write_text(str(value))


@wrong("save", Lab07Hint.BOTH_WRITE, "accuracy.txt")
def everybody_writes_the_accuracy(worker, model, accuracy, folder):
    finish(worker, model, accuracy, folder)
    (folder / "accuracy.txt").write_text("0.5" if not worker.is_chief else (folder / "accuracy.txt").read_text())


@wrong("save", Lab07Hint.COPY_IN_THE_FOLDER)
def each_into_a_folder_of_its_own(worker, model, accuracy, folder):
    value = accuracy.result()
    own = folder if worker.is_chief else folder / f"{worker.task_type}-{worker.index}"
    own.mkdir(exist_ok=True)
    model.save(own / "model.keras")
    if worker.is_chief:
        (folder / "accuracy.txt").write_text(str(value))


@wrong("save", Lab07Hint.RACE_OF_TWO, "worker 1 and worker 2 both save to spare.keras")
def all_others_to_one_path(worker, model, accuracy, folder):
    value = accuracy.result()
    place = folder / ("model.keras" if worker.is_chief else "spare.keras")
    model.save(place)
    if worker.is_chief:
        (folder / "accuracy.txt").write_text(str(value))
    else:
        place.unlink()


@wrong("save", Lab07Hint.MORE_FILES, "leaves done in the folder")
def the_chief_leaves_a_mark(worker, model, accuracy, folder):
    finish(worker, model, accuracy, folder)
    if worker.is_chief:
        (folder / "done").touch()


@wrong("save", Lab07Hint.ANOTHER_ACCURACY)
def two_decimals(worker, model, accuracy, folder):
    finish(worker, model, accuracy, folder)
    if worker.is_chief:
        (folder / "accuracy.txt").write_text(f"{float((folder / 'accuracy.txt').read_text()) - 0.002:.2f}")


@wrong("save", Lab07Hint.TEMPORARY_FILES)
def leaves_the_temporary_folder(worker, model, accuracy, folder):
    value = accuracy.result()
    model.save((folder if worker.is_chief else Path(tempfile.mkdtemp())) / "model.keras")
    if worker.is_chief:
        (folder / "accuracy.txt").write_text(str(value))


@wrong("save", Lab07Hint.NO_MODEL_FILE)
def everybody_into_a_temporary_folder(worker, model, accuracy, folder):
    value = accuracy.result()
    with tempfile.TemporaryDirectory() as scratch:
        model.save(Path(scratch) / "model.keras")
    if worker.is_chief:
        (folder / "accuracy.txt").write_text(str(value))


@wrong("save", Lab07Hint.ANOTHER_ORDER)
def the_chief_in_another_order(worker, model, accuracy, folder):
    if worker.is_chief:
        model.save(folder / "model.keras")
        (folder / "accuracy.txt").write_text(str(accuracy.result()))
    else:
        finish(worker, model, accuracy, folder)


@wrong("save", Lab07Hint.RACE, "1 chief")
def takes_worker_0_for_the_chief(worker, model, accuracy, folder):
    value = accuracy.result()
    with tempfile.TemporaryDirectory() as scratch:
        model.save((folder if worker.index == 0 else Path(scratch)) / "model.keras")
    if worker.is_chief:
        (folder / "accuracy.txt").write_text(str(value))


@wrong("save", Lab07Hint.NO_ACCURACY_FILE)
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
