"""Known answers to `distributed` of lab 04, which start TensorFlow: the lab's own solution with other lines."""

import tensorflow as tf

from distlab import devices
from tests.distlab.labs.solutions import solved_cells

GIVEN = {"strategy": tf.distribute.MirroredStrategy(devices.at_least(2))}
KNOWN = {"tf": tf, **GIVEN}
exec(next(text for text in solved_cells("04").values() if "def serial" in text), KNOWN)
network = KNOWN["network"]
SCOPE, MODEL = "    with strategy.scope():\n", "        model = network()\n"
OPTIMIZER = "        optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)\n"
MEAN, SCALED = "tf.reduce_sum(per_image) / count", "tf.nn.scale_regularization_loss(tf.add_n(model.losses))"
PENALTY = f"            loss += {SCALED}\n"
WITH_PENALTY = PENALTY.replace("loss +=", "whole = loss +")
LOSS = f"            loss = {MEAN}\n{PENALTY}"
DISTRIBUTE = "    batches = strategy.experimental_distribute_dataset(batches)\n"
LOG = "losses = [float(train_step(*batch)) for batch in batches]"
CROSS_ENTROPY = "tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)"
OWN_COUNT = ('context.all_reduce("SUM", tf.cast(tf.size(labels), tf.float32))', "tf.cast(tf.size(labels), tf.float32)")
BY_AVERAGE = "tf.nn.compute_average_loss(per_image, global_batch_size=batch_size)"
REDUCE = '        return strategy.reduce("SUM", losses, axis=None)\n'
GRAPH = "losses = []\n\n    @tf.function\n    def epoch():\n"
IN_GRAPH = f"{GRAPH}        losses.append(train_step(images, labels))\n\n    epoch()"
SERIAL = "    return serial(images, labels, first_weights, batch_size)\n"
APPLY = "zip(gradients, model.trainable_variables, strict=True)"
WRONG = {
    "distributed": {
        "own mean": (MEAN, "tf.reduce_mean(per_image)"),
        "divided by its own count": OWN_COUNT,
        "mean of means": (MEAN, "tf.nn.compute_average_loss(per_image)"),
        "size of a full batch": (MEAN, BY_AVERAGE),
        "size of a full part": (MEAN, "tf.reduce_sum(per_image) / (batch_size // 2)"),
        "mean count": ('all_reduce("SUM"', 'all_reduce("MEAN"'),
        "penalty by images": (SCALED, "tf.add_n(model.losses) / count"),
        "divided twice": (MEAN, f"{MEAN} / 2"),
        "a sum": (MEAN, "tf.reduce_sum(per_image)"),
        "penalty on each": (SCALED, "tf.add_n(model.losses)"),
        "no penalty": (PENALTY, ""),
        "penalty divided twice": (SCALED, f"{SCALED} / 2"),
        "no penalty, full batch": (LOSS, f"            loss = {BY_AVERAGE}\n"),
        "forgets the weights": ("    model.set_weights(first_weights)\n", ""),
        "no momentum": (", momentum=0.9", ""),
        "rate scaled": ("SGD(0.1", "SGD(0.1 * strategy.num_replicas_in_sync"),
        "with Adam": ("SGD(0.1, momentum=0.9)", "Adam(0.01)"),
        "drops the rest": ("batch(batch_size)", "batch(batch_size, drop_remainder=True)"),
        "shuffles": (".batch(batch", ".shuffle(99, seed=1).batch(batch"),
        "two passes": (".batch(batch", ".repeat(2).batch(batch"),
        "never updates": ("        optimizer.apply", "        0 and optimizer.apply"),
        "nobody adds": (APPLY, f"{APPLY}, skip_gradients_aggregation=True"),
        "added twice": (
            "        optimizer.apply",
            '        gradients = context.all_reduce("SUM", gradients)\n        optimizer.apply',
        ),
        "no logits": (
            CROSS_ENTROPY,
            "tf.keras.losses.SparseCategoricalCrossentropy(reduction='none')(labels, logits)",
        ),
        "no logits in a function": (
            CROSS_ENTROPY,
            "tf.keras.losses.sparse_categorical_crossentropy(labels, logits)",
        ),
        "literally two": (SCALED, "tf.add_n(model.losses) / 2"),
        "MEAN": ('"SUM", losses', '"MEAN", losses'),
        "penalty not logged": (
            f"{PENALTY}        gradients = tape.gradient(loss",
            f"{WITH_PENALTY}        gradients = tape.gradient(whole",
        ),
        "first replica's part": (REDUCE, "        return strategy.experimental_local_results(losses)[0]\n"),
        "nan logged": ("return loss", "return loss + 0 * tf.reduce_mean(per_image)"),
        "mean of all steps": (LOG, f"{LOG}\n    losses = [sum(losses) / len(losses)]"),
        "last loss": (LOG, f"{LOG}\n    losses = [0.0, *losses[1:]]"),
        "a global strategy": (SCOPE, f"    strategy = globals()['strategy']\n{SCOPE}"),
        "texts": (LOG, LOG.replace("float(train_step(*batch))", "f'{float(train_step(*batch)):.4f}'")),
        "large batches": (".batch(batch_size)", ".batch(2 * batch_size)"),
        "a global batch for each": (
            DISTRIBUTE,
            "    whole = batches\n    batches = strategy.distribute_datasets_from_function(lambda context: whole)\n",
        ),
        "small batches": (".batch(batch_size)", ".batch(batch_size // 2)"),
        "serial in the scope": (MODEL + OPTIMIZER, f"    {SERIAL}"),
        "whole batch on each": (DISTRIBUTE, ""),
        "optimizer built outside": (
            OPTIMIZER,
            f"{OPTIMIZER[4:]}    optimizer.build(model.trainable_variables)\n",
        ),
        "optimizer outside": (OPTIMIZER, OPTIMIZER[4:]),
        "one device": (SCOPE + MODEL + OPTIMIZER, SERIAL),
        "no scope": (SCOPE, "    if True:\n"),
        "step returns nothing": ("        return loss\n", ""),
        "not reduced": (REDUCE, "        return losses\n"),
        "losses not reduced": [
            (REDUCE, "        return losses\n"),
            (LOG, LOG.replace("float(train_step(*batch))", "train_step(*batch)")),
        ],
        "without run": ("strategy.run(replica_step, args=(images, labels))", "replica_step(images, labels)"),
        "no tuple": ("args=(images, labels)", "args=images"),
        "no cast": ("tf.cast(tf.size(labels), tf.float32)", "tf.size(labels)"),
        "len of a tensor": ("tf.size(labels)", "len(labels)"),
        "Keras's loss": (
            CROSS_ENTROPY,
            "tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)(labels, logits)",
        ),
        "list in a graph": (LOG, IN_GRAPH),
        "model alone": ("return model, losses", "return model"),
        "losses first": ("return model, losses", "return losses, model"),
        "one number": ("return model, losses", "return model, losses[-1]"),
    }
}


