"""Known answers to the functions of lab 09, which are not judged by programs; importing this starts TensorFlow.

Horovod itself is not needed: `hvd` is the lab's fake.
"""

import distlab  # before TensorFlow: it selects tf-keras

# isort: split
import numpy as np
import tensorflow as tf

from distlab import data
from distlab.labs.fake_horovod import hvd
from tests.distlab.labs.known_wrong import LabAnswers, WrongAnswer

assert distlab
ANSWERS = LabAnswers()
mean_loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


# The solutions


def start():
    hvd.init()
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")


def shuffled(options, epoch, own=()):
    images, labels = data.load(options.dataset).train
    order = np.random.default_rng([options.seed, epoch, *own]).permutation(options.images)
    return tf.data.Dataset.from_tensor_slices((order, images[order], labels[order]))


def dealt(samples, options, size=1):
    return samples.batch(options.batch * size, drop_remainder=True).repeat()


def batches(options, epoch):
    return dealt(shuffled(options, epoch).shard(hvd.size(), hvd.rank()), options)


def steps_per_epoch(options):
    return options.images // (options.batch * hvd.size())


def make_optimizer(options):
    return tf.keras.optimizers.SGD(options.learning_rate * hvd.size(), momentum=0.9)


def everything(state):
    return [*state.model.variables, *state.optimizer.variables, state.epochs_done]


def restore(options, state):
    newest = tf.train.latest_checkpoint(options.folder)
    if not newest:
        raise SystemExit(f"There is no checkpoint in {options.folder} to go on from.")
    state.restore(newest).assert_existing_objects_matched()


def begin(options, state):
    if options.resume and hvd.rank() == 0:
        restore(options, state)
    hvd.broadcast_variables(everything(state), root_rank=0)


@tf.function(autograph=False)  # it has no loop or condition that TensorFlow would have to translate
def step(state, images, labels):
    with tf.GradientTape() as tape:
        loss = mean_loss(labels, state.model(images, training=True))
    tape = hvd.DistributedGradientTape(tape)
    gradients = tape.gradient(loss, state.model.trainable_variables)
    state.optimizer.apply_gradients(zip(gradients, state.model.trainable_variables, strict=True))
    return loss


def save(options, state):
    if options.folder and hvd.rank() == 0:
        state.save(str(options.folder / "checkpoint"))


FEEDING = {"batches": batches, "steps_per_epoch": steps_per_epoch}
TRAINING = {"make_optimizer": make_optimizer, "begin": begin, "step": step, "save": save}
SOLUTIONS = {"start": {"start": start}, "feeding": FEEDING, "training": TRAINING}
GIVEN = {"hvd": hvd}
SHARES = {"start": 0.5, "feeding": 0.5, "training": 0.75}


def wrong(exercise, name, *words, share=None):
    """The decorated function takes the place of `name` in a solution that is right otherwise."""

    def add(function):
        title = getattr(function, "__name__", None) or function.python_function.__name__
        earned = SHARES[exercise] if share is None else share
        namespace = SOLUTIONS[exercise] | {name: function}
        ANSWERS.wrong_answers[exercise].append(WrongAnswer(title, namespace, (), words, earned))
        return function

    return add


def right(exercise, **functions):
    ANSWERS.right_answers[exercise].append((" and ".join(functions), SOLUTIONS[exercise] | functions))


# 1 initialise, 2 pin the device


@wrong(
    "start",
    "start",
    "before the processes have met.",
    "the number that chooses the GPU is not known yet.",
    "1 initialise",
    share=0,
)
def without_init():
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")


@wrong("start", "start", "asks for a GPU that its host does not have:")
def pinned_by_rank():
    hvd.init()
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        tf.config.set_visible_devices(gpus[hvd.rank()], "GPU")


@wrong("start", "start", "every rank still sees all GPUs of its host.")
def not_pinned():
    hvd.init()


@wrong("start", "start", "all ranks of a host take the same GPU.")
def first_gpu_for_all():
    hvd.init()
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        tf.config.set_visible_devices(gpus[0], "GPU")


@wrong("start", "start", "where there is no GPU at all, it raises", "IndexError")
def fails_without_gpus():
    hvd.init()
    gpus = tf.config.list_physical_devices("GPU")
    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")


