"""The exercises of lab 07: TF_CONFIG written and fixed, the chief, and saving without a race or a hang."""

import json
from collections.abc import Sequence

import numpy as np

from distlab import cluster_spec
from distlab.labs.answer import Answer
from distlab.labs.lab import Exercise, Lab
from lab_07 import given
from lab_07.fake_cluster import Cluster, Task, drawn_clusters, in_words, judge_save, tasks_of
from lab_07.given import BROKEN, CHANGES, FIELDS, FIXES
from lab_07.hints import Lab07Hint
from distlab.labs.plain_data import Plain
from distlab.labs.verdict import AnyHint, Verdict, not_done, parts, right, wrong

# TF_CONFIG


def judge_tf_config(answer: Answer, generator: np.random.Generator) -> Verdict:
    """The text for every task of some clusters."""
    for cluster in drawn_clusters(generator):
        for task_type, index in reversed(tasks_of(cluster)):
            text = answer.call("tf_config", cluster, task_type, index)
            if hint := _hint_of_config(text, cluster, task_type, index):
                return wrong(hint, context=f"For {task_type} {index} of {in_words(cluster)}: ")
    return right("Every task of all clusters has its text, and TensorFlow's rules are kept.")


def _hint_of_config(text: Plain, cluster: Cluster, task_type: str, index: int) -> AnyHint | None:
    if isinstance(text, (dict, list)):
        return Lab07Hint.A_CONTAINER.says(kind=type(text).__name__)
    if not isinstance(text, str):
        return Lab07Hint.NO_TEXT.says(value=text)
    try:
        config = json.loads(text)
    except ValueError:
        if _is_json(text.strip().removeprefix("'").removesuffix("'")):
            return Lab07Hint.SHELL_QUOTES
        return Lab07Hint.SINGLE_QUOTES if "'" in text else Lab07Hint.NO_JSON
    if isinstance(config, str):
        return Lab07Hint.DUMPED_TWICE
    if not isinstance(config, dict) or not {"cluster", "task"} <= set(config):
        names = ", ".join(config) if isinstance(config, dict) else "none"
        return Lab07Hint.WRONG_NAMES.says(names=names)
    return _hint_of_cluster(config["cluster"], cluster, task_type, index) or _hint_of_task(
        config["task"], cluster, task_type, index
    )


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _hint_of_cluster(written: object, cluster: Cluster, task_type: str, index: int) -> AnyHint | None:
    if written == cluster:
        return None
    if not isinstance(written, dict):
        return Lab07Hint.CLUSTER_NO_DICTIONARY
    if any(isinstance(addresses, str) for addresses in written.values()):
        return Lab07Hint.ADDRESS_WITHOUT_LIST
    if written in ({task_type: cluster[task_type]}, {task_type: [cluster[task_type][index]]}):
        return Lab07Hint.CLUSTER_OF_ONE
    return Lab07Hint.ANOTHER_CLUSTER


def _hint_of_task(written: object, cluster: Cluster, task_type: str, index: int) -> AnyHint | None:
    if not isinstance(written, dict) or set(written) != {"type", "index"}:
        return Lab07Hint.TASK_NAMES
    if written["type"] != task_type:
        return Lab07Hint.ANOTHER_TYPE.says(type=written["type"])
    if isinstance(written["index"], str):
        return Lab07Hint.INDEX_IS_TEXT
    if written["index"] == index and type(written["index"]) is int:
        return None
    if len(cluster) > 1 and written["index"] == tasks_of(cluster).index((task_type, index)):
        return Lab07Hint.INDEX_AMONG_ALL.says(index=written["index"])
    if written["index"] == index + 1:
        return Lab07Hint.INDEX_FROM_ONE.says(index=written["index"])
    return Lab07Hint.ANOTHER_INDEX.says(index=written["index"])


# The chief


