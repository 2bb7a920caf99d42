"""Known answers to `mirrored` of lab 03, which start TensorFlow: the lab's own solution with other lines."""

import math

import tensorflow as tf

from distlab import devices, models
from tests.distlab.labs.solutions import namespace_of

WarmUp = namespace_of("03", solved=True)["WarmUp"]
GIVEN = {"strategy": tf.distribute.MirroredStrategy(devices.at_least(2))}


class EachEpoch(WarmUp):
    def on_train_batch_begin(self, batch, logs=None):
        self.model.optimizer.learning_rate.assign(self.rate * (batch + 1) / self.steps)


KNOWN = {"tf": tf, "models": models, "math": math, "WarmUp": WarmUp, "EachEpoch": EachEpoch}
SCOPE, MODEL = "    with strategy.scope():\n", "    model = models.mlp(dropout=0.0)\n"
OWN_SCOPE = SCOPE.replace("strategy", 'tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])')
COMPILE = "    model.compile(tf.keras.optimizers.SGD(rate * replicas), loss)\n"
LOSS, SIZE = "tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)", "images_per_replica * replicas"
TRAIN, VALIDATION = "from_tensor_slices(train).batch(batch_size)", "from_tensor_slices(validation).batch(batch_size)"
CALLBACK = "WarmUp(rate * replicas, steps_per_epoch)"
EVALUATES = f"        validation_data=tf.data.Dataset.{VALIDATION},\n"
DROPPING = "(batch_size, drop_remainder=True)"
IN_STEPS = ("epochs=epochs", "epochs=epochs, steps_per_epoch=steps_per_epoch")
WRONG = {
    "mirrored": {
        "without scope": (SCOPE, "    if True:\n"),
        "only compile in the scope": (f"{SCOPE}    {MODEL}", f"{MODEL}{SCOPE}"),
        "compiles after the scope": (f"    {COMPILE}", COMPILE),
        "batch of one replica": (SIZE, "images_per_replica"),
        "multiplied twice": (SIZE, f"2 * {SIZE}"),
        "literally two replicas": ("strategy.num_replicas_in_sync", "2"),
        "misremembers a name": ("num_replicas_in_sync", "num_replicas"),
        "drops the rest": (TRAIN, TRAIN.replace("(batch_size)", DROPPING)),
        "shuffles": (TRAIN, TRAIN.replace(".batch", ".shuffle(100, seed=1).batch")),
        "fit gets arrays": (f"tf.data.Dataset.{TRAIN}", "*train, batch_size"),
        "returns the model alone": ("return model, history", "return model"),
        "returns a dictionary": ("model, history\n", "model, history.history\n"),
        "a strategy of its own": (SCOPE, OWN_SCOPE),
        "rate of one replica": (CALLBACK, "WarmUp(rate, steps_per_epoch)"),
        "steps of one replica": ("len(train[0]) / batch_size", "len(train[0]) / images_per_replica"),
        "steps rounded down": ("math.ceil(len(train[0]) / batch_size)", "len(train[0]) // batch_size"),
        "without the callback": (f"callbacks=[{CALLBACK}]", "callbacks=[]"),
        "rate scaled twice": (CALLBACK, CALLBACK.replace("rate", "rate * replicas")),
        "rate divided": (CALLBACK, CALLBACK.replace("* replicas", "/ replicas")),
        "warms up in each epoch": (CALLBACK, CALLBACK.replace("WarmUp", "EachEpoch")),
        "one epoch too many": ("epochs=epochs", "epochs=epochs + 1"),
        "without evaluation": (EVALUATES, ""),
        "evaluates a part": (VALIDATION, VALIDATION.replace("(batch_size)", DROPPING)),
        "evaluates on the training images": (VALIDATION, TRAIN),
        "writes the last loss for each epoch": (
            "    return model, history\n",
            '    history.history["val_loss"] = history.history["val_loss"][-1:] * epochs\n    return model, history\n',
        ),
        "with Adam": ("SGD(", "Adam("),
        "forgets the weights": ("    model.set_weights(first_weights)\n", ""),
        "with dropout": ("dropout=0.0", "dropout=0.2"),
        "reduction sum": (LOSS, LOSS.replace(")", ", reduction='sum')")),
        "reduction none": (LOSS, LOSS.replace(")", ", reduction='none')")),
        "loss by name": (LOSS, '"sparse_categorical_crossentropy"'),
        "repeats first": [(TRAIN, TRAIN.replace(".batch", ".repeat().batch")), IN_STEPS],
    }
}


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


RIGHT = {
    "mirrored": [
        [],
        [(TRAIN, f"{TRAIN}.repeat()"), IN_STEPS],
        (f"tf.data.Dataset.{TRAIN}", "*train, batch_size, shuffle=False"),
        with_a_schedule,
    ]
}
