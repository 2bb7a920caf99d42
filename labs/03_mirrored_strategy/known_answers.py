"""Known answers to `mirrored` of lab 03, which start TensorFlow: the lab's own solution with other lines."""

import math

from distlab import devices, models
from tests.distlab.labs.known_wrong import LabAnswers
from tests.distlab.labs.solutions import namespace_of, solution_with

# isort: split
import tensorflow as tf

ANSWERS, WarmUp = LabAnswers(), namespace_of("03", solved=True)["WarmUp"]
GIVEN = {"strategy": tf.distribute.MirroredStrategy(devices.at_least(2))}


class EachEpoch(WarmUp):
    def on_train_batch_begin(self, batch, logs=None):
        self.model.optimizer.learning_rate.assign(self.rate * (batch + 1) / self.steps)


def answer(*changes):
    known = {"tf": tf, "models": models, "math": math, "WarmUp": WarmUp, "EachEpoch": EachEpoch}
    return solution_with("03", "mirrored", *changes, **known)


SCOPE, MODEL = "    with strategy.scope():\n", "    model = models.mlp(dropout=0.0)\n"
OWN_SCOPE = SCOPE.replace("strategy", 'tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])')
COMPILE = "    model.compile(tf.keras.optimizers.SGD(rate * replicas), loss)\n"
LOSS, SIZE = "tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)", "images_per_replica * replicas"
TRAIN, VALIDATION = "from_tensor_slices(train).batch(batch_size)", "from_tensor_slices(validation).batch(batch_size)"
STEPS, CALLBACK = "len(train[0]) / batch_size", "WarmUp(rate * replicas, steps_per_epoch)"
EVALUATES = f"        validation_data=tf.data.Dataset.{VALIDATION},\n"
DROPPING = "(batch_size, drop_remainder=True)"
WRONG = {
    "without scope": (SCOPE, "    if True:\n", "The weights exist once, on one device: nothing is mirrored.", 0.6),
    "only compile in the scope": (f"{SCOPE}    {MODEL}", f"{MODEL}{SCOPE}", "must be created inside the scope?", 0.0),
    "compiles after the scope": (
        f"    {COMPILE}",
        COMPILE,
        "The optimizer's step counter has one copy, on one device. Where must",
        0.6,
    ),
    "batch of one replica": (SIZE, "images_per_replica", "what batch(...) says. Which batch size is that?", 0.4),
    "multiplied twice": (SIZE, f"2 * {SIZE}", "one multiplication too many.", 0.4),
    "literally two replicas": (
        "strategy.num_replicas_in_sync",
        "2",
        "With a strategy of one replica: Each replica",
        0.4,
    ),
    "misremembers a name": ("num_replicas_in_sync", "num_replicas", "`mirrored` raises AttributeError", 0.0),
    "drops the rest": (TRAIN, TRAIN.replace("(batch_size)", DROPPING), "the last, smaller batch is dropped.", 0.4),
    "shuffles": (
        TRAIN,
        TRAIN.replace(".batch", ".shuffle(100, seed=1).batch"),
        "The images come in another order",
        0.6,
    ),
    "fit gets arrays": (f"tf.data.Dataset.{TRAIN}", "*train, batch_size", "what does it give to `fit`?", 0.6),
    "returns the model alone": ("return model, history", "return model", "returns two things, the model and the", 0.0),
    "returns a dictionary": ("model, history\n", "model, history.history\n", "is not what `fit` returns.", 0.0),
    "a strategy of its own": (SCOPE, OWN_SCOPE, "A function that gets a strategy uses that one: where does", 0.6),
    "rate of one replica": (CALLBACK, "WarmUp(rate, steps_per_epoch)", "How many times as large is the global", 0.6),
    "steps of one replica": (
        STEPS,
        "len(train[0]) / images_per_replica",
        "For which batch size are they counted?",
        0.6,
    ),
    "steps rounded down": (
        "math.ceil(len(train[0]) / batch_size)",
        "len(train[0]) // batch_size",
        "a step too short",
        0.6,
    ),
    "without the callback": (
        f"callbacks=[{CALLBACK}]",
        "callbacks=[]",
        "Does `fit` get the callback, and for how many steps?",
        0.6,
    ),
    "rate scaled twice": (CALLBACK, CALLBACK.replace("rate", "rate * replicas"), "number of replicas twice.", 0.6),
    "rate divided": (CALLBACK, CALLBACK.replace("* replicas", "/ replicas"), "Is the batch smaller?", 0.6),
    "warms up in each epoch": (CALLBACK, CALLBACK.replace("WarmUp", "EachEpoch"), "does it grow again?", 0.6),
    "one epoch too many": ("epochs=epochs", "epochs=epochs + 1", "steps, and 2 epochs have", 0.4),
    "without evaluation": (EVALUATES, "", "The history has 0 validation losses, and there are 2 epochs.", 0.8),
    "evaluates a part": (VALIDATION, VALIDATION.replace("(batch_size)", DROPPING), "Are all of them evaluated", 0.8),
    "evaluates on the training images": (VALIDATION, TRAIN, "Are all of them evaluated, and no other ones?", 0.8),
    "writes the last loss for each epoch": (
        "    return model, history\n",
        '    history.history["val_loss"] = history.history["val_loss"][-1:] * epochs\n    return model, history\n',
        "The validation loss after epoch 1 is",
        0.8,
    ),
    "with Adam": ("SGD(", "Adam(", "The optimizer is Adam; the serial script uses another one.", 0.8),
    "forgets the weights": (
        "    model.set_weights(first_weights)\n",
        "",
        "Does the model begin with the first weights",
        0.8,
    ),
    "with dropout": ("dropout=0.0", "dropout=0.2", "The serial script has no dropout.", 0.8),
    **{
        f"reduction {reduction}": (
            LOSS,
            LOSS.replace(")", f", reduction='{reduction}')"),
            f'The loss has the reduction "{reduction}"',
            0.6,
        )
        for reduction in ("sum", "none")
    },
    "loss by name": (LOSS, '"sparse_categorical_crossentropy"', "Keep the serial script's loss.", 0.6),
}
for title, (before, after, words, share) in WRONG.items():
    ANSWERS.wrong("mirrored", title, answer((before, after)), words, share=share)
