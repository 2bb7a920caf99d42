"""Known answers to `mirrored` of lab 03; importing this starts TensorFlow, so it is done in a process of its own."""

from distlab import devices, models
from tests.distlab.labs.known_wrong import LabAnswers

# isort: split
import tensorflow as tf

ANSWERS = LabAnswers()
wrong, right = ANSWERS.wrong, ANSWERS.right

strategy = tf.distribute.MirroredStrategy(devices.at_least(2))


def compiled(rate=0.1, dropout=0.0, from_logits=True, optimizer=tf.keras.optimizers.SGD):
    model = models.mlp(dropout)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=from_logits)
    model.compile(optimizer(rate), loss)
    return model


def batches_of(images, labels, size, **options):
    return tf.data.Dataset.from_tensor_slices((images, labels)).batch(size, **options)


def solution(strategy, images, labels, first_weights, images_per_replica):
    with strategy.scope():
        model = compiled()
    model.set_weights(first_weights)
    batches = batches_of(images, labels, images_per_replica * strategy.num_replicas_in_sync)
    model.fit(batches, shuffle=False, verbose=0)
    return model, batches


def serial(images, labels, first_weights, batch_size):
    model = compiled()
    model.set_weights(first_weights)
    batches = batches_of(images, labels, batch_size)
    model.fit(batches, shuffle=False, verbose=0)
    return model, batches


@wrong("mirrored", "The weights exist once, on one device: nothing is mirrored. Where must they be created?")
def without_scope(strategy, images, labels, first_weights, images_per_replica):
    return serial(images, labels, first_weights, 2 * images_per_replica)


@wrong("mirrored", "What must be created inside the scope?")
def only_compile_in_the_scope(strategy, images, labels, first_weights, images_per_replica):
    model = models.mlp(0.0)
    model.set_weights(first_weights)
    with strategy.scope():
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(tf.keras.optimizers.SGD(0.1), loss)
    batches = batches_of(images, labels, images_per_replica * strategy.num_replicas_in_sync)
    model.fit(batches, verbose=0)
    return model, batches


@wrong("mirrored", "the strategy divides what batch(...) says. Which batch size is that?")
def batch_of_one_replica(strategy, images, labels, first_weights, images_per_replica):
    with strategy.scope():
        model = compiled()
    model.set_weights(first_weights)
    batches = batches_of(images, labels, images_per_replica)
    model.fit(batches, verbose=0)
    return model, batches


@wrong("mirrored", "one multiplication too many.")
def multiplied_twice(strategy, images, labels, first_weights, images_per_replica):
    return solution(strategy, images, labels, first_weights, 2 * images_per_replica)


@wrong("mirrored", "Is something summed or scaled that is already a mean?", share=0.5)
def learning_rate_scaled(strategy, images, labels, first_weights, images_per_replica):
    with strategy.scope():
        model = compiled(0.1 * strategy.num_replicas_in_sync)
    model.set_weights(first_weights)
    batches = batches_of(images, labels, images_per_replica * strategy.num_replicas_in_sync)
    model.fit(batches, verbose=0)
    return model, batches


@wrong("mirrored", "Each step is too short by the number of replicas. Is something divided twice?", share=0.5)
def learning_rate_divided(strategy, images, labels, first_weights, images_per_replica):
    with strategy.scope():
        model = compiled(0.1 / strategy.num_replicas_in_sync)
    model.set_weights(first_weights)
    batches = batches_of(images, labels, images_per_replica * strategy.num_replicas_in_sync)
    model.fit(batches, verbose=0)
    return model, batches


@wrong("mirrored", "`mirrored` raises", "AttributeError", "num_replicas")
def misremembers_a_name(strategy, images, labels, first_weights, images_per_replica):
    batches = batches_of(images, labels, images_per_replica * strategy.num_replicas)
    with strategy.scope():
        model = compiled()
    model.set_weights(first_weights)
    model.fit(batches, verbose=0)
    return model, batches


@wrong("mirrored", "; the serial program uses another one.", "Adam", share=0.5)
def with_adam(strategy, images, labels, first_weights, images_per_replica):
    with strategy.scope():
        model = compiled(0.001, optimizer=tf.keras.optimizers.Adam)
    model.set_weights(first_weights)
    batches = batches_of(images, labels, images_per_replica * strategy.num_replicas_in_sync)
    model.fit(batches, verbose=0)
    return model, batches


@wrong("mirrored", "updates, and one pass over these batches has", share=0.5)
def two_epochs(strategy, images, labels, first_weights, images_per_replica):
    model, batches = solution(strategy, images, labels, first_weights, images_per_replica)
    model.fit(batches, verbose=0)
    return model, batches


