"""Known answers to `mirrored` of lab 03, which start TensorFlow: the lab's own solution with other lines."""

from distlab import devices, models
from tests.distlab.labs.known_wrong import LabAnswers, WrongAnswer
from tests.distlab.labs.solutions import solution_with

# isort: split
import tensorflow as tf

ANSWERS, GIVEN = LabAnswers(), {"strategy": tf.distribute.MirroredStrategy(devices.at_least(2))}


def answer(*changes):
    return solution_with("03", "mirrored", *changes, tf=tf, models=models)


SCOPE, MODEL = "    with strategy.scope():\n", "    model = models.mlp(dropout=0.0)\n"
OWN_SCOPE = SCOPE.replace("strategy", 'tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])')
LOSS, RATE = "tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)", "SGD(0.1)"
SIZE, BATCH = "images_per_replica * strategy.num_replicas_in_sync", "batch(global_batch_size)"
WRONG = {
    "without scope": (SCOPE, "    if True:\n", "The weights exist once, on one device: nothing is mirrored."),
    "only compile in the scope": (f"{SCOPE}    {MODEL}", f"{MODEL}{SCOPE}", "What must be created inside the scope?"),
    "batch of one replica": (SIZE, "images_per_replica", "what batch(...) says. Which batch size is that?"),
    "multiplied twice": (SIZE, f"2 * {SIZE}", "one multiplication too many."),
    "literally two replicas": (SIZE, "images_per_replica * 2", "With a strategy of one replica: Each replica gets"),
    "misremembers a name": ("num_replicas_in_sync", "num_replicas", "`mirrored` raises AttributeError"),
    "drops the rest": (BATCH, "batch(global_batch_size, drop_remainder=True)", "the last, smaller batch is dropped."),
    "shuffles": (BATCH, f"shuffle(100, seed=1).{BATCH}", "The images come in another order than in the serial program"),
    "returns the model alone": ("return model, batches", "return model", "returns two things, the model and the"),
    "a strategy of its own": (SCOPE, OWN_SCOPE, "A function that gets a strategy uses that one: where does another"),
}
HALF_RIGHT = {
    "rate scaled": (RATE, "SGD(0.1 * strategy.num_replicas_in_sync)", "Is something summed or scaled that is already"),
    "rate divided": (RATE, "SGD(0.1 / strategy.num_replicas_in_sync)", "Is something divided twice?"),
    "with Adam": (RATE, "Adam(0.001)", "The optimizer is Adam; the serial program uses another one."),
    "two epochs": ("verbose=0", "verbose=0, epochs=2", "updates, and one pass over these batches has"),
    "forgets the weights": (
        "    model.set_weights(first_weights)\n",
        "",
        "Does the model begin with the first weights",
    ),
    "with dropout": ("dropout=0.0", "dropout=0.2", "The serial program has no dropout."),
    "loss by name": (LOSS, '"sparse_categorical_crossentropy"', "Keep the serial program's loss."),
    "fit gets arrays": ("(batches, ", "(images, labels, global_batch_size, ", "what does it give to `fit`?"),
}
for share, table in ((0.0, WRONG), (0.5, HALF_RIGHT)):
    for title, (before, after, words) in table.items():
        ANSWERS.wrong_answers["mirrored"].append(WrongAnswer(title, answer((before, after)), (), (words,), share))
IN_STEPS = ("verbose=0", "steps_per_epoch=-(-len(images) // global_batch_size), verbose=0")
mirrored = answer((BATCH, f"repeat().{BATCH}"), IN_STEPS)["mirrored"]
ANSWERS.wrong_value("mirrored", "repeats first", mirrored, "Which is first, `batch` or `repeat`?")
ANSWERS.right_answers["mirrored"].append(("repeats", answer((BATCH, f"{BATCH}.repeat()"), IN_STEPS)))


@ANSWERS.right("mirrored")
def with_a_loop_of_its_own(strategy, images, labels, first_weights, images_per_replica):
    size = images_per_replica * strategy.num_replicas_in_sync
    with strategy.scope():
        model, optimizer = models.mlp(0.0), tf.keras.optimizers.SGD(0.1)
        model.set_weights(first_weights)
        optimizer.build(model.trainable_variables)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def step(images, labels):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(loss_of(labels, model(images, training=True))) / size
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    whole_step = tf.function(lambda batch: strategy.run(step, args=batch))
    batches = tf.data.Dataset.from_tensor_slices((images, labels)).batch(size)
    for batch in strategy.experimental_distribute_dataset(batches):
        whole_step(batch)
    return model, batches


SOLUTIONS = {"mirrored": answer()}
