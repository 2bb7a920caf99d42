"""Known answers to the functions of lab 09, which are not judged by programs; importing this starts TensorFlow.

Each is the lab's own solution with another line. Horovod itself is not needed: `hvd` is the lab's fake.
"""

import numpy as np
import tensorflow as tf

from distlab import data
from distlab.labs.fake_horovod import hvd

GIVEN = {"hvd": hvd}
KNOWN = {
    "hvd": hvd,
    "tf": tf,
    "np": np,
    "data": data,
    "mean_loss": tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
}


GPUS = 'tf.config.list_physical_devices("GPU")'
PLACE = "hvd.local_rank() % len(gpus)"
PIN = f'    if gpus:\n        tf.config.set_visible_devices(gpus[{PLACE}], "GPU")\n'
START = {
    "without init": ("    hvd.init()\n", ""),
    "not pinned": (PIN, ""),
    "pinned by rank": (PLACE, "hvd.rank()"),
    "pinned by host": ("local_rank", "cross_rank"),
    "by rank and GPUs": (PLACE, "hvd.rank() % len(gpus)"),
    "first GPU for all": (PLACE, "0"),
    "as many as ranks": (PLACE, "hvd.local_rank()"),
    "fails without GPUs": ("if gpus", "if True"),
    "shows all": (f"gpus[{PLACE}]", "gpus"),
    "every device": (GPUS, "tf.config.list_physical_devices()"),
    "without the type": (', "GPU")\n', ")\n"),
}
SAMPLES = "from_tensor_slices((order, images[order], labels[order]))"
SHARD = ".shard(hvd.size(), hvd.rank())"
BATCH = "samples.batch(options.batch, drop_remainder=True).repeat()"
STEPS = "options.images // (options.batch * hvd.size())"
FEEDING = {
    "not sharded": (SHARD, ""),
    "sharded by local rank": (SHARD, ".shard(hvd.local_size(), hvd.local_rank())"),
    "shard's arguments swapped": (SHARD, ".shard(hvd.rank(), hvd.size())"),
    "own order": ("[options.seed, epoch]", "[options.seed, epoch, hvd.rank()]"),
    "epochs alike": ("[options.seed, epoch]", "options.seed"),
    "batch divided": ("options.batch, drop", "options.batch // hvd.size(), drop"),
    "batches of all ranks": ("options.batch, drop", "options.batch * hvd.size(), drop"),
    "labels not permuted": ("labels[order]", "labels[: len(order)]"),
    "all images": ("permutation(options.images)", "permutation(len(images))"),
    "steps of its own": (STEPS, "len(range(hvd.rank(), options.images, 6)) // options.batch"),
    "steps not divided": (STEPS, "options.images // options.batch"),
    "steps by local size": (
        "options.batch * hvd.size()",
        "options.batch * hvd.local_size()",
    ),
    "steps rounded up": (STEPS, f"-(-{STEPS[:14]} // {STEPS[18:]})"),
    "steps as a float": (STEPS, STEPS.replace("//", "/")),
    "steps multiplied": (STEPS, "options.images // options.batch * hvd.size()"),
}
RATE = "options.learning_rate * hvd.size()"
TAPE = "    tape = hvd.DistributedGradientTape(tape)\n"
GRADIENTS = "    gradients = tape.gradient(loss, state.model.trainable_variables)\n"
APPLY = "    state.optimizer.apply_gradients(zip(gradients, state.model.trainable_variables, strict=True))\n"
READS = "options.resume and hvd.rank() == 0"
EVERYTHING = "[*state.model.variables, *state.optimizer.variables, state.epochs_done]"
BROADCAST = f"    hvd.broadcast_variables({EVERYTHING}, root_rank=0)\n"
READ = "state.restore(tf.train.latest_checkpoint(options.folder)).assert_existing_objects_matched()"
BEGIN = f"    if {READS}:\n        {READ}\n"
SAVES, SAVE = "options.folder and hvd.rank() == 0", 'state.save(str(options.folder / "checkpoint"))'


def of_gradients(value, tape=TAPE):
    return f"{tape}{GRADIENTS}    gradients = [{value} for gradient in gradients]\n"