def with_a_keras_loss_and_a_graph_for_the_epoch(strategy, images, labels, first_weights, batch_size):
    with strategy.scope():
        model, optimizer = network(), tf.keras.optimizers.SGD(0.1, momentum=0.9)
        model.set_weights(first_weights)
        optimizer.build(model.trainable_variables)
        loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def step(batch, count):
        with tf.GradientTape() as tape:
            losses = loss_of(batch[1], model(batch[0], training=True))
            loss = tf.reduce_sum(losses) / tf.cast(count, tf.float32)
            loss += sum(model.losses) / strategy.num_replicas_in_sync
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    @tf.function
    def epoch(batches):
        logged = tf.TensorArray(tf.float32, 0, dynamic_size=True)
        for batch in batches:
            sizes = strategy.run(tf.size, args=(batch[1],))
            losses = strategy.run(step, args=(batch, strategy.reduce("SUM", sizes, axis=None)))
            logged = logged.write(logged.size(), strategy.reduce("SUM", losses, axis=None))
        return logged.stack()

    batches = tf.data.Dataset.from_tensor_slices((images, labels)).batch(batch_size)
    return model, epoch(strategy.experimental_distribute_dataset(batches))


def line_by_line(strategy, images, labels, first_weights, batch_size):
    with strategy.scope():
        model = network()
        optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
        model.set_weights(first_weights)
    losses = []

    def step(images, labels, count):
        with tf.GradientTape() as tape:
            per_image = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(images))
            loss = tf.nn.compute_average_loss(per_image, global_batch_size=count)
            loss = loss + tf.nn.scale_regularization_loss(model.losses[0])
        optimizer.minimize(loss, model.trainable_variables, tape)
        return loss

    batches = tf.data.Dataset.from_tensor_slices((images, labels)).batch(batch_size)
    for place, batch in enumerate(strategy.experimental_distribute_dataset(batches)):
        count = min(batch_size, len(labels) - place * batch_size)
        parts = strategy.run(step, args=(*batch, count))
        losses.append(sum(strategy.experimental_local_results(parts)).numpy())
    return model, losses


RIGHT = {"distributed": [[], with_a_keras_loss_and_a_graph_for_the_epoch, line_by_line]}
SAME_MISTAKES = (
    "divided by its own count",
    "shuffles",
    "no logits in a function",
    "a global batch for each",
    "without run",
    "optimizer outside",
)
