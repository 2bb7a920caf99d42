"""The judge of lab 07: TF_CONFIG written and fixed, workers started, and saving without a race or a hang."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from lab_07 import observe
from lab_07.given import BROKEN, FIELDS, FIXES
from lab_07.observe import RESULT, SAVE, FilesLeft, Started
from lab_07.sharding import SAMPLES_SEEN

from distlab import cluster_spec
from distlab.labs import Answer, Exercise, Lab, Raised, Verdict, not_done, parts, right, wrong
from distlab.labs.answer_errors import NotDone
from distlab.labs.by_programs import ByPrograms, Mistake, changed, formulas
from distlab.labs.plain_data import Plain, as_record

Cluster = dict[str, list[str]]
Task = tuple[str, int]


def clusters(generator: np.random.Generator) -> list[Cluster]:
    """With and without a chief and parameter servers, in several orders; hosts and ports are drawn."""

    def addresses(job: str, count: int) -> list[str]:
        return [f"{job}{number}.lab:{port}" for number, port in enumerate(generator.integers(2000, 60000, count))]

    return [
        {"worker": addresses("node", int(generator.integers(3, 5)))},
        {"chief": addresses("head", 1), "worker": addresses("node", int(generator.integers(2, 4)))},
        {"chief": addresses("head", 1), "worker": addresses("node", 2), "ps": addresses("store", 2)},
        {"worker": addresses("node", 2)[::-1], "ps": addresses("store", 1)},
        {"ps": addresses("store", 2), "worker": addresses("node", 2), "chief": addresses("head", 1)},
        {"ps": addresses("store", 1), "worker": addresses("node", 3)[::-1]},
    ]


def tasks_of(cluster: Cluster) -> list[Task]:
    """The type and index of every process of a cluster, in order."""
    return [(task_type, index) for task_type in cluster for index in range(len(cluster[task_type]))]


def in_words(cluster: Cluster) -> str:
    """Such as "a cluster of 1 chief, 2 worker"."""
    return "a cluster of " + ", ".join(f"{len(addresses)} {job}" for job, addresses in cluster.items())


# TF_CONFIG -----------------------------------------------------------------------------------------------------------


def config(cluster: Any, task_type: str, index: Any) -> dict[str, Any]:
    """What TF_CONFIG says."""
    return {"cluster": cluster, "task": {"type": task_type, "index": index}}


def tf_config(cluster: Cluster, task_type: str, index: int) -> str:
    """The text of TF_CONFIG for one task."""
    return json.dumps(config(cluster, task_type, index))


def read(text: str) -> Plain:
    """What TensorFlow reads; the text without blanks where it is no JSON. An index of 1.0 is none."""
    try:
        return json.loads(text, parse_float=str)  # type: ignore[no-any-return]
    except ValueError:
        return "".join(text.split())


def differences(found: Any, expected: Any, place: str = "") -> Iterator[str]:
    """Which fields of TF_CONFIG are other ones, each with a question."""
    if not isinstance(expected, dict):
        if found != expected:
            yield f"{place} is {found!r}. {ASKS[place.partition('.')[0]]}"
        return
    if not isinstance(found, dict):
        yield f"{place or 'it'} is not a dictionary. {ASKS[place]}"
        return
    where = f"in `{place}`" if place else "at the top"
    for name in expected:
        if name not in found:
            yield f"{where} there is no {name}. {ASKS[place]}"
    for name in found:
        if name not in expected:
            yield f"{where} there is {name} too. {ASKS[place]}"
    for name in expected:
        yield from differences(found[name], expected[name], f"{place}.{name}" if place else name)


ASKS = {
    "": "Which two names are at the top, and what is below each of them?",
    "cluster": "Which tasks must every process know, and by which addresses?",
    "task": "Which job has this process, and which place in that job's list?",
}
"""By the place in TF_CONFIG."""


def first_difference(case: Any, found: Any) -> str:
    """For all other texts: what is wrong with the form, or the first field that differs."""
    if not isinstance(found, str):
        return next(differences(found, config(*case)))
    if found.startswith("TF_CONFIG="):
        return "it begins with the name of the variable. What is its value alone, with which the JSON begins?"
    return "it is no JSON. Which function writes a dictionary as JSON?"


ONE_ADDRESS = "a job has one text instead of a list of addresses. One address is a list too."
OF_ONE = "`cluster` holds only what this process is part of. How does it find the others?"
TEXTS = {
    "str(config(cluster, task_type, index))": (
        "it has Python's single quotes. TensorFlow reads JSON: what writes a dictionary as JSON?"
    ),
    "repr(right)": (
        "it begins and ends with a quote. A shell needs such quotes around a text and takes them away; nobody does "
        "that here."
    ),
    "json.dumps(right)": "it is JSON of a text that is itself JSON: it was turned into text twice.",
    "json.dumps(dict(cluster=cluster, type=task_type, index=index))": (
        "at the top it has the names cluster, type, index. TF_CONFIG has two: one says who takes part, one who this "
        "process is."
    ),
    "json.dumps(cluster)": "it says who takes part. Which of them is this process?",
    "text(cluster['worker'], task_type, index)": (
        "`cluster` is not a dictionary: each job, such as worker, has a list of addresses."
    ),
    "text({task_type: cluster[task_type][index]}, task_type, index)": ONE_ADDRESS,
    "text({job: ','.join(cluster[job]) for job in cluster}, task_type, index)": ONE_ADDRESS,
    "text({task_type: [cluster[task_type][index]]}, task_type, index)": OF_ONE,
    "text({task_type: cluster[task_type]}, task_type, index)": OF_ONE,
    "json.dumps(dict(cluster=cluster, task={task_type: index}))": (
        "`task` must hold two names, type and index, and nothing else."
    ),
    "text(cluster, 'worker', index)": "task.type is 'worker'. Is every process of a cluster of the same type?",
    "text(cluster, task_type, str(index))": "task.index is a text. It is a number: where do the quotes come from?",
    "text(cluster, task_type, tasks.index((task_type, index)))": (
        "task.index is {tasks.index((task_type, index))}. It counts among the tasks of one type, not among all."
    ),
    "text(cluster, task_type, index + 1)": "task.index is {index + 1}. From which number does TensorFlow count?",
}
TF_CONFIG = ByPrograms(
    tf_config,
    lambda generator: [(cluster, *task) for cluster in clusters(generator) for task in reversed(tasks_of(cluster))],
    said=lambda case: f"for {case[1]} {case[2]} of {in_words(case[0])}",
    split=lambda case, text: {"": read(text)},
    form=lambda case, text: (
        None if isinstance(text, str) else f"it is a {type(text).__name__}. An environment variable holds text."
    ),
    otherwise=first_difference,
    praise=lambda cases: "Every task of all clusters has its text, and TensorFlow's rules are kept.",
    mistakes=formulas(
        tf_config,
        {"": TEXTS},
        lambda *case: {"json": json, "text": tf_config, "config": config, "tasks": tasks_of(case[0])},
    ),
)

# Starting the workers ------------------------------------------------------------------------------------------------


class Job(NamedTuple):
    """A cluster whose tasks are to be started, and the exit code of each."""

    cluster: Cluster
    codes: list[int]


def jobs(generator: np.random.Generator) -> list[Job]:
    """Two workers, which end well, and a cluster that lists its chief last, where each task ends with another code."""
    drawn = clusters(generator)
    in_another_order = {"ps": drawn[4]["ps"][:1], "worker": drawn[4]["worker"], "chief": drawn[4]["chief"]}
    return [Job({"worker": drawn[0]["worker"][:2]}, [0, 0]), Job(in_another_order, [4, 0, 5, 3])]


def start(command: Sequence[str], cluster: Cluster) -> list[int]:
    """All at first, then wait for each."""
    variables = [os.environ | {"TF_CONFIG": tf_config(cluster, *task)} for task in tasks_of(cluster)]
    processes = [subprocess.Popen(command, env=each) for each in variables]
    return [process.wait() for process in processes]


AS_WORDS = (
    "`command` is a list of words, and Popen takes it as it is. Joined to one text, a word with a blank or a quote in "
    "it becomes another one. In which form does Popen get it from you?"
)


def fault_of_start(answer: Answer, case: Job) -> str:
    """Let `start` begin fake workers; what is wrong first with them, empty if nothing is."""
    try:
        seen = answer.inside(observe.call_start, *case)
    except Raised as error:
        if "PathLike" in str(error):
            return "Popen takes texts alone. Is TF_CONFIG one, and do you pass `command` on as it is?"
        if "No such file" in str(error):
            return AS_WORDS
        raise
    if seen is None:
        raise NotDone("there is no `start` yet: run the cell above")
    started = as_record(seen, Started, "what `start` does")
    if not started.processes and not started.configs and started.codes is None:
        raise NotDone("`start` starts no process")
    return next(faults_of_start(case, started), "")


def faults_of_start(case: Job, started: Started) -> Iterator[str]:
    """What is wrong: with when it waits, with the processes' TF_CONFIG, with what it gives."""
    names = [f"{task_type} {index}" for task_type, index in tasks_of(case.cluster)]
    count = max(started.processes, len(started.configs))
    if not count:
        yield "no process is left to look at. Start each by subprocess.Popen."
    if count != len(names):
        processes = "process was" if count == 1 else "processes were"
        yield f"{count} {processes} started, and the cluster has {len(names)} tasks. Does every task have its own?"
    if started.waits_too_early:
        yield (
            f"you wait for a process before all {len(names)} are started. It waits for the others, which start only "
            "when it has ended: a deadlock. What must be done before the first wait?"
        )
    if started.still_run:
        yield "`start` returns while its processes still run. Which method of a process gives its exit code at the end?"
    if not started.configs:
        yield "none of the processes runs `command`. Do you pass the list on as it is, without a shell?"
    if not any(started.configs):
        yield "TF_CONFIG is not set in the processes. Which argument of Popen gives a process its variables?"
    if started.changes_own:
        yield (
            "TF_CONFIG is now set in your notebook too, and TensorFlow would take the notebook for a worker. How does "
            "only the new process get it?"
        )
    try:
        configs = [dict(json.loads(text)) for text in started.configs]
        tasks = [f"{each['task']['type']} {each['task']['index']}" for each in configs]
        is_same_cluster = all(each["cluster"] == case.cluster for each in configs)
    except (KeyError, TypeError, ValueError):
        tasks = []
        yield "TF_CONFIG of a process is no text that TensorFlow could read. Exercise 1 has a function for it."
    for name in names:
        if name not in tasks:
            yield f"nobody is {name}, and the tasks are {', '.join(sorted(tasks))}. Who gets which index?"
    if not is_same_cluster:
        yield "a process has another cluster than the one that `start` was given. What must be the same everywhere?"
    if not started.keeps:
        yield (
            "the processes have TF_CONFIG and nothing else: without PATH and the other variables many programs do not "
            "even start. How do you add one variable to those of `os.environ`?"
        )
    for words in started.words:
        if " ".join(words).startswith(" ".join(observe.WORDS)) and words[: len(observe.WORDS)] != observe.WORDS:
            yield AS_WORDS
        if words != observe.WORDS:
            yield (
                f"a process has other words after the program than `command`: {', '.join(words)}. The command is the "
                "same for all: from where does a process know who it is?"
            )
    if not isinstance(started.codes, (list, tuple)):
        kind = {None: "nothing", "int": "a number"}.get(started.codes, f"a {started.codes}")
        yield f"all workers train, and then `start` gives {kind}. It must give a list of exit codes."
    elif list(started.codes) != case.codes:
        yield (
            f"`start` gives {list(started.codes)}, and the processes of {', '.join(names)} ended with {case.codes}. "
            "From where do you take them, and in which order?"
        )