@wrong("start", "start", "a rank says that it needs several GPUs. One process, one device.")
def shows_all():
    hvd.init()
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    if gpus:
        tf.config.set_visible_devices(gpus, "GPU")


@wrong("start", "start", "on each host, take the GPUs", "take the GPUs [0, 0, 0, 1, 1, 1]")
def pinned_by_host():
    hvd.init()
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        tf.config.set_visible_devices(gpus[hvd.cross_rank()], "GPU")


@wrong("start", "start", "that is no GPU. Which kind of device is the list made of?")
def every_device():
    hvd.init()
    devices = tf.config.list_physical_devices()
    if devices:
        tf.config.set_visible_devices(devices[hvd.local_rank()], "GPU")


@wrong("start", "start", "of GPUs: then every other device is hidden, the CPU too.")
def without_the_type():
    hvd.init()
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        tf.config.set_visible_devices(gpus[hvd.local_rank()])


@wrong("start", "start", "dealt out to 2 hosts one by one, the ranks take the GPUs")
def by_rank_and_gpus():
    hvd.init()
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        tf.config.set_visible_devices(gpus[hvd.rank() % len(gpus)], "GPU")


def start_with_a_slice():
    if not hvd.is_initialized():
        hvd.init()
    gpus = tf.config.experimental.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    place = hvd.local_rank()
    tf.config.experimental.set_visible_devices(gpus[place : place + 1], "GPU")


right("start", start=start_with_a_slice)


# 7 shard the data, 8 steps per epoch


@wrong("feeding", "batches", "all ranks get the same samples.")
def not_sharded(options, epoch):
    return dealt(shuffled(options, epoch), options)


@wrong("feeding", "batches", "samples, but each host gets the same ones as the other.")
def sharded_by_local_rank(options, epoch):
    return dealt(shuffled(options, epoch).shard(hvd.local_size(), hvd.local_rank()), options)


@wrong("feeding", "batches", "images in a step. options.batch is the batch of one rank.")
def sharded_after_global_batches(options, epoch):
    return dealt(shuffled(options, epoch), options, hvd.size()).shard(hvd.size(), hvd.rank())


