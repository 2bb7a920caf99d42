"""Answers to `run` of lab 05; importing this starts TensorFlow, so it is done in a process of its own."""

import distlab  # before TensorFlow: it selects tf-keras

# isort: split
import numpy as np
import tensorflow as tf
from lab_05.hints import Lab05Hint as Hint

from tests.distlab.labs.known_wrong import LabAnswers

assert distlab
ANSWERS = LabAnswers()
wrong, right = ANSWERS.wrong, ANSWERS.right
PARTS = ("weights", "optimizer", "generator", "step", "lowest_loss")
GIVEN = {}


def checkpoint_of(training, *left_out):
    return tf.train.Checkpoint(**{part: getattr(training, part) for part in PARTS if part not in left_out})


def trained(training, last_step, is_time, save):
    while int(training.step) < last_step:
        training.train_step(training.numbers(int(training.step)))
        if is_time(int(training.step)):
            save()


def program(*left_out, keep=2, restore=tf.train.latest_checkpoint, is_time=None):
    """A `run` whose checkpoint leaves parts out, and with other rules of keeping, restoring and saving."""

    def run(training, folder, last_step, every):
        checkpoint = checkpoint_of(training, *left_out)
        manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=keep)
        checkpoint.restore(restore(folder)).expect_partial()

        def usual(step):
            return step % every == 0 or step == last_step

        trained(training, last_step, (lambda step: is_time(step, every, last_step)) if is_time else usual, manager.save)

    return run


def older(folder):
    state = tf.train.get_checkpoint_state(folder)
    return state.all_model_checkpoint_paths[0] if state else None


LOST = {
    "weights": (Hint.WEIGHTS_LOST,),
    "optimizer": (Hint.AVERAGES_LOST,),
    "generator": (Hint.GENERATOR_LOST,),
    "step": (Hint.POSITION_LOST,),
    "lowest_loss": (Hint.LOWEST_LOST,),
}
for part, hints in LOST.items():
    ANSWERS.wrong_value("run", f"without {part}", program(part), *hints, share=5 / 6)
ANSWERS.wrong_value(
    "run", "weights and step only", program("optimizer", "generator", "lowest_loss"),
    Hint.AVERAGES_LOST, Hint.GENERATOR_LOST, Hint.LOWEST_LOST, share=3 / 6,
)  # fmt: skip
ANSWERS.wrong_value(
    "run", "never restored", program(restore=lambda folder: None), *[Hint.NOTHING_RESTORED] * 5, share=1 / 6
)
ANSWERS.wrong_value("run", "the older one restored", program(restore=older), *[Hint.OLDER_RESTORED] * 5, share=1 / 6)
ANSWERS.wrong_value("run", "keeps five", program(keep=5), Hint.KEEPS_MORE, share=5 / 6)
ANSWERS.wrong_value("run", "keeps one", program(keep=1), Hint.KEEPS_FEWER, share=5 / 6)
SAVES = {
    "saves in every step": (lambda step, every, last: True, Hint.SAVED_EVERY_STEP),
    "saves at the end": (lambda step, every, last: step == last, Hint.SAVED_AT_END_ONLY),
    "does not save at the end": (lambda step, every, last: step % every == 0, Hint.LAST_NOT_SAVED),
    "saves a step late": (lambda step, every, last: step % every == 1 or step == last, Hint.OTHER_SAVES),
}
for title, (is_time, hint) in SAVES.items():
    ANSWERS.wrong_value("run", title, program(is_time=is_time), hint, share=5 / 6)


@wrong("run", Hint.RATE_LOST, share=5 / 6)
def averages_without_the_rate(training, folder, last_step, every):
    checkpoint = checkpoint_of(training)
    rate = float(training.optimizer.learning_rate)
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
    checkpoint.restore(manager.latest_checkpoint)
    training.optimizer.learning_rate.assign(rate)
    trained(training, last_step, lambda step: step % every == 0 or step == last_step, manager.save)


@wrong("run", *[Hint.STEPS_WRONG] * 6)
def one_step_more(training, folder, last_step, every):
    checkpoint = checkpoint_of(training)
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
    checkpoint.restore(manager.latest_checkpoint)
    for _ in range(int(training.step), last_step + 1):
        training.train_step(training.numbers(int(training.step)))
        if int(training.step) % every == 0 or int(training.step) >= last_step:
            manager.save()


@wrong("run", *[Hint.WRONG_IMAGES] * 6)
def images_of_the_next_step(training, folder, last_step, every):
    checkpoint = checkpoint_of(training)
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
    checkpoint.restore(manager.latest_checkpoint)
    while int(training.step) < last_step:
        training.train_step(training.numbers(int(training.step) + 1))
        if int(training.step) % every == 0 or int(training.step) == last_step:
            manager.save()


@wrong("run", Hint.STEPS_WRONG, share=5 / 6)
def last_step_more_steps(training, folder, last_step, every):
    checkpoint = checkpoint_of(training)
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
    checkpoint.restore(manager.latest_checkpoint)
    for _ in range(last_step):
        training.train_step(training.numbers(int(training.step)))
        if int(training.step) % every == 0 or int(training.step) == last_step:
            manager.save()