def judge_is_chief(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Exactly one task of each cluster."""
    for cluster in drawn_clusters(generator):
        claims = []
        for task_type, index in tasks_of(cluster):
            claim = answer.call("is_chief", cluster, task_type, index)
            if not isinstance(claim, bool):
                return wrong(Lab07Hint.NO_TRUTH_VALUE.says(value=claim))
            if claim:
                claims.append((task_type, index))
        specs = [cluster_spec.check(cluster_spec.tf_config(cluster, *task)) for task in tasks_of(cluster)]
        (chief,) = [(spec.task_type, spec.index) for spec in specs if spec.is_chief]
        if claims != [chief]:
            return wrong(_hint_of_claims(claims, chief, len(specs)), context=f"In {in_words(cluster)}, ")
    return right("Each cluster has one chief.")


def _hint_of_claims(claims: list[Task], chief: Task, count: int) -> AnyHint:
    names = " and ".join(f"{task_type} {index}" for task_type, index in claims)
    has_parameter_server = any(task_type == "ps" for task_type, _ in claims)
    if not claims:
        return Lab07Hint.NO_CHIEF
    if chief not in claims and len(claims) == count - 1:
        return Lab07Hint.ALL_BUT_THE_CHIEF
    if len(claims) == count:
        return Lab07Hint.ALL_CHIEFS.says(count=count)
    if chief in claims:
        hint = Lab07Hint.PARAMETER_SERVER_TOO if has_parameter_server else Lab07Hint.SEVERAL_CHIEFS
    elif has_parameter_server:
        hint = Lab07Hint.PARAMETER_SERVER
    else:
        hint = Lab07Hint.CHIEF_IS_NAMED if chief[0] == "chief" else Lab07Hint.CHIEF_IS_NOT_NAMED
    return hint.says(names=names)


# Six broken jobs

SYMPTOMS = {
    "A": (Lab07Hint.A_PLACE, Lab07Hint.A_FIX),
    "B": (Lab07Hint.B_PLACE, Lab07Hint.B_FIX),
    "C": (Lab07Hint.C_PLACE, Lab07Hint.C_FIX),
    "D": (Lab07Hint.D_PLACE, Lab07Hint.D_FIX),
    "E": (Lab07Hint.E_PLACE, Lab07Hint.E_FIX),
    "F": (Lab07Hint.F_PLACE, Lab07Hint.F_FIX),
}
"""What would be seen, by letter: a reason to doubt a place, and a reason to doubt a fix in the right place."""


def starts(texts: Sequence[str]) -> bool:
    """Whether a job with these TF_CONFIGs would start and find all its workers."""
    try:
        cluster_spec.check_all(texts)
    except cluster_spec.ClusterSpecError:
        return False
    return True


def starts_after(letter: str, field: str, fix: str) -> bool:
    """Whether a broken job starts after this fix in this field."""
    place, change = CHANGES[fix]
    if place != field:
        return False
    try:
        return starts(change(BROKEN[letter]))
    except ValueError:  # the text is no JSON, so nothing in it can be fixed
        return False


def judge_diagnosis(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A point for each job that starts after the fix that was chosen."""
    diagnosis = answer.value("diagnosis")
    if not isinstance(diagnosis, dict):
        return wrong(Lab07Hint.NO_DICTIONARY)
    return parts({letter: _verdict_on_choice(letter, diagnosis.get(letter)) for letter in BROKEN})


def _verdict_on_choice(letter: str, choice: Plain) -> Verdict:
    if choice is None or (isinstance(choice, (list, tuple)) and all(part in (None, "") for part in choice)):
        return not_done()
    if not isinstance(choice, (list, tuple)) or len(choice) != 2:
        return wrong(Lab07Hint.NO_PAIR)
    field, fix = choice
    if not isinstance(field, str) or field not in FIELDS:
        return wrong(Lab07Hint.NOT_IN_THE_LIST.says(word=field, kind="fields"))
    if not isinstance(fix, str) or fix not in FIXES:
        return wrong(Lab07Hint.NOT_IN_THE_LIST.says(word=fix, kind="fixes"))
    if starts_after(letter, field, fix):
        return right()
    hint_of_place, hint_of_fix = SYMPTOMS[letter]
    if CHANGES[fix][0] != field:
        return wrong(Lab07Hint.NOT_IN_THIS_FIELD.says(fix=fix, field=field))
    if any(starts_after(letter, field, right_fix) for right_fix in FIXES):
        return wrong(hint_of_fix, context="the place is right; with this fix the job still does not start. ")
    return wrong(hint_of_place)


LAB = Lab(
    "07_multi_worker",
    [
        Exercise("tf_config", 4, judge_tf_config),
        Exercise("is_chief", 3, judge_is_chief),
        Exercise("diagnosis", 6, judge_diagnosis),
        Exercise("save", 5, judge_save),
    ],
    solved_in=["distlab.cluster_spec"],
    given_module=given,
)
