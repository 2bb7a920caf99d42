"""Known answers to `distributed` of lab 04, which start TensorFlow: the lab's own solution with other lines."""

from distlab import devices
from tests.distlab.labs.known_wrong import LabAnswers
from tests.distlab.labs.solutions import solution_with, solved_cells

# isort: split
import tensorflow as tf

ANSWERS, GIVEN = LabAnswers(), {"strategy": tf.distribute.MirroredStrategy(devices.at_least(2))}
KNOWN = {"tf": tf, **GIVEN}
exec(next(text for text in solved_cells("04").values() if "def serial" in text), KNOWN)
network = KNOWN["network"]


def answer(*changes):
    return solution_with("04", "distributed", *changes, **KNOWN)


SCOPE, MODEL = "    with strategy.scope():\n", "        model = network()\n"
OPTIMIZER = "        optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)\n"
MEAN, SCALED = "tf.reduce_sum(per_image) / count", "tf.nn.scale_regularization_loss(tf.add_n(model.losses))"
PENALTY = f"            loss += {SCALED}\n"
WITH_PENALTY = PENALTY.replace("loss +=", "whole = loss +")
LOSS = f"            loss = {MEAN}\n{PENALTY}"
DISTRIBUTE = "    batches = strategy.experimental_distribute_dataset(batches)\n"
SUM, LOG = '"SUM", losses', "losses = [float(train_step(*batch)) for batch in batches]"
CROSS_ENTROPY = "tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)"
OWN_COUNT = ('context.all_reduce("SUM", tf.cast(tf.size(labels), tf.float32))', "tf.cast(tf.size(labels), tf.float32)")
BY_AVERAGE = "tf.nn.compute_average_loss(per_image, global_batch_size=batch_size)"
REDUCE = '        return strategy.reduce("SUM", losses, axis=None)\n'
GRAPH = "losses = []\n\n    @tf.function\n    def epoch():\n"
IN_GRAPH = f"{GRAPH}        losses.append(train_step(images, labels))\n\n    epoch()"
LITERAL = "tf.add_n(model.losses) / 2"
APPLY = "zip(gradients, model.trainable_variables, strict=True)"
WEIGHTS_WRONG = {
    "own mean": ((MEAN, "tf.reduce_mean(per_image)"), "what is the sum of means?"),
    "divided by its own count": (OWN_COUNT, "what is the sum of means?"),
    "mean of means": ((MEAN, "tf.nn.compute_average_loss(per_image)"), "this is the mean of the replicas' means."),
    "size of a full batch": ((MEAN, BY_AVERAGE), "the last batch is divided by the size of a full one."),
    "size of a full part": ((MEAN, "tf.reduce_sum(per_image) / (batch_size // 2)"), "the images of a full part."),
    "mean count": (('all_reduce("SUM"', 'all_reduce("MEAN"'), "that a replica has on average."),
    "penalty by images": ((SCALED, "tf.add_n(model.losses) / count"), "the penalty is divided by the images."),
    "divided twice": ((MEAN, f"{MEAN} / 2"), "and then by the replicas again."),
    "a sum": ((MEAN, "tf.reduce_sum(per_image)"), "nothing divides the sum."),
    "penalty on each": ((SCALED, "tf.add_n(model.losses)"), "each replica adds the whole penalty."),
    "no penalty": ((PENALTY, ""), "the penalty is missing. `fit` adds"),
    "penalty divided twice": ((SCALED, f"{SCALED} / 2"), "What does `scale_regularization_loss` do?"),
    "no penalty, full batch": ((LOSS, f"            loss = {BY_AVERAGE}\n"), "Besides, the penalty is missing."),
    "forgets the weights": (("    model.set_weights(first_weights)\n", ""), "Does the model begin with the first"),
    "no momentum": ((", momentum=0.9", ""), "the optimizer is SGD(0.1, momentum=0);"),
    "rate scaled": (("SGD(0.1", "SGD(0.1 * strategy.num_replicas_in_sync"), "the optimizer is SGD(0.2, momentum=0.9);"),
    "with Adam": (("SGD(0.1, momentum=0.9)", "Adam(0.01)"), "the optimizer is Adam(0.01"),
    "drops the rest": (("batch(batch_size)", "batch(batch_size, drop_remainder=True)"), "smaller batch is missing."),
    "shuffles": ((".batch(batch", ".shuffle(99, seed=1).batch(batch"), "do the images keep their order"),
    "two passes": ((".batch(batch", ".repeat(2).batch(batch"), "there were 7 steps, and one pass has 4."),
    "never updates": (
        ("        optimizer.apply", "        0 and optimizer.apply"),
        "the first ones: nothing was trained.",
    ),
    "nobody adds": ((APPLY, f"{APPLY}, skip_gradients_aggregation=True"), "the copies differ: nobody adds"),
    "added twice": (
        (
            "        optimizer.apply",
            '        gradients = context.all_reduce("SUM", gradients)\n        optimizer.apply',
        ),
        "they are added twice.",
    ),
    "no logits": (
        (CROSS_ENTROPY, "tf.keras.losses.SparseCategoricalCrossentropy(reduction='none')(labels, logits)"),
        "takes the outputs for probabilities",
    ),
    "no logits in a function": (
        (CROSS_ENTROPY, "tf.keras.losses.sparse_categorical_crossentropy(labels, logits)"),
        "takes the outputs for probabilities",
    ),
    "literally two": ((SCALED, LITERAL), "they are right with two replicas only."),
}
LOSSES_WRONG = {
    "MEAN": ((SUM, '"MEAN", losses'), "which reduction do parts need?"),
    "penalty not logged": (
        (f"{PENALTY}        gradients = tape.gradient(loss", f"{WITH_PENALTY}        gradients = tape.gradient(whole"),
        "the penalty is in the training, but not in the losses.",
    ),
    "first replica's part": (
        (REDUCE, "        return strategy.experimental_local_results(losses)[0]\n"),
        "this is what one replica returns.",
    ),
    "nan logged": (("return loss", "return loss + 0 * tf.reduce_mean(per_image)"), "what is the mean of nothing?"),
    "mean of all steps": ((LOG, f"{LOG}\n    losses = [sum(losses) / len(losses)]"), "one pass has 4 steps."),
    "last loss": ((LOG, f"{LOG}\n    losses = [0.0, *losses[1:]]"), "the first loss is 0, and"),
}
OTHERS_WRONG = {
    "a global strategy": ((SCOPE, f"    strategy = globals()['strategy']\n{SCOPE}"), "uses that one: where does", 0.75),
    "texts": ((LOG, LOG.replace("float(train_step(*batch))", "f'{float(train_step(*batch)):.4f}'")), "are texts,", 0.0),
    "large batches": ((".batch(batch_size)", ".batch(2 * batch_size)"), "are 2 steps, and one pass has 4.", 0.25),
    "a global batch for each": (
        (
            DISTRIBUTE,
            "    whole = batches\n    batches = strategy.distribute_datasets_from_function(lambda context: whole)\n",
        ),
        "are 2 steps, and one pass has 4.",
        0.25,
    ),
    "small batches": ((".batch(batch_size)", ".batch(batch_size // 2)"), "are 7 steps, and one pass has 4.", 0.25),
    "serial in the scope": (
        (f"{MODEL}{OPTIMIZER}", "        return serial(images, labels, first_weights, batch_size)\n"),
        "The step must run on each replica,",
        0.0,
    ),
    "whole batch on each": ((DISTRIBUTE, ""), "Every replica gets the whole batch.", 0.75),
    "optimizer built outside": (
        (OPTIMIZER, f"{OPTIMIZER[4:]}    optimizer.build(model.trainable_variables)\n"),
        "The optimizer's variables exist once",
        0.25,
    ),
    "optimizer outside": ((OPTIMIZER, OPTIMIZER[4:]), "The optimizer's variables exist once", 0.75),
    "one device": (
        (f"{SCOPE}{MODEL}{OPTIMIZER}", "    return serial(images, labels, first_weights, batch_size)\n"),
        "The model's variables exist once",
        0.0,
    ),
    "no scope": ((SCOPE, "    if True:\n"), "A variable of the model does not belong to the strategy.", 0.0),
    "step returns nothing": (("        return loss\n", ""), "What each replica returns is None.", 0.0),
    "not reduced": ((REDUCE, "        return losses\n"), "A `PerReplica` value, which has a part", 0.0),
    "losses not reduced": (
        (REDUCE, "        return losses\n"),
        (LOG, LOG.replace("float(train_step(*batch))", "train_step(*batch)")),
        "The losses are `PerReplica` values",
        0.0,
    ),
    "without run": (
        ("strategy.run(replica_step, args=(images, labels))", "replica_step(images, labels)"),
        "A `PerReplica` value, which has a part",
        0.0,
    ),
    "no tuple": (("args=(images, labels)", "args=images"), "takes the arguments of the step as one tuple", 0.0),
    "no cast": (("tf.cast(tf.size(labels), tf.float32)", "tf.size(labels)"), "A number of images is an integer", 0.0),
    "len of a tensor": (("tf.size(labels)", "len(labels)"), "Which operation counts?", 0.0),
    "Keras's loss": (
        (CROSS_ENTROPY, "tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)(labels, logits)"),
        "Which reduction leaves that to you?",
        0.0,
    ),
    "list in a graph": (
        (
            LOG,
            IN_GRAPH,
        ),
        "The losses are placeholders of a graph",
        0.0,
    ),
    "model alone": (("return model, losses", "return model"), "returns two things: the model and", 0.0),
    "losses first": (("return model, losses", "return losses, model"), "is not a Keras model.", 0.0),
    "one number": (("return model, losses", "return model, losses[-1]"), "is not a list of numbers", 0.0),
}
for share, table in ((0.5, WEIGHTS_WRONG), (0.75, LOSSES_WRONG)):
    for title, (change, words) in table.items():
        ANSWERS.wrong("distributed", title, answer(change), words, share=share)
for title, (*changes, words, share) in OTHERS_WRONG.items():
    ANSWERS.wrong("distributed", title, answer(*changes), words, share=share)


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


ANSWERS.right("distributed", with_a_keras_loss_and_a_graph_for_the_epoch)


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


ANSWERS.right("distributed", line_by_line)


SAME_MISTAKES = (
    "divided by its own count",
    "shuffles",
    "no logits in a function",
    "a global batch for each",
    "without run",
    "optimizer outside",
)
SOLUTIONS = {"distributed": answer()}
