"""Six jobs whose TF_CONFIGs are broken, what TensorFlow says, and the fixes to choose from; not which fix is right.

`write` writes the student's functions into a file, from which a program can start real workers.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from distlab.labs.student_programs import text_of

HOSTS = ["host1:23456", "host2:23456", "host3:23456"]

FIELDS = ("the whole text", "cluster.worker", "task.type", "task.index")

Texts = list[str]


def _job(workers: Sequence[str], indices: Sequence[object]) -> Texts:
    """The texts of a job, one per process, whether they are right or not."""
    return [json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": at}}) for at in indices]


BROKEN: dict[str, Texts] = {
    "A": _job(HOSTS[:2], [1, 2]),
    "B": [text.replace("host2:23456", "host2") for text in _job(HOSTS[:2], [0, 1])],
    "C": [text.replace("host1:", "localhost:") for text in _job(HOSTS[:2], [0, 1])],
    "D": [str(json.loads(text)) for text in _job(HOSTS[:2], [0, 1])],
    "E": _job(HOSTS, [0, 1, 1]),
    "F": [*_job(HOSTS[:2], [0]), *_job(HOSTS[1::-1], [1])],
}


_WAITS = "(nothing after a minute)"
MESSAGES: dict[str, Texts] = {
    "A": [_WAITS, "ValueError: The `task_id` 2 exceeds the maximum id of worker."],
    "B": [
        'InvalidArgumentError: Could not interpret "host2" as a host-port pair.',
        'InvalidArgumentError: Could not parse port for local server from "host2".',
    ],
    "C": [_WAITS, _WAITS],
    "D": ["JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"] * 2,
    "E": [_WAITS] * 3,
    "F": [_WAITS] * 2,
}
"""The last line of each process of TensorFlow 2.21, recorded on three hosts, which were network namespaces."""


def described() -> str:
    """The texts of every job, one line per process, and below each what TensorFlow says."""
    lines = []
    for letter, texts in BROKEN.items():
        for number, (text, message) in enumerate(zip(texts, MESSAGES[letter], strict=True)):
            lines += [f"{letter}  process {number}: {text}", f"   TensorFlow: {message}"]
    return "\n".join(lines)


def write(namespace: Mapping[str, Any], file: Path) -> None:
    """Write the student's `start`, and the functions of the notebook that it calls, to a file."""
    file.write_text("import json\nimport os\nimport subprocess\n\n\n" + text_of(namespace, ["start"]))


FIXES = {
    "let json.dumps write it": "the whole text",
    "write it in one line": "the whole text",
    "give every address a port": "cluster.worker",
    "give every address another port": "cluster.worker",
    "write the name that other hosts know": "cluster.worker",
    "write the same list in every process": "cluster.worker",
    "write chief for the first process": "task.type",
    "count from 0": "task.index",
    "give every process a number of its own": "task.index",
    "write the number in quotes": "task.index",
}
"""Each fix with the field in which it can be done."""