IN_STEPS = ("epochs=epochs", "epochs=epochs, steps_per_epoch=steps_per_epoch")
repeats_first = answer((TRAIN, TRAIN.replace(".batch", ".repeat().batch")), IN_STEPS)["mirrored"]
ANSWERS.wrong("mirrored", "repeats first", repeats_first, "Which is first, `batch` or `repeat`?", share=0.6)
REPEATS, IN_ORDER = f"{TRAIN}.repeat()", "*train, batch_size, shuffle=False"
ANSWERS.right("mirrored", answer((TRAIN, REPEATS), IN_STEPS))
ANSWERS.right("mirrored", answer((f"tf.data.Dataset.{TRAIN}", IN_ORDER)))


def with_a_schedule(strategy, train, validation, first_weights, images_per_replica, rate, epochs):
    size = images_per_replica * strategy.num_replicas_in_sync
    steps = len(range(0, len(train[0]), size))
    rates = [rate * strategy.num_replicas_in_sync * (step + 1) / steps for step in range(steps)]
    schedule = tf.keras.optimizers.schedules.PiecewiseConstantDecay(list(range(steps - 1)), rates)
    with strategy.scope():
        model = models.mlp(0.0)
        model.set_weights(first_weights)
        model.compile(tf.keras.optimizers.SGD(schedule), tf.keras.losses.SparseCategoricalCrossentropy(True))
        pair, other = (tf.data.Dataset.from_tensor_slices(arrays).batch(size) for arrays in (train, validation))
        history = model.fit(pair, epochs=epochs, validation_data=other, verbose=0)
    return model, history


ANSWERS.right("mirrored", with_a_schedule)


SOLUTIONS = {"mirrored": answer()}
