"""The functions of lab 09 with Horovod itself: two ranks train an epoch, and are asked which step is missing.

    python -m distlab.labs.lab_09.two_ranks steps.py     # `write` has made steps.py from a notebook's functions

It starts itself twice under mpirun. The training and the questions are those of the chapter: the functions take the
places of those of the same name in `train_tape.py`, and `forgotten_steps.py` looks at the run.
"""

import argparse
import inspect
import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np

import distlab
from distlab import launch, programs
from distlab.labs.lab_09.inside import written

RANKS = 2
SECONDS = 150.0
FUNCTIONS = ("batches", "steps_per_epoch", "make_optimizer", "begin", "step", "save")
HEAD = '''"""The eight steps, written in the lab."""

import argparse
from pathlib import Path

import distlab
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from distlab import data, models

mean_loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

'''


def write(namespace: Mapping[str, Any], file: Path) -> None:
    """Write the student's functions, and those of the notebook that they call, to a file with Horovod as `hvd`."""
    sources: dict[str, str] = {}
    for name in ("start", *FUNCTIONS):
        if (function := written(namespace, name)) is not None:
            _collect(namespace, name, function, sources)
    file.write_text(HEAD + "\n\n".join(sources.values()))


def _collect(namespace: Mapping[str, Any], name: str, function: Callable, sources: dict[str, str]) -> None:
    function = getattr(function, "python_function", function)
    sources[name] = ""
    for other in function.__code__.co_names:
        called = getattr(namespace.get(other), "python_function", namespace.get(other))
        if other not in sources and inspect.isfunction(called) and called.__globals__ is function.__globals__:
            _collect(namespace, other, called, sources)
    del sources[name]
    sources[name] = inspect.getsource(function)  # after what it may need while it is defined


def train(file: Path, result: Path) -> None:
    """What one rank does; rank 0 writes the answers."""
    student = programs.module(file)
    train_tape, forgotten_steps = _program("train_tape"), _program("forgotten_steps")
    student.start()
    import horovod.tensorflow as hvd

    training = train_tape.parse(["--dataset", "digits"])
    own = {name: getattr(student, name) for name in FUNCTIONS}
    with mock.patch.multiple(train_tape, **own), tempfile.TemporaryDirectory() as scratch:
        shared = Path(hvd.broadcast_object(scratch, root_rank=0))
        answers = forgotten_steps.answers(forgotten_steps.NOTHING, training, shared)
        forgotten_steps.wait_for_all()
    if hvd.rank() == 0:
        seen = np.unique(np.ravel(answers["seen"])).size
        names = ("ranks", "steps", "last loss", "last weights differ by")
        chosen = {name: answers[name] for name in names}
        told = {"forgotten": forgotten_steps.forgotten(answers), "seen": int(seen), "images": training.images}
        result.write_text(json.dumps(chosen | told))


def _program(name: str) -> ModuleType:
    """A program of the lab: beside the notebook, else in the course's folder."""
    places = [Path.cwd(), Path(distlab.__file__).parents[2] / "labs" / "09_horovod"]
    for place in places:
        if (place / f"{name}.py").is_file():
            sys.path.insert(0, str(place))
            return __import__(name)
    raise SystemExit(f"There is no {name}.py in {' or '.join(map(str, places))}.")


def report(file: Path) -> str:
    """Train on two ranks; what came of it, in a few lines, or one line that says why not."""
    if problem := launch.horovod_problem():
        return f"Skipped: {problem}"
    text = file.read_text()
    if missing := [name for name in ("start", *FUNCTIONS) if f"def {name}(" not in text]:
        return f"Not done yet: {', '.join(missing)}."
    try:
        found = launch.mpirun(__file__, file, ranks=RANKS, result=True, seconds=SECONDS, echo=False).result
    except launch.LaunchError as error:
        return f"The two ranks did not come to an end: {error}"
    forgotten = ", ".join(found["forgotten"]) or "nothing"
    return "\n".join(
        [
            f"{found['ranks']} ranks made {found['steps']} steps and saw {found['seen']} of {found['images']} images",
            f"last loss {found['last loss']:.3f}; weights of the ranks differ by {found['last weights differ by']:g}",
            f"forgotten: {forgotten}",
        ]
    )


def main() -> None:
    """With --result as a rank, else as who starts the ranks."""
    parser = argparse.ArgumentParser(description="Train with the functions of lab 09 on two ranks of Horovod.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    options = parser.parse_args()
    if options.result:
        train(options.file, options.result)
    else:
        print(report(options.file))


if __name__ == "__main__":
    main()