@wrong(
    "mirrored",
    "Does the model begin with the first weights that the function gets, and is the learning rate the same?",
    share=0.5,
)
def forgets_the_first_weights(strategy, images, labels, first_weights, images_per_replica):
    with strategy.scope():
        model = compiled()
    batches = batches_of(images, labels, images_per_replica * strategy.num_replicas_in_sync)
    model.fit(batches, verbose=0)
    return model, batches


@wrong("mirrored", "images are never seen: the last, smaller batch is dropped.")
def drops_the_rest(strategy, images, labels, first_weights, images_per_replica):
    with strategy.scope():
        model = compiled()
    model.set_weights(first_weights)
    size = images_per_replica * strategy.num_replicas_in_sync
    batches = batches_of(images, labels, size, drop_remainder=True)
    model.fit(batches, verbose=0)
    return model, batches


@wrong("mirrored", "The images come in another order than in the serial program, so the results cannot be compared.")
def shuffles(strategy, images, labels, first_weights, images_per_replica):
    with strategy.scope():
        model = compiled()
    model.set_weights(first_weights)
    batches = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(100, seed=1)
    batches = batches.batch(images_per_replica * strategy.num_replicas_in_sync)
    model.fit(batches, verbose=0)
    return model, batches


@wrong("mirrored", "The serial program has no dropout.", share=0.5)
def with_dropout(strategy, images, labels, first_weights, images_per_replica):
    with strategy.scope():
        model = compiled(dropout=0.2)
    model.set_weights(first_weights)
    batches = batches_of(images, labels, images_per_replica * strategy.num_replicas_in_sync)
    model.fit(batches, verbose=0)
    return model, batches


@wrong("mirrored", "Keep the serial program's loss.", share=0.5)
def loss_by_name(strategy, images, labels, first_weights, images_per_replica):
    with strategy.scope():
        model = models.mlp(0.0)
        model.compile(tf.keras.optimizers.SGD(0.1), "sparse_categorical_crossentropy")
    model.set_weights(first_weights)
    batches = batches_of(images, labels, images_per_replica * strategy.num_replicas_in_sync)
    model.fit(batches, verbose=0)
    return model, batches


@wrong("mirrored", "`mirrored` returns two things, the model and the batches it was trained on.")
def returns_the_model_alone(strategy, images, labels, first_weights, images_per_replica):
    return solution(strategy, images, labels, first_weights, images_per_replica)[0]


@wrong("mirrored", "one multiplication too many.", "With a strategy of one replica")
def literally_two_replicas(strategy, images, labels, first_weights, images_per_replica):
    with strategy.scope():
        model = compiled()
    model.set_weights(first_weights)
    batches = batches_of(images, labels, images_per_replica * 2)
    model.fit(batches, verbose=0)
    return model, batches


@wrong(
    "mirrored",
    "copies. A function that gets a strategy uses that one: where does another come from?",
    "With a strategy of one replica",
)
def a_strategy_of_its_own(strategy, images, labels, first_weights, images_per_replica):
    own = tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])
    with own.scope():
        model = compiled()
    model.set_weights(first_weights)
    batches = batches_of(images, labels, images_per_replica * strategy.num_replicas_in_sync)
    model.fit(batches, verbose=0)
    return model, batches


@wrong("mirrored", "The serial run keeps the order: what does it give to `fit`?", share=0.5)
def fit_gets_arrays(strategy, images, labels, first_weights, images_per_replica):
    with strategy.scope():
        model = compiled()
    model.set_weights(first_weights)
    size = images_per_replica * strategy.num_replicas_in_sync
    model.fit(images, labels, batch_size=size, verbose=0)
    return model, batches_of(images, labels, size)


@wrong("mirrored", "the next pass begins within a batch. Which is first, `batch` or `repeat`?")
def repeats_before_it_batches(strategy, images, labels, first_weights, images_per_replica):
    with strategy.scope():
        model = compiled()
    model.set_weights(first_weights)
    size = images_per_replica * strategy.num_replicas_in_sync
    batches = tf.data.Dataset.from_tensor_slices((images, labels)).repeat().batch(size)
    model.fit(batches, steps_per_epoch=-(-len(images) // size), verbose=0)
    return model, batches


@right("mirrored")
def repeated_for_a_number_of_steps(strategy, images, labels, first_weights, images_per_replica):
    with strategy.scope():
        model = compiled()
    model.set_weights(first_weights)
    size = images_per_replica * strategy.num_replicas_in_sync
    batches = batches_of(images, labels, size).repeat()
    model.fit(batches, steps_per_epoch=-(-len(images) // size), verbose=0)
    return model, batches


@right("mirrored")
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
    batches = strategy.experimental_distribute_dataset(batches_of(images, labels, size))
    for batch in batches:
        whole_step(batch)
    return model, batches


GIVEN = {"strategy": strategy}
SOLUTIONS = {"mirrored": {"mirrored": solution}}
