"""Known answers to the functions of lab 09, which are not judged by programs; importing this starts TensorFlow.

Each is the lab's own solution with another line. Horovod itself is not needed: `hvd` is the lab's fake.
"""

import distlab  # before TensorFlow: it selects tf-keras

# isort: split
import numpy as np
import tensorflow as tf

from distlab import data
from distlab.labs.fake_horovod import hvd
from tests.distlab.labs.known_wrong import LabAnswers
from tests.distlab.labs.solutions import solution_with

assert distlab
ANSWERS, GIVEN = LabAnswers(), {"hvd": hvd}
SHARES = {"start": 0.5, "feeding": 0.5, "training": 0.75}
KNOWN = {
    "hvd": hvd,
    "tf": tf,
    "np": np,
    "data": data,
    "mean_loss": tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
}


def answer(exercise, *changes):
    return solution_with("09", exercise, *changes, **KNOWN)


GPUS = 'tf.config.list_physical_devices("GPU")'
PLACE = "hvd.local_rank() % len(gpus)"
PIN = f'    if gpus:\n        tf.config.set_visible_devices(gpus[{PLACE}], "GPU")\n'
START = {
    "not pinned": (PIN, "", "every rank still sees all GPUs of its host."),
    "pinned by rank": (PLACE, "hvd.rank()", "asks for a GPU that its host does not have:"),
    "pinned by host": ("local_rank", "cross_rank", "take the GPUs [0, 0, 0, 1, 1, 1]"),
    "by rank and GPUs": (PLACE, "hvd.rank() % len(gpus)", "dealt out to 2 hosts one by one"),
    "first GPU for all": (PLACE, "0", "all ranks of a host take the same GPU."),
    "as many as ranks": (PLACE, "hvd.local_rank()", "with --gpus-per-task=1 a rank sees one GPU"),
    "fails without GPUs": ("if gpus", "if True", "where there is no GPU at all, it raises ZeroDivisionError"),
    "shows all": (f"gpus[{PLACE}]", "gpus", "a rank says that it needs several GPUs."),
    "every device": (GPUS, "tf.config.list_physical_devices()", "Which kind of device is the list made of?"),
    "without the type": (', "GPU")\n', ")\n", "of GPUs: then every other device is hidden, the CPU too."),
}
SAMPLES = "from_tensor_slices((order, images[order], labels[order]))"
SHARD = ".shard(hvd.size(), hvd.rank())"
BATCH = "samples.batch(options.batch, drop_remainder=True).repeat()"
STEPS = "options.images // (options.batch * hvd.size())"
FEEDING = {
    "not sharded": (SHARD, "", "all ranks get the same samples."),
    "sharded by local rank": (SHARD, ".shard(hvd.local_size(), hvd.local_rank())", "but each host gets the same ones"),
    "shard's arguments swapped": (SHARD, ".shard(hvd.rank(), hvd.size())", "raises InvalidArgumentError"),
    "own order": ("[options.seed, epoch]", "[options.seed, epoch, hvd.rank()]", "From how many different orders"),
    "epochs alike": ("[options.seed, epoch]", "options.seed", "has the same order; the serial program shuffles"),
    "batch divided": ("options.batch, drop", "options.batch // hvd.size(), drop", "images in a step: options.batch,"),
    "batches of all ranks": ("options.batch, drop", "options.batch * hvd.size(), drop", "fill one. How many images"),
    "labels not permuted": ("labels[order]", "labels[: len(order)]", "what has been put in another order, and what"),
    "all images": ("permutation(options.images)", "permutation(len(images))", "an epoch has only the samples 0 to"),
    "steps of its own": (STEPS, "len(range(hvd.rank(), options.images, 6)) // options.batch", "waits for the others."),
    "steps not divided": (STEPS, "options.images // options.batch", "go through the data several times."),
    "steps by local size": (
        "options.batch * hvd.size()",
        "options.batch * hvd.local_size()",
        "if there were one host.",
    ),
    "steps rounded up": (STEPS, f"-(-{STEPS[:14]} // {STEPS[18:]})", "the serial program leaves such a step out."),
    "steps as a float": (STEPS, STEPS.replace("//", "/"), "it counts steps, so it is a whole number."),
    "steps multiplied": (STEPS, "options.images // options.batch * hvd.size()", ": more ranks, and more steps?"),
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
    "not scaled": (RATE, "options.learning_rate", "ranks: it is still that of one rank."),
    "scaled by local size": (RATE, "options.learning_rate * hvd.local_size()", "it is scaled by what one host has"),
    "scaled by rank": (RATE, "options.learning_rate * hvd.rank()", "the ranks have different rates,"),
    "scaled by hosts": (RATE, "options.learning_rate * hvd.cross_size()", "it is scaled by the number of hosts,"),
    "six typed in": (RATE, "options.learning_rate * 6", "is that for one rank: is a number typed in?"),
    "rate divided": (RATE, "options.learning_rate / hvd.size()", "allows a longer step, not a shorter one."),
    "scaled by the root": (RATE, "options.learning_rate * hvd.size() ** 0.5", "the square root is another rule"),
    "momentum lost": (", momentum=0.9", "", "the serial program has SGD with momentum, this is another"),
    "not wrapped": (TAPE, "", "of its own samples. Which object is asked for them?"),
    "wrapped too late": (TAPE + GRADIENTS, GRADIENTS + TAPE, "do not come from the wrapped one: when is it asked?"),
    "summed": (TAPE + GRADIENTS, of_gradients("hvd.allreduce(gradient, op=hvd.Sum)", ""), "the step is too long, by"),
    "divided twice": (TAPE + GRADIENTS, of_gradients("gradient / hvd.size()"), "the average is divided once more."),
    "averages on rank 0": (TAPE, f"    if hvd.rank() == 0:\n    {TAPE}", "which never come"),
    "never applied": (APPLY, "", "the weights are still the first ones: nothing was applied."),
    "without the optimizer": (APPLY, by_hand, "which goes on from step to step. Who changes the weights?"),
    "returns nothing": ("    return loss\n", "", "returns no number: the loss before the step is asked for."),
    "the loss afterwards": ("return loss", "return mean_loss(labels, state.model(images))", "right; the loss is"),
    "no broadcast": (BROADCAST, "", "each rank still has its own first weights."),
    "weights alone": (", *state.optimizer.variables, state.epochs_done", "", "a step needs more than the model."),
    "epochs forgotten": (", state.epochs_done]", "]", "weights and momentum are equal, but the epochs that are done"),
    "broadcast first": (BEGIN + BROADCAST, BROADCAST + BEGIN, "In which order was that?"),
    "broadcast at the first start": (
        BROADCAST,
        f"    if not options.resume:\n    {BROADCAST}",
        "nobody tells the others",
    ),
    "every rank reads": (READS, reads_or_ends, "ends the program. Which ranks must find a checkpoint?"),
    "rank 0 broadcasts alone": (BROADCAST, f"    if hvd.rank() == 0:\n    {BROADCAST}", "broadcast_variables"),
    "last rank is the source": ("root_rank=0", "root_rank=hvd.size() - 1", "Which rank reads the checkpoint and"),
    "never reads": (READS, "False", "0 does not have the weights of its checkpoint afterwards."),
    "always resumes": (READS, FINDS_ONE, "has the weights of the checkpoint that lies in the folder."),
    "all save": (SAVES, "options.folder", "all ranks write. In one folder they would disturb each other."),
    "saves the model alone": ("state.save(", "tf.train.Checkpoint(model=state.model).save(", "lacks the momentum and"),
    "saves the weights alone": (
        SAVE,
        'state.model.save_weights(str(options.folder / "model.weights.h5"))',
        "the folder that rank 0 wrote to, and `begin` looks there.",
    ),
    "one saves on each host": ("folder and hvd.rank", "folder and hvd.local_rank", "write: one on each host."),
    "nobody saves": (SAVES, "options.folder and hvd.rank() < 0", "nobody has written a checkpoint."),
    "folder is not optional": (SAVES, "hvd.rank() == 0", "raises TypeError"),
}
for exercise, table in (("start", START), ("feeding", FEEDING), ("training", TRAINING)):
    for title, (before, after, words) in table.items():
        ANSWERS.wrong(exercise, title, answer(exercise, (before, after)), words, share=SHARES[exercise])
