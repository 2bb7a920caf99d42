"""The functions of lab 09 with Horovod itself: two ranks train; which step is missing?

    python two_ranks.py steps.py

`lab.given.write(globals(), file)` writes steps.py in the lab. This program starts itself twice
under mpirun. The functions replace those of the same name in `train_tape.py`, and
`forgotten_steps.py` asks the questions.
"""

import argparse
import json
import tempfile
from pathlib import Path
from unittest import mock

from distlab import launch, programs

FUNCTIONS = ("batches", "steps_per_epoch", "make_optimizer", "begin", "step", "save")


def train(file: Path, result: Path) -> None:
    """What one rank does; rank 0 writes the answers."""
    student = programs.module(file)
    import forgotten_steps  # here, since whoever starts the ranks may have no Horovod
    import horovod.tensorflow as hvd
    import numpy as np
    import train_tape

    student.start()
    training = train_tape.parse(["--dataset", "digits"])
    functions = {name: getattr(student, name) for name in FUNCTIONS}
    with (
        mock.patch.multiple(train_tape, **functions),
        tempfile.TemporaryDirectory() as scratch,
    ):
        shared = Path(hvd.broadcast_object(scratch, root_rank=0))
        answers = forgotten_steps.answers(forgotten_steps.NOTHING, training, shared)
        forgotten_steps.wait_for_all()
    if hvd.rank() == 0:
        names = ("ranks", "steps", "last loss", "last weights differ by")
        summary = {name: answers[name] for name in names} | {"images": training.images}
        summary["forgotten"] = forgotten_steps.forgotten(answers)
        summary["seen"] = int(np.unique(np.ravel(answers["seen"])).size)
        result.write_text(json.dumps(summary))


def report(file: Path) -> str:
    """Train on two ranks; a few lines, or one that says why there is no result."""
    if problem := launch.horovod_problem():
        return f"Skipped: {problem}"
    text = file.read_text()
    if missing := [name for name in ("start", *FUNCTIONS) if f"def {name}(" not in text]:
        return f"Not done yet: {', '.join(missing)}."
    try:
        run = launch.mpirun(__file__, file, result=True, seconds=150, echo=False).result
    except launch.LaunchError as error:
        return f"The two ranks did not come to an end: {error}"
    trained = f"{run['ranks']} ranks took {run['steps']} steps and saw {run['seen']}"
    apart = f"weights of the ranks differ by {run['last weights differ by']:g}"
    return (
        f"{trained} of {run['images']} images\n"
        f"last loss {run['last loss']:.3f}; {apart}\n"
        f"forgotten: {', '.join(run['forgotten']) or 'nothing'}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train with lab 09's functions on two ranks.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    options = parser.parse_args()
    if options.result:  # as a rank
        train(options.file, options.result)
    else:
        print(report(options.file))
