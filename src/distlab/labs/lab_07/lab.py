"""The exercises of lab 07: TF_CONFIG written and mended, the chief, and saving without a race or a hang."""

import json
from collections.abc import Mapping

import numpy as np

from distlab import cluster_spec
from distlab.labs.answer import Answer
from distlab.labs.answer_errors import NotPlain
from distlab.labs.lab import Exercise, Lab
from distlab.labs.lab_07.fake_cluster import Cluster, Collectives, Worker, rehearse, workers_of
from distlab.labs.lab_07.given import BROKEN, FIELDS, MENDS, mended
from distlab.labs.verdict import Verdict, not_done, parts, right, wrong

Task = tuple[str, int]


def _clusters(generator: np.random.Generator) -> list[Cluster]:
    """A cluster of workers, one with a chief, one with a chief and parameter servers; hosts and ports are drawn."""

    def addresses(job: str, count: int) -> list[str]:
        return [f"{job}{number}.lab:{port}" for number, port in enumerate(generator.integers(2000, 60000, count))]

    return [
        {"worker": addresses("node", int(generator.integers(3, 5)))},
        {"chief": addresses("head", 1), "worker": addresses("node", int(generator.integers(2, 4)))},
        {"chief": addresses("head", 1), "worker": addresses("node", 2), "ps": addresses("store", 2)},
    ]


def _tasks(cluster: Cluster) -> list[Task]:
    return [(task_type, index) for task_type in cluster for index in range(len(cluster[task_type]))]


def judge_tf_config(answer: Answer, generator: np.random.Generator) -> Verdict:
    """The text for every task of three clusters."""
    for cluster in _clusters(generator):
        for task_type, index in reversed(_tasks(cluster)):
            given = answer.call("tf_config", cluster, task_type, index)
            if hint := _hint_of_config(given, cluster, task_type, index):
                return wrong(f"For {task_type} {index} of {_in_words(cluster)}: {hint}")
    return right("Every task of three clusters has its text, and TensorFlow's rules are kept.")


def _in_words(cluster: Cluster) -> str:
    return "a cluster of " + ", ".join(f"{len(addresses)} {job}" for job, addresses in cluster.items())


def _hint_of_config(given: object, cluster: Cluster, task_type: str, index: int) -> str | None:
    if isinstance(given, (dict, list)):
        return f"it is a {type(given).__name__}. An environment variable holds text."
    if not isinstance(given, str):
        return f"it is {given!r}, not a text."
    try:
        config = json.loads(given)
    except ValueError:
        if "'" in given:
            return "it has Python's single quotes. TensorFlow reads JSON: what writes a dictionary as JSON?"
        return "it is not JSON. Let a library write it, not string pieces."
    if isinstance(config, str):
        return "it is JSON of a text that is JSON itself: it was turned into text twice."
    if not isinstance(config, dict) or not {"cluster", "task"} <= set(config):
        names = ", ".join(config) if isinstance(config, dict) else "none"
        return (
            f"at the top it has the names {names}. TF_CONFIG has two: one says who takes part, one who this process is."
        )
    return _hint_of_cluster(config["cluster"], cluster, task_type, index) or _hint_of_task(
        config["task"], cluster, task_type, index
    )


def _hint_of_cluster(found: object, cluster: Cluster, task_type: str, index: int) -> str | None:
    if found == cluster:
        return None
    if not isinstance(found, dict):
        return "`cluster` is not a dictionary: each job, such as worker, has a list of addresses."
    if any(isinstance(addresses, str) for addresses in found.values()):
        return "a job has one text where a list of addresses belongs, also if it is a list of one."
    if found in ({task_type: cluster[task_type]}, {task_type: [cluster[task_type][index]]}):
        return "`cluster` holds only what this process is part of. How does it find the others?"
    return "`cluster` is not the cluster that was given. It is the same text in every process."


def _hint_of_task(found: object, cluster: Cluster, task_type: str, index: int) -> str | None:
    if not isinstance(found, dict) or set(found) != {"type", "index"}:
        return "`task` has to hold two names, type and index, and nothing else."
    if found["type"] != task_type:
        return f"task.type is {found['type']!r}. Is every process of a cluster of the same type?"
    if isinstance(found["index"], str):
        return "task.index is a text. It is a number: where do the quotes come from?"
    if found["index"] == index and type(found["index"]) is int:
        return None
    if len(cluster) > 1 and found["index"] == _tasks(cluster).index((task_type, index)):
        return f"task.index is {found['index']}. It counts among the tasks of one type, not among all."
    if found["index"] == index + 1:
        return f"task.index is {found['index']}. From which number does TensorFlow count?"
    return f"task.index is {found['index']!r}. Which of its job's addresses is this process's own?"