def in_case(case: Job, fault: str) -> str:
    """The fault, with its cluster."""
    return f"In {in_words(case.cluster)}: {fault}"


STARTING = ByPrograms(
    start,
    jobs,
    observe=fault_of_start,
    said=lambda case: "",
    otherwise=in_case,
    praise=lambda cases: "All tasks start before you wait, each knows who it is, and they train one number together.",
    mistakes=[],  # each would start processes again
)

# Six broken jobs -----------------------------------------------------------------------------------------------------

SYMPTOMS = {
    "A": (
        "TensorFlow says that an index exceeds the maximum, so compare a number with a length.",
        "Both numbers are different already, and one of them names no address.",
    ),
    "B": ("One line of TensorFlow's log asks for a port.", "Count the colons in each address."),
    "C": (
        "Each process starts, and process 1 waits forever. Whom does it call, and on which machine?",
        "All addresses have a correct form, but one of them means something else on every machine.",
    ),
    "D": (
        "A JSON reader stops at the second character, before it has read any name.",
        "It is one line already. Which character is not allowed there?",
    ),
    "E": (
        "The addresses are right and equal everywhere. Two processes use one of them, and nobody uses another.",
        "They count from 0 already, and all are numbers. Compare them with each other.",
    ),
    "F": (
        "Each text is right by itself. Put the two below each other and compare.",
        "Every address is right. Who is worker 0 for process 0, and who for process 1?",
    ),
}
"""What would be seen, by letter: a reason to doubt a place, and a reason to doubt a fix in the right place."""


