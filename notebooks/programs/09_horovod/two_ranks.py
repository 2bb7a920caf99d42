"""The lab's functions with Horovod itself: two ranks train an epoch, and are asked which step is missing.

    python two_ranks.py steps.py

`lab.given.write(globals(), file)` writes steps.py in the lab. This program starts itself twice under mpirun. The
functions replace those of the same name in `train_tape.py`, and `forgotten_steps.py` asks the questions.
"""

import argparse
import json
import tempfile
from pathlib import Path
from unittest import mock

from distlab import launch, programs

RANKS = 2
SECONDS = 150.0
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
    with mock.patch.multiple(train_tape, **functions), tempfile.TemporaryDirectory() as scratch:
        shared = Path(hvd.broadcast_object(scratch, root_rank=0))
        answers = forgotten_steps.answers(forgotten_steps.NOTHING, training, shared)
        forgotten_steps.wait_for_all()
    if hvd.rank() == 0:
        summary = {name: answers[name] for name in ("ranks", "steps", "last loss", "last weights differ by")}
        summary["forgotten"] = forgotten_steps.forgotten(answers)
        summary["seen"] = int(np.unique(np.ravel(answers["seen"])).size)
        summary["images"] = training.images
        result.write_text(json.dumps(summary))


def report(file: Path) -> str:
    """Train on two ranks; the result in a few lines, or one line that says why there is none."""
    if problem := launch.horovod_problem():
        return f"Skipped: {problem}"
    text = file.read_text()
    if missing := [name for name in ("start", *FUNCTIONS) if f"def {name}(" not in text]:
        return f"Not done yet: {', '.join(missing)}."
    try:
        run = launch.mpirun(__file__, file, ranks=RANKS, result=True, seconds=SECONDS, echo=False).result
    except launch.LaunchError as error:
        return f"The two ranks did not come to an end: {error}"
    forgotten = ", ".join(run["forgotten"]) or "nothing"
    return "\n".join(
        [
            f"{run['ranks']} ranks took {run['steps']} steps and saw {run['seen']} of {run['images']} images",
            f"last loss {run['last loss']:.3f}; weights of the ranks differ by {run['last weights differ by']:g}",
            f"forgotten: {forgotten}",
        ]
    )


def main() -> None:
    """With --result as a rank, without it as the process that starts the ranks."""
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