def judge_is_chief(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Exactly one task of each cluster."""
    for cluster in _clusters(generator):
        claims = []
        for task_type, index in _tasks(cluster):
            given = answer.call("is_chief", cluster, task_type, index)
            if not isinstance(given, bool):
                return wrong(f"is_chief gives {given!r}; it is asked for True or False.")
            if given:
                claims.append((task_type, index))
        specs = [cluster_spec.check(cluster_spec.tf_config(cluster, *task)) for task in _tasks(cluster)]
        (chief,) = [(spec.task_type, spec.index) for spec in specs if spec.is_chief]
        if claims != [chief]:
            return wrong(f"In {_in_words(cluster)}, {_hint_of_claims(claims, chief, len(specs))}")
    return right("Each of three clusters has one chief.")


def _hint_of_claims(claims: list[Task], chief: Task, count: int) -> str:
    names = [f"{task_type} {index}" for task_type, index in claims]
    if not claims:
        return "nobody says that it is the chief: nothing would be saved."
    if chief not in claims and len(claims) == count - 1:
        return "all say that they are the chief, but for the one that is."
    if len(claims) == count:
        return f"all {count} say that they are the chief."
    if chief in claims and any(task_type == "ps" for task_type, _ in claims):
        return f"{' and '.join(names)} say that they are the chief. A parameter server trains nothing."
    if chief in claims:
        return f"{' and '.join(names)} say that they are the chief: two would write the same file."
    if any(task_type == "ps" for task_type, _ in claims):
        return f"{' and '.join(names)} would be the chief. A parameter server trains nothing."
    if chief[0] == "chief":
        return f"{' and '.join(names)} would be the chief. Who is it when the cluster names one?"
    return f"{' and '.join(names)} would be the chief. Who takes the part when the cluster names no chief?"


# What would be seen, by letter: a reason to doubt a place, and a reason to doubt a mend in the right place.
SYMPTOMS: Mapping[str, tuple[str, str]] = {
    "A": (
        "TensorFlow says that an index exceeds the maximum, so compare a number with a length.",
        "Both numbers are different already, and one of them names no address.",
    ),
    "B": ("One line of TensorFlow's log asks for a port.", "Count the colons in each address."),
    "C": (
        "Each process starts, and process 1 waits for ever: whom does it call, and on which machine?",
        "Addresses have a form that is right; one of them means something else on every machine.",
    ),
    "D": (
        "A JSON reader stops at the second character, before it has read any name.",
        "It is one line already. Which character is not allowed there?",
    ),
    "E": (
        "The addresses are right and equal everywhere. One of them is taken twice, and one waits for its process.",
        "Counting is right, all are numbers: compare them with each other.",
    ),
    "F": (
        "Each text is right by itself. Put the two below each other and compare.",
        "Every address is right. Who is worker 0 for process 0, and who for process 1?",
    ),
}


def judge_diagnosis(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A point for each job that starts after the mend that was chosen."""
    given = answer.value("diagnosis")
    if not isinstance(given, dict):
        return wrong("`diagnosis` is a dictionary: a letter gives a pair (field, mend).")
    return parts({letter: _verdict_on_choice(letter, given.get(letter)) for letter in BROKEN})


def _verdict_on_choice(letter: str, choice: object) -> Verdict:
    if choice is None or (isinstance(choice, (list, tuple)) and all(part in (None, "") for part in choice)):
        return not_done()
    if not isinstance(choice, (list, tuple)) or len(choice) != 2:
        return wrong("a pair is wanted, (field, mend).")
    field, mend = choice
    for one, known in ((field, FIELDS), (mend, tuple(MENDS))):
        if one not in known:
            return wrong(f"{one!r} is not among the {'fields' if known is FIELDS else 'mends'} of the list.")
    if mended(letter, field, mend):
        return right()
    about_field, about_mend = SYMPTOMS[letter]
    if MENDS[mend][0] != field:
        return wrong(f"the mend {mend!r} cannot be done in {field}.")
    if any(mended(letter, field, other) for other in MENDS):
        return wrong(f"the place is right; with this mend the job still does not start. {about_mend}")
    return wrong(about_field)


def judge_save(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Call `save` for every worker of two rehearsed clusters, one of which names a chief."""
    for cluster in _clusters(generator)[:2]:
        accuracy = float(generator.integers(500, 999)) / 1000
        model = f"a model, number {generator.integers(10**9)}"
        record = [_record(answer, worker, Collectives(model, accuracy)) for worker in workers_of(cluster)]
        if None in record:
            return not_done("there is no `save` yet: run the cell above")
        if not any(one["collectives"] or one["folder"] or one["temporary"] for one in record):
            return not_done("`save` does nothing")
        if hint := _hint_of_record(record, model, accuracy):
            return wrong(f"In {_in_words(cluster)}: {hint}")
    return right(
        "Everybody takes part in every collective, the chief alone keeps the files, and nothing is left behind."
    )


def _record(answer: Answer, worker: Worker, collectives: Collectives) -> dict | None:
    """What one worker calls and leaves; None if there is no `save`."""
    task = (worker.task_type, worker.index, worker.is_chief)
    left = answer.inside(rehearse, "save", *task, respond=collectives)
    match left:
        case None | {"folder": dict(), "temporary": list(), "elsewhere": list()}:
            return left and left | {"name": worker.name, "chief": worker.is_chief, "collectives": collectives.called}
    raise NotPlain("what `save` leaves could not be seen")


def _hint_of_record(record: list[dict], model: str, accuracy: float) -> str | None:
    (chief,) = [one for one in record if one["chief"]]
    others = [one for one in record if not one["chief"]]
    return (
        _hint_of_collectives(chief, others)
        or _hint_of_chief(chief, model, accuracy)
        or next((hint for one in others if (hint := _hint_of_other(one, chief))), None)
        or _hint_of_rest(record)
    )


def _hint_of_collectives(chief: dict, others: list[dict]) -> str | None:
    for one in others:
        if one["collectives"] == chief["collectives"]:
            continue
        if sorted(one["collectives"]) == sorted(chief["collectives"]):
            return (
                f"{one['name']} calls {' and '.join(one['collectives'])} in another order than the chief: two "
                "different collectives would meet."
            )
        missing = [call for call in chief["collectives"] if call not in one["collectives"]]
        if missing == chief["collectives"] and len(missing) > 1:
            return f"{one['name']} does nothing at all, and the chief waits for it for ever."
        if missing:
            return f"the chief calls {missing[0]}, and {one['name']} does not. It is a collective: " + (
                "the chief waits for ever." if missing[0] == "model.save" else "the next one of the others meets it."
            )
        return f"{one['name']} calls {', '.join(one['collectives'])}, the chief {', '.join(chief['collectives'])}."
    if "model.save" not in chief["collectives"]:
        return "nobody calls model.save."
    if "accuracy.result" not in chief["collectives"]:
        return "nobody reads accuracy.result()."
    return None


def _hint_of_chief(chief: dict, model: str, accuracy: float) -> str | None:
    files = chief["folder"]
    if "model.keras" not in files:
        where = f"it wrote {', '.join(files)} there" if files else "it wrote nothing there"
        return f"after the chief has been through, there is no model.keras in the folder: {where}."
    if files["model.keras"] != model:
        return "model.keras in the chief's folder is not the file that model.save wrote."
    if "accuracy.txt" not in files:
        return "the chief writes no accuracy.txt into the folder."
    try:
        written = float(files["accuracy.txt"])
    except ValueError:
        return f"accuracy.txt holds {files['accuracy.txt'][:40]!r}, not a number alone."
    return None if abs(written - accuracy) < 0.001 else f"accuracy.txt holds {written}, the accuracy is {accuracy}."


def _hint_of_other(one: dict, chief: dict) -> str | None:
    twice = sorted(set(one["folder"]) & set(chief["folder"]))
    if "model.keras" in twice:
        return f"{one['name']} and the chief write model.keras at the same path: a race, and one may lose its file."
    if twice:
        return f"{one['name']} and the chief both write {twice[0]}. What is done once is for the chief."
    if one["folder"]:
        return f"{one['name']} leaves {', '.join(one['folder'])} in the shared folder: its copy is not wanted."
    return None


def _hint_of_rest(record: list[dict]) -> str | None:
    for one in record:
        if one["temporary"]:
            return f"{one['name']} leaves {one['temporary'][0]} in the folder for temporary files: who removes it?"
        if one["elsewhere"]:
            return f"{one['name']} leaves {one['elsewhere'][0]} behind: a path for all to write is for nobody to trust."
    return None


LAB = Lab(
    "07_multi_worker",
    [
        Exercise("tf_config", 4, judge_tf_config),
        Exercise("is_chief", 3, judge_is_chief),
        Exercise("diagnosis", 6, judge_diagnosis),
        Exercise("save", 5, judge_save),
    ],
)