@wrong("feeding", "batches", "images in a step: options.batch,")
def batch_divided(options, epoch):
    samples = shuffled(options, epoch).shard(hvd.size(), hvd.rank())
    return samples.batch(options.batch // hvd.size(), drop_remainder=True).repeat()


@wrong("feeding", "batches", "one rank. From how many different orders do the ranks take?")
def own_order_before_sharding(options, epoch):
    return dealt(shuffled(options, epoch, [hvd.rank()]).shard(hvd.size(), hvd.rank()), options)


@wrong("feeding", "batches", "raises", "raises InvalidArgumentError")
def arguments_of_shard_swapped(options, epoch):
    return dealt(shuffled(options, epoch).shard(hvd.rank(), hvd.size()), options)


@wrong("feeding", "batches", "has the same order; the serial program shuffles each epoch.")
def every_epoch_alike(options, epoch):
    return dealt(shuffled(options, 0).shard(hvd.size(), hvd.rank()), options)


def parts_of(options, epoch, images_in=None, labels_in=None, count=None):
    images, labels = data.load(options.dataset).train
    order = np.random.default_rng([options.seed, epoch]).permutation(count or options.images)
    images = images[order if images_in is None else images_in(images, order)]
    labels = labels[order if labels_in is None else labels_in(labels, order)]
    samples = tf.data.Dataset.from_tensor_slices((order, images, labels))
    return dealt(samples.shard(hvd.size(), hvd.rank()), options)


@wrong("feeding", "batches", "samples: what has been put in another order, and what not?")
def labels_not_permuted(options, epoch):
    return parts_of(options, epoch, labels_in=lambda labels, order: np.arange(len(order)))


@wrong("feeding", "batches", "samples: what has been put in another order, and what not?")
def one_image_for_all(options, epoch):
    return parts_of(options, epoch, images_in=lambda images, order: np.zeros(len(order), int))


@wrong("feeding", "batches", "comes, and an epoch has only the samples 0 to")
def all_images_of_the_data_set(options, epoch):
    return parts_of(options, epoch, count=len(data.load(options.dataset).train.images))


@wrong("feeding", "batches", "fill one. How many images does the batch of one rank have?")
def global_batches_of_a_shard(options, epoch):
    return dealt(shuffled(options, epoch).shard(hvd.size(), hvd.rank()), options, hvd.size())


@wrong("feeding", "steps_per_epoch", ". A rank that makes one step more waits for the others.")
def steps_of_its_own_samples(options):
    return len(range(hvd.rank(), options.images, hvd.size())) // options.batch


@wrong("feeding", "steps_per_epoch", ": so the ranks together go through the data several times.")
def steps_not_divided(options):
    return options.images // options.batch


@wrong("feeding", "steps_per_epoch", ": that would be right if there were one host.")
def steps_by_local_size(options):
    return options.images // (options.batch * hvd.local_size())


@wrong("feeding", "steps_per_epoch", "not filled, and the serial program leaves such a step out.")
def steps_rounded_up(options):
    return -(-options.images // (options.batch * hvd.size()))


@wrong("feeding", "steps_per_epoch", ": it counts steps, so it is a whole number.")
def steps_as_a_float(options):
    return options.images / options.batch / hvd.size()


@wrong("feeding", "steps_per_epoch", ": more ranks, and more steps?")
def steps_multiplied(options):
    return options.images // options.batch * hvd.size()


@wrong("feeding", "steps_per_epoch", ". A rank that makes one step more waits for the others.")
def the_rest_to_the_first_rank(options):
    return options.images // (options.batch * hvd.size()) + (hvd.rank() == 0)


def batches_in_one_piece(options, epoch):
    images, labels = data.load(options.dataset).train
    order = np.random.default_rng([options.seed, epoch]).permutation(options.images)
    own = np.array_split(order, hvd.size())[hvd.rank()]
    return dealt(tf.data.Dataset.from_tensor_slices((own, images[own], labels[own])), options)


def batches_then_shard(options, epoch):
    return dealt(shuffled(options, epoch), options).shard(hvd.size(), hvd.rank())


right(
    "feeding",
    batches=batches_in_one_piece,
    steps_per_epoch=lambda options: options.images // options.batch // hvd.size(),
)


# 3 scale the learning rate


def rate_of(factor):
    return lambda options: tf.keras.optimizers.SGD(options.learning_rate * factor(), momentum=0.9)


for title, factor, hint in (
    ("not_scaled", lambda: 1, "ranks: it is still that of one rank."),
    ("scaled_by_local_size", hvd.local_size, "ranks: it is scaled by what one host has, and there are"),
    ("scaled_by_rank", hvd.rank, "the ranks have different rates,"),
    ("scaled_by_hosts", hvd.cross_size, "ranks: it is scaled by the number of hosts,"),
    ("six_typed_in", lambda: 6, "is that for one rank: is a number typed in?"),
    ("rate_divided", lambda: 1 / hvd.size(), "of more samples allows a longer step, not a shorter one."),
    ("scaled_by_the_root", lambda: hvd.size() ** 0.5, "the square root is another rule"),
):
    make_optimizer_wrongly = rate_of(factor)
    make_optimizer_wrongly.__name__ = title
    wrong("training", "make_optimizer", hint, "3 scale")(make_optimizer_wrongly)


@wrong("training", "make_optimizer", "the serial program has SGD with momentum, this is another")
def momentum_lost(options):
    return tf.keras.optimizers.SGD(options.learning_rate * hvd.size())


# 4 wrap the tape


def applied(state, images, labels, change, tape_of=lambda tape: tape):
    with tf.GradientTape() as tape:
        loss = mean_loss(labels, state.model(images, training=True))
    gradients = change(tape_of(tape).gradient(loss, state.model.trainable_variables))
    state.optimizer.apply_gradients(zip(gradients, state.model.trainable_variables, strict=True))
    return loss


@wrong("training", "step", "of its own samples. Which object is asked for them?", "4 wrap")
def not_wrapped(state, images, labels):
    return applied(state, images, labels, lambda gradients: gradients)


@wrong("training", "step", "not averaged: the step is too long, by the number of ranks.")
def summed(state, images, labels):
    return applied(
        state, images, labels, lambda gradients: [hvd.allreduce(gradient, op=hvd.Sum) for gradient in gradients]
    )


@wrong("training", "step", "the average is divided once more.")
def divided_twice(state, images, labels):
    return applied(
        state,
        images,
        labels,
        lambda gradients: [gradient / hvd.size() for gradient in gradients],
        hvd.DistributedGradientTape,
    )


@wrong("training", "step", "do not come from the wrapped one: when is it asked?")
def wrapped_too_late(state, images, labels):
    with tf.GradientTape() as tape:
        loss = mean_loss(labels, state.model(images, training=True))
    gradients = tape.gradient(loss, state.model.trainable_variables)
    hvd.DistributedGradientTape(tape)
    state.optimizer.apply_gradients(zip(gradients, state.model.trainable_variables, strict=True))
    return loss


@wrong("training", "step", "raises", "raises UnboundLocalError")
def wrapped_before_there_is_one(state, images, labels):
    tape = hvd.DistributedGradientTape(tape)  # noqa: F821, F841


@wrong("training", "step", ". Who makes this call, and who does not?", "which never come")
def averages_on_rank_0_alone(state, images, labels):
    return applied(
        state,
        images,
        labels,
        lambda gradients: gradients,
        lambda tape: hvd.DistributedGradientTape(tape) if hvd.rank() == 0 else tape,
    )


@wrong("training", "step", "the weights are still the first ones: nothing was applied.")
def never_applied(state, images, labels):
    with tf.GradientTape() as tape:
        loss = mean_loss(labels, state.model(images, training=True))
    hvd.DistributedGradientTape(tape).gradient(loss, state.model.trainable_variables)
    return loss


@wrong("training", "step", "which goes on from step to step. Who changes the weights?")
def without_the_optimizer(state, images, labels):
    with tf.GradientTape() as tape:
        loss = mean_loss(labels, state.model(images, training=True))
    variables = state.model.trainable_variables
    gradients = hvd.DistributedGradientTape(tape).gradient(loss, variables)
    for variable, gradient in zip(variables, gradients, strict=True):
        variable.assign_sub(state.optimizer.learning_rate * gradient)
    return loss


@wrong("training", "step", "returns no number: the loss before the step is asked for.")
def returns_nothing(state, images, labels):
    applied(state, images, labels, lambda gradients: gradients, hvd.DistributedGradientTape)


@wrong("training", "step", "the weights are right; the loss is")
def the_loss_afterwards(state, images, labels):
    applied(state, images, labels, lambda gradients: gradients, hvd.DistributedGradientTape)
    return mean_loss(labels, state.model(images, training=True))


# 5 broadcast the variables


@wrong("training", "begin", "each rank still has its own first weights.", "5 broadcast")
def no_broadcast(options, state):
    if options.resume and hvd.rank() == 0:
        restore(options, state)


@wrong("training", "begin", "the momentum is not: a step needs more than the model.")
def weights_alone(options, state):
    if options.resume and hvd.rank() == 0:
        restore(options, state)
    hvd.broadcast_variables(state.model.variables, root_rank=0)


@wrong("training", "begin", "weights and momentum are equal, but the epochs that are done are")
def epochs_forgotten(options, state):
    if options.resume and hvd.rank() == 0:
        restore(options, state)
    hvd.broadcast_variables([*state.model.variables, *state.optimizer.variables], root_rank=0)


@wrong("training", "begin", "the others its first weights. In which order was that?")
def broadcast_before_the_checkpoint(options, state):
    hvd.broadcast_variables(everything(state), root_rank=0)
    if options.resume and hvd.rank() == 0:
        restore(options, state)


@wrong("training", "begin", "checkpoint, and nobody tells the others: they start again.")
def broadcast_only_at_the_first_start(options, state):
    if options.resume:
        if hvd.rank() == 0:
            restore(options, state)
    else:
        hvd.broadcast_variables(everything(state), root_rank=0)


@wrong("training", "begin", "ends the program. Which ranks must find a checkpoint?")
def every_rank_reads(options, state):
    if options.resume:
        restore(options, state)
    hvd.broadcast_variables(everything(state), root_rank=0)


@wrong("training", "begin", ". Who makes this call, and who does not?", "broadcast_variables", "which never come")
def rank_0_broadcasts_alone(options, state):
    if hvd.rank() == 0:
        if options.resume:
            restore(options, state)
        hvd.broadcast_variables(everything(state), root_rank=0)


@wrong("training", "begin", ". Which rank reads the checkpoint and writes it?", "all have the weights of rank 5")
def last_rank_is_the_source(options, state):
    if options.resume and hvd.rank() == 0:
        restore(options, state)
    hvd.broadcast_variables(everything(state), root_rank=hvd.size() - 1)


@wrong("training", "begin", "0 does not have the weights of its checkpoint afterwards.")
def never_reads(options, state):
    hvd.broadcast_variables(everything(state), root_rank=0)


@wrong("training", "begin", "has the weights of the checkpoint that lies in the folder.")
def always_resumes(options, state):
    newest = tf.train.latest_checkpoint(options.folder) if hvd.rank() == 0 else None
    if newest:
        state.restore(newest)
    hvd.broadcast_variables(everything(state), root_rank=0)


# 6 checkpoint on rank 0


@wrong("training", "save", "all ranks write. In one folder they would disturb each other.", "6 checkpoint")
def all_save(options, state):
    if options.folder:
        state.save(str(options.folder / "checkpoint"))


@wrong("training", "save", ": a run that goes on needs all of `state`.", "lacks the momentum and epochs_done")
def saves_the_model_alone(options, state):
    if options.folder and hvd.rank() == 0:
        tf.train.Checkpoint(model=state.model).save(str(options.folder / "checkpoint"))


@wrong("training", "save", "the folder that rank 0 wrote to, and `begin` looks there.")
def saves_the_weights_alone(options, state):
    if options.folder and hvd.rank() == 0:
        state.model.save_weights(str(options.folder / "model.weights.h5"))


@wrong("training", "save", "write: one on each host.")
def one_saves_on_each_host(options, state):
    if options.folder and hvd.local_rank() == 0:
        state.save(str(options.folder / "checkpoint"))


@wrong("training", "save", ". Who makes this call, and who does not?")
def saves_with_a_collective(options, state):
    if options.folder and hvd.rank() == 0:
        hvd.broadcast_variables(everything(state), root_rank=0)
        state.save(str(options.folder / "checkpoint"))


@wrong("training", "save", "nobody has written a checkpoint.")
def nobody_saves(options, state):
    if options.folder and hvd.rank() == hvd.size():
        state.save(str(options.folder / "checkpoint"))


@wrong("training", "save", "raises", "raises TypeError")
def folder_is_not_optional(options, state):
    if hvd.rank() == 0:
        state.save(str(options.folder / "checkpoint"))


# Right ones of another make


def optimizer_by_name(options):
    optimizer = tf.keras.optimizers.SGD(momentum=0.9)
    optimizer.learning_rate.assign(hvd.size() * options.learning_rate)
    return optimizer


def begin_one_by_one(options, state):
    if hvd.rank() == 0 and options.resume:
        restore(options, state)
    for variable in everything(state):
        variable.assign(hvd.broadcast(variable, root_rank=0))


def step_by_hand(state, images, labels):
    return applied(state, images, labels, lambda gradients: [hvd.allreduce(gradient) for gradient in gradients])


def step_with_a_tape_wrapped_first(state, images, labels):
    with hvd.DistributedGradientTape(tf.GradientTape()) as tape:
        loss = mean_loss(labels, state.model(images, training=True))
    gradients = tape.gradient(loss, state.model.trainable_variables)
    state.optimizer.apply_gradients(zip(gradients, state.model.trainable_variables, strict=True))
    return loss


def save_or_return(options, state):
    if hvd.rank() > 0 or not options.folder:
        return
    tf.train.CheckpointManager(state, str(options.folder), max_to_keep=3).save()


right("feeding", batches=batches_then_shard)
right("training", make_optimizer=optimizer_by_name, begin=begin_one_by_one, step=step_by_hand, save=save_or_return)
right("training", step=step_with_a_tape_wrapped_first)
