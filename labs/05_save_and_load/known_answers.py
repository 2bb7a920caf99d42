"""Known answers to `run` of lab 05, which start TensorFlow: the lab's own solution with other lines."""

from pathlib import Path

import distlab  # before TensorFlow: it selects tf-keras

# isort: split
import numpy as np
import tensorflow as tf

from tests.distlab.labs.known_wrong import LabAnswers
from tests.distlab.labs.solutions import solution_with

assert distlab
ANSWERS, GIVEN = LabAnswers(), {}
RATE, RESTORE = "training.optimizer.learning_rate", "    checkpoint.restore(manager.latest_checkpoint)\n"
WHILE, TRAIN = "while int(training.step) < last_step", "training.train_step(training.numbers(int(training.step)))"
DUE = "int(training.step) % every == 0 or int(training.step) == last_step"
SAVE = "            manager.save()\n"


def older(folder):
    state = tf.train.get_checkpoint_state(folder)
    return state.all_model_checkpoint_paths[0] if state else None


def run_with(*changes):
    return solution_with("05", "run", *changes, tf=tf, Path=Path, older=older)["run"]


def without(*parts):
    return run_with(*((f"        {part}=training.{part},\n", "") for part in parts))


def own_file(training, folder, last_step, every):
    file = folder / "state.npz"
    if file.exists():
        state = np.load(file)
        training.weights.assign(state["weights"])
        training.step.assign(state["step"])
    while int(training.step) < last_step:
        training.train_step(training.numbers(int(training.step)))
        if int(training.step) % every == 0 or int(training.step) == last_step:
            np.savez(file, weights=training.weights.numpy(), step=training.step.numpy())


OF_PARTS = {
    "weights": "the weights are those of a new model",
    "optimizer": "Adam has lost its averages",
    "generator": "the dropout masks are those of the first steps",
    "step": "the run resumes with the images of step",
    "lowest_loss": "the lowest loss so far is infinite",
}
for part, words in OF_PARTS.items():
    ANSWERS.wrong("run", f"without {part}", without(part), words, share=5 / 6)

OF_ONE_PART = {
    "keeps five": (("max_to_keep=2", "max_to_keep=5"), "Which option of the manager limits them?"),
    "keeps one": (("max_to_keep=2", "max_to_keep=1"), "Only one checkpoint is kept."),
    "saves in every step": ((DUE, "True"), "A checkpoint is saved after every step"),
    "saves at the end": ((DUE, "int(training.step) == last_step"), "There is only one checkpoint, at the end."),
    "does not save at the end": ((DUE, "int(training.step) % every == 0"), "it is not its turn."),
    "saves a step late": ((DUE, DUE.replace("== 0", "== 1")), "and should be after steps"),
    "saves twice": ((SAVE, f"{SAVE}        if int(training.step) == last_step:\n{SAVE}"), "Which two reasons to save"),
    "saves when killed": (
        (
            f"        {TRAIN}",
            f"        try:\n            {TRAIN}\n        except BaseException:\n{SAVE}            raise",
        ),
        "A checkpoint is saved while the process is killed.",
    ),
    "loses the rate": (
        (RESTORE, f"    rate = float({RATE})\n{RESTORE}    {RATE}.assign(rate)\n"),
        "After a restart the learning rate is",
    ),
    "last_step more steps": ((WHILE, "for _ in range(last_step)"), "It ends after step"),
}
for title, (change, words) in OF_ONE_PART.items():
    ANSWERS.wrong("run", title, run_with(change), words, share=5 / 6)
behind_the_loop = run_with((DUE, f"int(training.step) < last_step and ({DUE})"), (SAVE, f"{SAVE}    manager.save()\n"))
ANSWERS.wrong("run", "saves when done", behind_the_loop, "with nothing left to do saves", share=5 / 6)
until_done = (SAVE, f"{SAVE}        if int(training.step) >= last_step:\n            return\n")
before_it_looks = run_with((WHILE, "while True"), until_done)
ANSWERS.wrong("run", "trains before it looks", before_it_looks, "It trains although `last_step` is", share=5 / 6)

parts_lost = without("optimizer", "generator", "lowest_loss")
ANSWERS.wrong("run", "weights and step only", parts_lost, "optimizer: wrong", "lowest loss: wrong", share=3 / 6)
never_restored, older_restored = run_with((RESTORE, "")), run_with(("manager.latest_checkpoint", "older(folder)"))
ANSWERS.wrong("run", "never restored", never_restored, "begins from the start", share=1 / 6)
ANSWERS.wrong("run", "the older one restored", older_restored, "and the newest checkpoint is that", share=1 / 6)

OF_ALL = {
    "one step more": ((WHILE, "while int(training.step) <= last_step"), "It ends after step"),
    "images of the next step": (("int(training.step)))", "int(training.step) + 1))"), "Who counts the steps"),
    "counts each step twice": ((TRAIN, f"{TRAIN}\n        training.step.assign_add(1)"), "Who counts the steps"),
    "images in order": ((TRAIN, "training.train_step([0, 1, 2, 3])"), "What chooses the images?"),
    "never saves": ((DUE, "False"), "There is no checkpoint of a `CheckpointManager`"),
    "never ends": ((WHILE, "training.step.assign(0)\n    while True"), "the run still goes on"),
    "restores before each step": ((TRAIN, f"{RESTORE.strip()}\n        {TRAIN}"), "How often does a process restore?"),
    "the training itself": (("weights=training.weights", "training=training"), "cannot save `training`"),
    "the folder restored": (("manager.latest_checkpoint", "folder"), "What of the manager names the newest one?"),
    "step instead of images": (("training.numbers(int(training.step))", "int(training.step)"), "Which method of"),
    "variable instead of a number": (("int(training.step)))", "training.step))"), "What does `int(…)` make of it?"),
}
for title, (change, words) in OF_ALL.items():
    ANSWERS.wrong("run", title, run_with(change), words)
ANSWERS.wrong("run", "own file", own_file, "There is no checkpoint of a `CheckpointManager`")


def by_every_variable(training, folder, last_step, every):
    optimizer = [*training.optimizer.variables, training.optimizer.learning_rate]
    variables = [*optimizer, training.weights, training.generator.state, training.step]
    checkpoint = tf.train.Checkpoint(variables=[*variables, training.lowest_loss])
    manager = tf.train.CheckpointManager(checkpoint, str(folder), 2, checkpoint_name="state")
    manager.restore_or_initialize()
    for step in np.arange(int(training.step), last_step):
        training.train_step(training.numbers(step))
        if (step + 1) % every == 0 or step + 1 == last_step:
            manager.save(checkpoint_number=step + 1)


ANSWERS.right("run", by_every_variable)

SAME_MISTAKES = ("own file",)
SOLUTIONS = {"run": {"run": run_with()}}