@wrong("run", Hint.TRAINED_WHEN_DONE, share=5 / 6)
def trains_before_it_looks(training, folder, last_step, every):
    checkpoint = checkpoint_of(training)
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
    checkpoint.restore(manager.latest_checkpoint)
    while True:
        training.train_step(training.numbers(int(training.step)))
        if int(training.step) % every == 0 or int(training.step) == last_step:
            manager.save()
        if int(training.step) >= last_step:
            return


never_saves = program(is_time=lambda step, every, last: False)
ANSWERS.wrong_value("run", "never saves", never_saves, *[Hint.NO_CHECKPOINT] * 6)


@wrong("run", *[Hint.TOO_MANY_STEPS] * 6)
def never_ends(training, folder, last_step, every):
    while True:
        training.train_step(training.numbers(0))


@wrong("run", Hint.NOT_TRACKABLE, "`training`")
def the_training_itself(training, folder, last_step, every):
    tf.train.Checkpoint(training=training)


@right("run")
def by_write_and_every_variable(training, folder, last_step, every):
    optimizer = [*training.optimizer.variables, training.optimizer.learning_rate]
    variables = [*optimizer, training.weights, training.generator.state, training.step]
    checkpoint = tf.train.Checkpoint(variables=[*variables, training.lowest_loss])
    manager = tf.train.CheckpointManager(checkpoint, str(folder), 2, checkpoint_name="state")
    manager.restore_or_initialize()
    for step in np.arange(int(training.step), last_step):
        training.train_step(training.numbers(step))
        if (step + 1) % every == 0 or step + 1 == last_step:
            manager.save(checkpoint_number=step + 1)


def opened(training, folder, *left_out):
    """A checkpoint that is restored, and its manager."""
    checkpoint = checkpoint_of(training, *left_out)
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
    checkpoint.restore(manager.latest_checkpoint)
    return checkpoint, manager


@wrong("run", Hint.SAVED_TWICE, share=5 / 6)
def two_reasons_to_save(training, folder, last_step, every):
    _, manager = opened(training, folder)
    while int(training.step) < last_step:
        training.train_step(training.numbers(int(training.step)))
        if int(training.step) % every == 0:
            manager.save()
        if int(training.step) == last_step:
            manager.save()


@wrong("run", Hint.SAVED_WHEN_DONE, share=5 / 6)
def saves_behind_the_loop(training, folder, last_step, every):
    _, manager = opened(training, folder)
    while int(training.step) < last_step:
        training.train_step(training.numbers(int(training.step)))
        if int(training.step) % every == 0 and int(training.step) < last_step:
            manager.save()
    manager.save()


@wrong("run", Hint.SAVED_WHEN_KILLED, share=5 / 6)
def saves_while_it_is_killed(training, folder, last_step, every):
    _, manager = opened(training, folder)
    try:
        trained(training, last_step, lambda step: step % every == 0 or step == last_step, manager.save)
    finally:
        if int(training.step) < last_step:
            manager.save()


@wrong("run", *[Hint.RESTORED_AGAIN] * 6)
def restores_before_each_step(training, folder, last_step, every):
    checkpoint, manager = opened(training, folder)
    while int(training.step) < last_step:
        checkpoint.restore(manager.latest_checkpoint)
        training.train_step(training.numbers(int(training.step)))
        if int(training.step) % every == 0 or int(training.step) == last_step:
            manager.save()


@wrong("run", *[Hint.WRONG_IMAGES] * 6)
def counts_each_step_twice(training, folder, last_step, every):
    _, manager = opened(training, folder)
    while int(training.step) < last_step:
        training.train_step(training.numbers(int(training.step)))
        training.step.assign_add(1)
        if int(training.step) % every == 0 or int(training.step) == last_step:
            manager.save()


@wrong("run", *[Hint.IMAGES_OF_NO_STEP] * 6)
def images_in_order(training, folder, last_step, every):
    _, manager = opened(training, folder)
    while int(training.step) < last_step:
        training.train_step([0, 1, 2, 3])
        if int(training.step) % every == 0 or int(training.step) == last_step:
            manager.save()


@wrong("run", *[Hint.NO_CHECKPOINT] * 6)
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


@wrong("run", Hint.NOT_TRACKABLE, "`images`")
def everything_of_the_training(training, folder, last_step, every):
    tf.train.Checkpoint(**vars(training))


@wrong("run", Hint.RESTORES_FOLDER)
def the_folder_restored(training, folder, last_step, every):
    checkpoint_of(training).restore(folder)


@wrong("run", Hint.STEP_AS_IMAGES)
def step_instead_of_images(training, folder, last_step, every):
    training.train_step(int(training.step))


@wrong("run", Hint.STEP_NOT_A_NUMBER)
def variable_instead_of_a_number(training, folder, last_step, every):
    training.train_step(training.numbers(training.step))


SOLUTIONS = {"run": {"run": program()}}