by_hand = """    for variable, gradient in zip(state.model.trainable_variables, gradients, strict=True):
        variable.assign_sub(state.optimizer.learning_rate * gradient)
"""
FINDS_ONE = "hvd.rank() == 0 and tf.train.latest_checkpoint(options.folder)"
reads_or_ends = "options.resume and (tf.train.latest_checkpoint(options.folder) or exit('There is no checkpoint.'))"
TRAINING = {
    "not scaled": (RATE, "options.learning_rate"),
    "scaled by local size": (RATE, "options.learning_rate * hvd.local_size()"),
    "scaled by rank": (RATE, "options.learning_rate * hvd.rank()"),
    "scaled by hosts": (RATE, "options.learning_rate * hvd.cross_size()"),
    "six typed in": (RATE, "options.learning_rate * 6"),
    "rate divided": (RATE, "options.learning_rate / hvd.size()"),
    "scaled by the root": (RATE, "options.learning_rate * hvd.size() ** 0.5"),
    "momentum lost": (", momentum=0.9", ""),
    "not wrapped": (TAPE, ""),
    "wrapped too late": (TAPE + GRADIENTS, GRADIENTS + TAPE),
    "summed": (TAPE + GRADIENTS, of_gradients("hvd.allreduce(gradient, op=hvd.Sum)", "")),
    "divided twice": (TAPE + GRADIENTS, of_gradients("gradient / hvd.size()")),
    "averages on rank 0": (TAPE, f"    if hvd.rank() == 0:\n    {TAPE}"),
    "never applied": (APPLY, ""),
    "without the optimizer": (APPLY, by_hand),
    "returns nothing": ("    return loss\n", ""),
    "the loss afterwards": ("return loss", "return mean_loss(labels, state.model(images))"),
    "no broadcast": (BROADCAST, ""),
    "weights alone": (", *state.optimizer.variables, state.epochs_done", ""),
    "epochs forgotten": (", state.epochs_done]", "]"),
    "broadcast first": (BEGIN + BROADCAST, BROADCAST + BEGIN),
    "broadcast at the first start": (
        BROADCAST,
        f"    if not options.resume:\n    {BROADCAST}",
    ),
    "every rank reads": (READS, reads_or_ends),
    "rank 0 broadcasts alone": (BROADCAST, f"    if hvd.rank() == 0:\n    {BROADCAST}"),
    "last rank is the source": ("root_rank=0", "root_rank=hvd.size() - 1"),
    "never reads": (READS, "False"),
    "always resumes": (READS, FINDS_ONE),
    "all save": (SAVES, "options.folder"),
    "saves the model alone": ("state.save(", "tf.train.Checkpoint(model=state.model).save("),
    "saves the weights alone": (
        SAVE,
        'state.model.save_weights(str(options.folder / "model.weights.h5"))',
    ),
    "one saves on each host": ("folder and hvd.rank", "folder and hvd.local_rank"),
    "nobody saves": (SAVES, "options.folder and hvd.rank() < 0"),
    "folder is not optional": (SAVES, "hvd.rank() == 0"),
}

OWN = "    own = np.array_split(order, hvd.size())[hvd.rank()]\n"
WRONG = {"start": START, "feeding": FEEDING, "training": TRAINING}
RIGHT = {
    "start": [[], (PIN, '    tf.config.set_visible_devices((gpus[hvd.local_rank() :] or gpus)[:1], "GPU")\n')],
    "feeding": [
        [],
        [(SAMPLES, SAMPLES.replace("order", "own")), (SHARD, ""), ("    samples = tf", f"{OWN}    samples = tf")],
        [(f"    samples = samples{SHARD}\n", ""), (BATCH, BATCH + SHARD)],
    ],
    "training": [
        [],
        [(TAPE, ""), ("with tf.GradientTape()", "with hvd.DistributedGradientTape(tf.GradientTape())")],
        (TAPE + GRADIENTS, of_gradients("hvd.allreduce(gradient)", "")),
        (SAVE, "tf.train.CheckpointManager(state, str(options.folder), max_to_keep=3).save()"),
    ],
}