CURES = {
    "A": "count from 0",
    "B": "give every address a port",
    "C": "write the name that other hosts know",
    "D": "let json.dumps write it",
    "E": "give every process a number of its own",
    "F": "write the same list in every process",
}
"""The one fix after which a job starts, by letter."""


def judge_diagnosis(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A point for each job that starts after the fix that was chosen."""
    diagnosis = answer.value("diagnosis")
    if not isinstance(diagnosis, dict):
        return wrong("`diagnosis` is a dictionary: each letter has a pair (field, fix).")
    return parts({letter: verdict_on_choice(letter, diagnosis.get(letter)) for letter in BROKEN})


def verdict_on_choice(letter: str, choice: Plain) -> Verdict:
    """Whether the job starts after it."""
    if choice is None or (isinstance(choice, (list, tuple)) and all(part in (None, "") for part in choice)):
        return not_done()
    if not isinstance(choice, (list, tuple)) or len(choice) != 2:
        return wrong("choose a pair, (field, fix).")
    for word, listed, kind in zip(choice, (FIELDS, FIXES), ("fields", "fixes"), strict=True):
        if not isinstance(word, str) or word not in listed:
            return wrong(f"{word!r} is not in the list of {kind}.")
    field, fix, cure = str(choice[0]), str(choice[1]), CURES[letter]
    if FIXES[fix] != field:
        return wrong(f"the fix {fix!r} cannot be done in {field}.")
    if fix == cure:
        return right()
    hint_of_place, hint_of_fix = SYMPTOMS[letter]
    if FIXES[cure] == field:
        return wrong(hint_of_fix, context="the place is right; with this fix the job still does not start. ")
    return wrong(hint_of_place)


# Saving --------------------------------------------------------------------------------------------------------------


class Trained(NamedTuple):
    """A cluster whose training is over."""

    cluster: Cluster
    model: str
    accuracy: float


def trained(generator: np.random.Generator) -> list[Trained]:
    """Three clusters: one names a chief, and one lists its parameter servers first."""
    drawn = clusters(generator)
    return [
        Trained(cluster, f"a model, number {generator.integers(10**9)}", float(generator.integers(500, 999)) / 1000)
        for cluster in (drawn[0], drawn[1], drawn[5])
    ]


def is_chief(cluster: Cluster, task_type: str, index: int) -> bool:
    """As TensorFlow says it."""
    return cluster_spec.check(cluster_spec.tf_config(cluster, task_type, index)).is_chief


SAVE_PROGRAM = '''
def save(worker, model, accuracy, folder):
    """Everybody calls, the chief keeps the files."""
    value = accuracy.result()
    own = folder if is_chief(worker) else Path(tempfile.mkdtemp())
    own.mkdir(exist_ok=True)
    model.save(own / "model.keras")
    if is_chief(worker):
        (folder / "accuracy.txt").write_text(str(value))
    if not own.is_relative_to(folder):
        shutil.rmtree(own)
'''


def saving(*changes: tuple[str, str]) -> Callable[..., None]:
    """The right program with other lines."""

    def of_worker(worker: Any) -> bool:
        return is_chief(worker.cluster, worker.task_type, worker.index)

    return changed(SAVE_PROGRAM, *changes, is_chief=of_worker, Path=Path, shutil=shutil, tempfile=tempfile)


def first_fault(answer: Answer, case: Trained) -> str:
    """Call `save` for every worker; what is wrong first with the calls and files of all, empty if nothing is."""
    left: dict[str, FilesLeft] = {}
    for task in tasks_of(case.cluster):
        if task[0] == "ps":  # it does not train
            continue
        is_chief_here = is_chief(case.cluster, *task)
        name = "the chief" if is_chief_here else f"{task[0]} {task[1]}"
        files = answer.inside(observe.call_save, (case.cluster, *task), case.model, case.accuracy)
        if files is None:
            raise NotDone("there is no `save` yet: run the cell above")
        left[name] = as_record(files, FilesLeft, "what `save` leaves")
    if not any(own.calls or own.folder or own.temporary for own in left.values()):
        raise NotDone("`save` does nothing")
    return next(faults(case, left), "")


def faults(case: Trained, left: Mapping[str, FilesLeft]) -> Iterator[str]:
    """What is wrong: with the collectives, with the chief's files, with those of the others."""
    called = {name: own.calls for name, own in left.items()}
    of_chief, files = called["the chief"], left["the chief"].folder
    peers = [name for name in called if name != "the chief"]
    for peer in peers:
        if not called[peer] and len(of_chief) > 1:
            yield f"{peer} does nothing at all, and the chief waits for it forever"
        for call in of_chief:
            if call not in called[peer]:
                then = (
                    "the chief waits forever"
                    if call == SAVE
                    else f"TensorFlow pairs it with whatever {peer} calls next"
                )
                yield f"the chief calls {call}, and {peer} does not. It is a collective: {then}"
        if sorted(called[peer]) == sorted(of_chief) and called[peer] != of_chief:
            yield f"{peer} calls {' and '.join(called[peer])} in another order than the chief"
        if called[peer] != of_chief:
            yield f"{peer} calls {', '.join(called[peer])}, the chief {', '.join(of_chief)}"
    for call in (SAVE, RESULT):
        if call not in of_chief:
            yield f"nobody calls {call}"
    if files.get("model.keras") != case.model:
        state = "no model.keras" if "model.keras" not in files else "another model.keras than model.save wrote"
        yield f"when the chief has finished, there is {state} in the folder"
    if "accuracy.txt" not in files:
        yield "the chief writes no accuracy.txt into the folder"
    elif not is_near(files["accuracy.txt"], case.accuracy):
        yield (
            f"accuracy.txt holds {files['accuracy.txt'].strip()[:40]}, the accuracy is {case.accuracy}. Is it only the "
            "number, with at least three decimals?"
        )
    if more := sorted(set(files) - {"model.keras", "accuracy.txt"}):
        yield f"the chief leaves {more[0]} in the folder too, which must hold model.keras and accuracy.txt only"
    for peer in peers:
        for file in sorted(left[peer].folder, key="model.keras".__ne__):
            if file == "model.keras":
                yield f"{peer} and the chief write model.keras at the same path"
            if file in files:
                yield f"{peer} and the chief both write {file}"
            yield f"{peer} leaves {file} in the shared folder, which must hold only the chief's files"
    for first, second in combinations(called, 2):
        for path in left[first].written:
            if path in left[second].written:
                yield (
                    f"{first} and {second} both save to {path}: a race, even if the file is removed later. Which name "
                    "does nobody else have?"
                )
    for name, own in left.items():
        if own.deletes:
            yield f"{name} deletes what others have put into the shared folder"
        if own.temporary:
            yield f"{name} leaves files in the folder for temporary files"
        if own.elsewhere:
            yield f"{name} leaves {own.elsewhere[0]} behind. Other programs can write to that path too"


def is_near(text: str, accuracy: float) -> bool:
    """Whether a text is this number, with at least three decimals."""
    try:
        return abs(float(text) - accuracy) < 0.0006
    except ValueError:
        return False


def after(text: str) -> Callable[[Any, Any], str]:
    """A hint that says the fault, and then this."""
    return lambda case, fault: f"In {in_words(case.cluster)}: {fault}{text}"


def SAYS_ALL(case: Trained, fault: str) -> str:  # noqa: N802
    """The fault, which may end with a question."""
    return after("" if fault.endswith("?") else ".")(case, fault)


def RACE(case: Trained, fault: str) -> str:  # noqa: N802
    """Two write to one path: everybody, or two that take themselves for the chief."""
    asks = " Who is the chief where the cluster names one?" if "chief" in case.cluster else ""
    return after(f": a race, and one of them may lose its file.{asks}")(case, fault)


KEEPS, ELSEWHERE, READS = "folder if is_chief(worker)", "Path(tempfile.mkdtemp())", "accuracy.result()"
SAVES, WRITES, END = (
    '    model.save(own / "model.keras")\n',
    '(folder / "accuracy.txt")',
    "        shutil.rmtree(own)\n",
)
CHIEF_SAVES = (SAVES, f"    if is_chief(worker):\n    {SAVES}")
CHIEF_READS = (READS, f"{READS} if is_chief(worker) else 0.0")
WRONG_SAVING: list[tuple[Callable[[Any, Any], str], list[tuple[str, str]]]] = [
    (SAYS_ALL, [CHIEF_SAVES]),
    (SAYS_ALL, [CHIEF_READS]),
    (SAYS_ALL, [CHIEF_SAVES, CHIEF_READS]),
    (
        after(": two different collectives would meet."),
        [("str(value)", f"str({READS})"), (f"value = {READS}", f"value = is_chief(worker) or {READS}")],
    ),
    (after(". Who keeps the result?"), [(SAVES, "")]),
    (after(". Which part of it has each worker?"), [(READS, "0.0")]),
    (RACE, [(KEEPS, "folder if True")]),
    (RACE, [(KEEPS, f"{KEEPS} or worker.index == 0")]),
    (after(". Who is the chief if no task has this type?"), [(KEEPS, 'folder if worker.task_type == "chief"')]),
    (
        after(". Who is the chief where the cluster names one?"),
        [(KEEPS, 'folder if (worker.task_type, worker.index) == ("worker", 0)')],
    ),
    (
        after(". Is a task the chief because `cluster` lists its job first?"),
        [(KEEPS, "folder if (worker.task_type, worker.index) == (next(iter(worker.cluster)), 0)")],
    ),
    (SAYS_ALL, [(ELSEWHERE, 'Path(tempfile.gettempdir()) / "own"')]),
    (after(". What is done once is for the chief."), [(END, f'{END}    {WRITES}.open("a").close()\n')]),
    (SAYS_ALL, [(ELSEWHERE, 'folder / f"worker-{worker.index}"')]),
    (
        SAYS_ALL,
        [
            (KEEPS, "folder if True"),
            ('"model.keras"', '("model.keras" if is_chief(worker) else "spare.keras")'),
            (END, f'{END}    (folder / "spare.keras").unlink(missing_ok=True)\n'),
        ],
    ),
    (SAYS_ALL, [(ELSEWHERE, 'folder.with_name("own")')]),
    (SAYS_ALL, [(ELSEWHERE, 'folder / "own"'), (END, f'{END}    [file.unlink() for file in folder.glob("own/*")]\n')]),
    (SAYS_ALL, [(END, f"{END}    if not is_chief(worker):\n        shutil.rmtree(folder)\n")]),
    (SAYS_ALL, [(f"        {WRITES}", f'        (folder / "done").touch()\n        {WRITES}')]),
    (SAYS_ALL, [("str(value)", 'f"{value - 0.002:.2f}"')]),
    (SAYS_ALL, [("str(value)", 'f"{value:.1%}"')]),
    (SAYS_ALL, [("str(value)", 'f"accuracy: {value:.3f}"')]),
    (SAYS_ALL, [("if is_chief(worker):", "if False:")]),
    (after(": who removes it?"), [("if not own.is_relative_to(folder)", "if False")]),
    (after(". Where must the chief save?"), [(KEEPS, "folder if False")]),
]
SAVING = ByPrograms(
    saving(),
    trained,
    observe=first_fault,
    said=lambda case: "",
    otherwise=SAYS_ALL,
    praise=lambda cases: (
        "Everybody takes part in every collective, the chief alone keeps the files, and nothing is left behind."
    ),
    mistakes=[Mistake(hint, saving(*changes)) for hint, changes in WRONG_SAVING],
)

LAB = Lab(
    "07_multi_worker",
    [
        Exercise("tf_config", 4, TF_CONFIG),
        Exercise("start", 4, STARTING),
        Exercise("diagnosis", 6, judge_diagnosis),
        Exercise("samples_seen", 5, SAMPLES_SEEN),
        Exercise("save", 5, SAVING),
    ],
    solved_in=["distlab.cluster_spec"],
)
