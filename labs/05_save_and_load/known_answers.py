"""Known answers to `run` of lab 05, which start TensorFlow: the lab's own solution with other lines."""

from pathlib import Path

import numpy as np
import tensorflow as tf

GIVEN = {}
RATE, RESTORE = "training.optimizer.learning_rate", "    checkpoint.restore(manager.latest_checkpoint)\n"
WHILE, TRAIN = "while int(training.step) < last_step", "training.train_step(training.numbers(int(training.step)))"
DUE = "int(training.step) % every == 0 or int(training.step) == last_step"
SAVE = "            manager.save()\n"


def older(folder):
    state = tf.train.get_checkpoint_state(folder)
    return state.all_model_checkpoint_paths[0] if state else None


KNOWN = {"tf": tf, "Path": Path, "older": older}


def without(*parts):
    return [(f"        {part}=training.{part},\n", "") for part in parts]


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


KEPT, NEWEST, NUMBERS = "max_to_keep=2", "manager.latest_checkpoint", "training.numbers(int(training.step))"
WHEN_KILLED = f"        try:\n            {TRAIN}\n        except BaseException:\n{SAVE}            raise"
WRONG = {
    "run": {
        **{f"without {part}": without(part) for part in ("weights", "optimizer", "generator", "step", "lowest_loss")},
        "keeps five": (KEPT, "max_to_keep=5"),
        "keeps one": (KEPT, "max_to_keep=1"),
        "saves in every step": (DUE, "True"),
        "saves at the end": (DUE, "int(training.step) == last_step"),
        "does not save at the end": (DUE, "int(training.step) % every == 0"),
        "saves a step late": (DUE, DUE.replace("== 0", "== 1")),
        "saves twice": (SAVE, f"{SAVE}        if int(training.step) == last_step:\n{SAVE}"),
        "saves when killed": (f"        {TRAIN}", WHEN_KILLED),
        "loses the rate": (RESTORE, f"    rate = float({RATE})\n{RESTORE}    {RATE}.assign(rate)\n"),
        "last_step more steps": (WHILE, "for _ in range(last_step)"),
        "saves when done": [
            (DUE, f"int(training.step) < last_step and ({DUE})"),
            (SAVE, f"{SAVE}    manager.save()\n"),
        ],
        "trains before it looks": [
            (WHILE, "while True"),
            (SAVE, f"{SAVE}        if int(training.step) >= last_step:\n            return\n"),
        ],
        "weights and step only": without("optimizer", "generator", "lowest_loss"),
        "never restored": (RESTORE, ""),
        "the older one restored": (NEWEST, "older(folder)"),
        "one step more": (WHILE, "while int(training.step) <= last_step"),
        "images of the next step": ("int(training.step)))", "int(training.step) + 1))"),
        "counts each step twice": (TRAIN, f"{TRAIN}\n        training.step.assign_add(1)"),
        "images in order": (TRAIN, "training.train_step([0, 1, 2, 3])"),
        "never saves": (DUE, "False"),
        "never ends": (WHILE, "training.step.assign(0)\n    while True"),
        "restores before each step": (TRAIN, f"{RESTORE.strip()}\n        {TRAIN}"),
        "the training itself": ("weights=training.weights", "training=training"),
        "the folder restored": (NEWEST, "folder"),
        "step instead of images": (NUMBERS, "int(training.step)"),
        "variable instead of a number": ("int(training.step)))", "training.step))"),
        "own file": own_file,
    }
}


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


RIGHT = {"run": [[], by_every_variable]}
SAME_MISTAKES = ("own file",)