ANSWERS.wrong("start", "without init", answer("start", ("    hvd.init()\n", "")), "before the processes")

OWN = "    own = np.array_split(order, hvd.size())[hvd.rank()]\n"
RIGHT = {
    "start": {
        "with a slice": [(PIN, '    tf.config.set_visible_devices((gpus[hvd.local_rank() :] or gpus)[:1], "GPU")\n')]
    },
    "feeding": {
        "in one piece": [
            (SAMPLES, SAMPLES.replace("order", "own")),
            (SHARD, ""),
            ("    samples = tf", f"{OWN}    samples = tf"),
        ],
        "batches, then shard": [(f"    samples = samples{SHARD}\n", ""), (BATCH, BATCH + SHARD)],
    },
    "training": {
        "a tape wrapped first": [
            (TAPE, ""),
            ("with tf.GradientTape()", "with hvd.DistributedGradientTape(tf.GradientTape())"),
        ],
        "averaged by hand": [(TAPE + GRADIENTS, of_gradients("hvd.allreduce(gradient)", ""))],
        "by a manager": [(SAVE, "tf.train.CheckpointManager(state, str(options.folder), max_to_keep=3).save()")],
    },
}
for exercise, answers in RIGHT.items():
    for changes in answers.values():
        ANSWERS.right(exercise, answer(exercise, *changes))
SOLUTIONS = {exercise: answer(exercise) for exercise in SHARES}
