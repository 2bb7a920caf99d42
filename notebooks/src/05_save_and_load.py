# %% [markdown]
# # 05 Save and load
#
# - **Goal.** Write a distributed run to disk so that it can be served, loaded under another strategy, or continued as
#   if nothing had happened; and know what each format leaves out.
# - **Time.** 35 minutes to read, under a minute to run.
# - **Before this.** [03 mirrored strategy](03_mirrored_strategy.ipynb) and [04 custom training
#   loop](04_custom_training_loop.ipynb).
# - **Questions.**
#     - Which format for serving, which for sharing a model, which for going on with training?
#     - Does a file that two replicas wrote fit one device, or three?
#     - Is a run that stops and goes on equal to a run that never stopped?
#     - What does each format not keep?
# - **Hardware.** Any machine; without GPUs the processor is divided into logical devices.

# %% tags=["parameters"]
dataset = "digits"  # "digits", "mnist" or "fashion_mnist"; at most 512 training images are used here
epochs = 2  # epochs before the checkpoint, and the same number after it
workers = 2  # replicas of the strategy that saves; loading is also tried with one replica more

# %%
import distlab  # first: it selects tf-keras, which must happen before TensorFlow is imported

import contextlib
import io
import logging
import math
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

from distlab import checks, data, devices, draw, models

draw.apply_style()
tf.get_logger().setLevel("ERROR")  # many small models are made here; it would advise against it
seed = 5
tf.keras.utils.set_random_seed(seed)
print(data.describe(dataset))

# %% [markdown]
# ## 1. What a run is made of
#
# "Save the model" can mean many things. A training run that is to go on tomorrow consists of:
#
# | part | example |
# |---|---|
# | weights | kernels and biases |
# | structure | which layers, in which order |
# | Python code | a layer class of your own |
# | compile arguments | loss, metrics, learning rate |
# | optimizer state | Adam's averages for each weight, its step count |
# | position | epochs and steps done |
# | data order | which images come next |
# | random state | the next numbers of each generator |
#
# A **format** is a choice among these parts. A **checkpoint** is what a run writes so that it can go on. This
# notebook fills in a table, which format keeps which part, by trying; no entry is taken from a manual.

# %% [markdown]
# ## 2. A run on several replicas
#
# Three strategies: the one that trains and saves, and two that will load. A replica is one copy of the model on one
# device; the third strategy has one replica more than the first.

# %%
# Else some GPUs round the factors of a matrix product to 10 bits.
tf.config.experimental.enable_tensor_float_32_execution(False)
names = devices.at_least(workers + 1)
strategy = tf.distribute.MirroredStrategy(names[:workers])
one_device = tf.distribute.OneDeviceStrategy(names[0])
# Two MirroredStrategies in one process would mix up each other's collectives, so the second one does without them.
one_more = tf.distribute.MirroredStrategy(names, tf.distribute.ReductionToOneDevice())
print([target.num_replicas_in_sync for target in (strategy, one_device, one_more)], "replicas")

# %% [markdown]
# The data. The global batch must divide evenly by the replicas of both mirrored strategies: Keras averages inside
# each replica first, so uneven shares would change the gradient. The order of the images is a function of the epoch's
# number, `shuffle(seed=epoch)`; section 9 shows why. A few hundred images are enough: nothing in this chapter depends
# on a high accuracy.

# %%
(x_train, y_train), (x_test, y_test) = data.load(dataset)
x_train, y_train, x_test = x_train[:512], y_train[:512], x_test[:256]
multiple = math.lcm(workers, workers + 1)
global_batch_size = multiple * max(1, round(64 / multiple))
steps = len(x_train) // global_batch_size

images = tf.data.Dataset.from_tensor_slices((x_train, y_train))
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA


def training_data(first_epoch):
    def one_epoch(epoch):
        shuffled = images.shuffle(len(x_train), seed=epoch, reshuffle_each_iteration=False)
        return shuffled.batch(global_batch_size, drop_remainder=True)

    return tf.data.Dataset.range(first_epoch, 1000).flat_map(one_epoch).with_options(options)


# %% [markdown]
# The model is the lecture's network without dropout, and the optimizer is Adam. The weights come from Keras's random
# generator, so every call gives another model.


# %%
def new_model(learning_rate=0.001, dropout=0.0):
    model = models.mlp(dropout)
    model.compile(
        optimizer=tf.keras.optimizers.Adam(learning_rate),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


# %%
def train(model, first_epoch, last_epoch, callbacks=()):
    return model.fit(
        training_data(first_epoch),
        initial_epoch=first_epoch,
        epochs=last_epoch,
        steps_per_epoch=steps,
        callbacks=[*callbacks],
        verbose=0,
    )


# %% [markdown]
# The first half of the run. Two callbacks write during `fit`. `ModelCheckpoint` writes a file after each epoch, here
# in the Keras format. `BackupAndRestore` keeps one copy of the newest state, meant for a run that is started again
# after a crash.

# %%
scratch = tempfile.TemporaryDirectory()
folder = Path(scratch.name)
every_epoch = tf.keras.callbacks.ModelCheckpoint(str(folder / "after_epoch_{epoch}.keras"))
backup = tf.keras.callbacks.BackupAndRestore(str(folder / "backup"), delete_checkpoint=False)

with strategy.scope():
    model = new_model()
start_weights = model.get_weights()
learning_rate = 0.0005  # tuned while the program ran; the program's text still says 0.001
model.optimizer.learning_rate.assign(learning_rate)
train(model, 0, epochs, callbacks=[every_epoch, backup])
half_way = model.get_weights()
reference = model.predict(x_test, verbose=0)
newest = tf.keras.models.load_model(folder / f"after_epoch_{epochs}.keras")
same = checks.largest_difference(newest.get_weights(), half_way) == 0
print("one file per epoch:", len(list(folder.glob("after_epoch_*.keras"))) == epochs)
print("the newest holds these weights:", same)

# %% [markdown]
# ## 3. The formats
#
# - **SavedModel**: a folder with TensorFlow's graph of the computation and the variables. `model.save(...,
#   save_format="tf")` adds what Keras needs to make a model of it again. Keras 3 no longer offers that call.
# - **Export**: `model.export` writes a SavedModel for serving only: the forward pass.
# - **Keras format**: one `.keras` file, a zip archive with the structure as JSON and the weights.
# - **Weights only**: one `.weights.h5` file.
# - **Checkpoint**: `tf.train.Checkpoint` writes the variables of the Python objects that you hand to it.

# %%
tf.keras.utils.disable_interactive_logging()  # `export` would print memory addresses
model.save(folder / "saved_model", save_format="tf")
model.export(folder / "export")
model.save(folder / "model.keras")
model.save_weights(folder / "model.weights.h5")
tf.train.Checkpoint(model=model).write(str(folder / "checkpoint" / "half_way"))
models.mlp().export(folder / "plain_export")  # for comparison: a model without a strategy

# %% [markdown]
# **Predict.** Each weight takes 4 bytes. "Weights only" sounds like the smallest choice. How many times the bytes of
# the weights does each of the six take on disk?

# %%
places = {
    "SavedModel": "saved_model",
    "export": "export",
    "Keras format": "model.keras",
    "weights only": "model.weights.h5",
    "checkpoint": "checkpoint",
    "BackupAndRestore": "backup",
}


def kilobytes(place):
    files = [place] if place.is_file() else [file for file in place.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / 1000


sizes = {name: kilobytes(folder / place) for name, place in places.items()}
weights_alone = 4 * model.count_params() / 1000
copies = {name: round(size / weights_alone) for name, size in sizes.items()}
print("Size on disk, in multiples of the weights:", copies)
print("An export without a strategy:", round(kilobytes(folder / "plain_export") / weights_alone))
assert copies["export"] < copies["weights only"] == copies["Keras format"] == copies["checkpoint"] == 3

# %% tags=["varies"]
listed = ", ".join(f"{name} {size:,.0f}" for name, size in sizes.items())
description = f"Bars of the kilobytes that each format takes: {listed}."
draw.show(draw.bars(sizes, "kilobytes on disk"), description)

# %% [markdown]
# The weights-only file holds three values per weight: the weight and Adam's two averages. In this Keras it contains
# the optimizer's state, whatever its name says. Section 6 asks whether anybody reads it. The export holds no
# optimizer, but writes each mirrored weight twice: it lists the variables under two names, and does not recognise the
# wrapped variables as the same.
#
# <details><summary>Question: a model of 1 GB of float32 weights is trained with Adam on 8 replicas of one machine.
# How large is its checkpoint?</summary>
#
# - *1 GB*: the misconception that a checkpoint is the weights. Adam keeps two more values per weight.
# - *8 GB or 24 GB*: the misconception that each replica is saved. The copies of a mirrored variable are equal, so one
#   is written.
# - ***3 GB***: right. With plain SGD it would be 1 GB, with momentum 2 GB.
#
# </details>

# %% [markdown]
# ## 4. Load inside another strategy's scope
#
# A model's variables belong to the strategy in whose `scope()` they are created, and loading creates variables. So
# the scope in which you *load* decides where the model lives. Two formats contain the structure, and `load_model`
# builds the model from the file. The other two fill a model that your program has built. (`expect_partial`: some
# values, Adam's averages, have no place yet and wait.)


# %%
def from_weights(build=new_model):
    model = build()
    model.load_weights(folder / "model.weights.h5")
    return model


def from_checkpoint(build=new_model):
    model = build()
    tf.train.Checkpoint(model=model).read(str(folder / "checkpoint" / "half_way")).expect_partial()
    return model


# %%
loaders = {
    "SavedModel": lambda: tf.keras.models.load_model(folder / "saved_model"),
    "Keras format": lambda: tf.keras.models.load_model(folder / "model.keras"),
    "weights only": from_weights,
    "checkpoint": from_checkpoint,
}
log = io.StringIO()  # what Keras logs while it loads; section 6 reads it
logging.getLogger("absl").addHandler(logging.StreamHandler(log))
logging.getLogger("absl").propagate = False

# %% [markdown]
# **Predict.** The files were written by several replicas. They are loaded with no strategy, on one device, and on one
# replica more. By how much will the predictions differ?


# %%
def same_predictions(found, expected):
    return bool(np.max(np.abs(found - expected)) <= checks.TOLERANCE)


targets = {
    "no strategy": contextlib.nullcontext(),
    "OneDevice": one_device.scope(),
    "more replicas": one_more.scope(),
}
predicted = {}
for target, scope in targets.items():
    with scope:
        loaded = {name: load() for name, load in loaders.items()}
    for name, model in loaded.items():
        predicted[name, target] = model.predict(x_test, verbose=0)
    replicas = model.distribute_strategy.num_replicas_in_sync
    print(f"{target}: {type(model.weights[0]).__name__}, replicas: {replicas}")

assert all(same_predictions(found, reference) for found in predicted.values())
kept = {"weights": dict.fromkeys(loaders, True)}  # the table of section 12
print(f"All {len(predicted)} predictions equal the saved model's within {checks.TOLERANCE:g}")

# %% tags=["varies"]
for name in loaders:
    largest = [np.max(np.abs(predicted[name, target] - reference)) for target in targets]
    print(f"{name:13} largest differences:", *[f"{difference:.1e}" for difference in largest])

# %% [markdown]
# No trace of the saving strategy is left. A mirrored variable is one logical value with equal copies; a format stores
# the value, and the loading scope makes as many copies as it needs. That is why the number of replicas may change
# between training and serving, or between two parts of one training.
#
# A difference, if there is one, is rounding: with other batch shapes the processor may add in another order.

# %% [markdown]
# ## 5. Serve without Keras
#
# A serving machine needs no layers and no `fit`. `tf.saved_model.load` gives back functions that run the stored
# graph. To make sure that Keras has no part in it, a second Python process forbids itself to import any Keras, sees
# no GPU, and returns its predictions in a file.

# %%
program = """
import sys
sys.modules["keras"] = sys.modules["tf_keras"] = None  # any import of a Keras now fails
import numpy as np, tensorflow as tf
folder = sys.argv[1]
model = tf.saved_model.load(folder + "/export")
np.save(folder + "/served.npy", model.serve(np.load(folder + "/images.npy")))
print(model.signatures["serving_default"].structured_outputs)
"""

# %%
np.save(folder / "images.npy", x_test)
command = [sys.executable, "-c", program, str(folder)]
environment = os.environ | {"CUDA_VISIBLE_DEVICES": "-1"}
arguments = {"env": environment, "capture_output": True, "text": True, "timeout": 120}
child = subprocess.run(command, check=True, **arguments)
print(child.stdout.strip())
assert same_predictions(np.load(folder / "served.npy"), reference)
kept["weights"]["export"] = True
print(f"Predictions of a process without Keras equal the saved model's within {checks.TOLERANCE:g}")

# %% [markdown]
# Which formats can be opened without the code that builds the model? Two ways of opening are tried on each.


# %%
def works(function, *arguments):
    try:
        function(*arguments)
    except Exception:
        return False
    return True


def use_as_model(path):
    tf.keras.models.load_model(path).predict(x_test, verbose=0)


def use_as_function(path):
    loaded = tf.saved_model.load(path)  # keep it: its functions do not keep its variables alive
    loaded.signatures["serving_default"](tf.constant(x_test))


kept |= {"structure": {}, "runs without Keras": {}}
for name, place in places.items():
    model_found = works(use_as_model, str(folder / place))
    function_found = works(use_as_function, str(folder / place))
    kept["structure"][name] = model_found
    kept["runs without Keras"][name] = function_found
    print(f"{name:16} load_model: {model_found!s:6} saved_model.load: {function_found}")

# %% [markdown]
# An export is a SavedModel without the part that Keras needs, so only the function is left.
#
# **Predict.** A serving machine with several devices loads the export inside a mirrored strategy's scope. Three ways
# to call the function: inside the scope, after leaving it, and on each replica through `strategy.run`. Which of them
# work?

# %%
with one_more.scope():
    serving = tf.saved_model.load(str(folder / "export"))
    try:
        serving.serve(x_test)
    except tf.errors.InvalidArgumentError as error:
        print("inside the scope:", str(error).partition("failed: [")[2].partition(".")[0])
test_batches = tf.data.Dataset.from_tensor_slices(x_test).batch(128)
print("outside it, equal:", same_predictions(serving.serve(x_test), reference))


# %%
@tf.function
def on_each_replica(batch):
    return one_more.run(serving.signatures["serving_default"], args=(batch,))["output_0"]


outputs = []
for batch in one_more.experimental_distribute_dataset(test_batches):
    outputs.extend(one_more.experimental_local_results(on_each_replica(batch)))
assert same_predictions(np.concatenate(outputs), reference)
print("on each replica, equal: True, in", len(outputs), "parts")

# %% [markdown]
# Load inside the scope, call outside it. Inside `scope()` the program is in *cross-replica context*: it speaks for
# all replicas at once, and a restored graph cannot tell whose copy of a variable to read. `strategy.run` puts the
# call into *replica context*, where each replica reads its own copy and gets its own part of the batch.

# %% [markdown]
# ## 6. Stop and go on
#
# Equal predictions show that the weights are kept. Going on needs more: with gradient $g_t$ Adam computes
#
# $$m_t = \beta_1 m_{t-1} + (1 - \beta_1) g_t \qquad v_t = \beta_2 v_{t-1} + (1 - \beta_2) g_t^2$$
#
# $$w_t = w_{t-1} - \eta \, \frac{m_t / (1 - \beta_1^t)}{\sqrt{v_t / (1 - \beta_2^t)} + \epsilon}$$
#
# so the next weight depends on the averages $m$ and $v$ and on the step count $t$, too. An optimizer that has lost them
# begins again with $m = v = 0$ and $t = 1$.
#
# One run of twice `epochs` on all replicas is compared with runs that go on from the half-way state, on one device:
# no file depends on how many there are.
#
# **Predict.** Four formats, all with three values per weight on disk. Which continue the run exactly?

# %%
with strategy.scope():
    model = new_model(learning_rate)
model.set_weights(start_weights)
train(model, 0, 2 * epochs)
uninterrupted = model.get_weights()

log.seek(0), log.truncate()
resumed, loaded_rate = {}, {}
for name, load in loaders.items():
    model = load()
    assert checks.largest_difference(model.get_weights(), half_way) == 0
    loaded_rate[name] = float(model.optimizer.learning_rate.numpy())
    model.optimizer.learning_rate.assign(learning_rate)  # for section 7; here only the state may differ
    train(model, epochs, 2 * epochs)
    resumed[name] = checks.largest_difference(model.get_weights(), uninterrupted)

equal = {name: difference <= checks.TOLERANCE for name, difference in resumed.items()}
print(equal)
print("Keras's log:", log.getvalue().strip())
assert equal == {"SavedModel": False, "Keras format": True, "weights only": False, "checkpoint": True}
assert min(resumed["SavedModel"], resumed["weights only"]) > 100 * checks.TOLERANCE

# %% tags=["varies"]
for name, difference in resumed.items():
    print(f"{name:13} largest difference to the uninterrupted run: {difference:.1e}")

# %% [markdown]
# Two formats loaded the same weights, trained on the same images in the same order, and ended elsewhere. Both files
# hold Adam's state; the loading calls drop it. No exception is raised. The only hint is one line in the log, for the
# weights-only file alone.
#
# The optimizer creates its variables at its first step. Before that there is no place to load into, and
# `load_weights` does not wait when it reads an `.h5` file. A checkpoint waits and fills variables as they appear. For
# a SavedModel, Keras makes a new optimizer from the compile arguments.
#
# One more line fixes each: create the optimizer's variables first; or read the SavedModel's `variables` folder, which
# is a checkpoint.


# %%
def built():
    model = new_model()
    model.optimizer.build(model.trainable_variables)
    return model


def from_saved_model_variables():
    model = tf.keras.models.load_model(folder / "saved_model")
    model.load_weights(str(folder / "saved_model" / "variables" / "variables")).expect_partial()
    return model


# %%
fixed = {"weights only": lambda: from_weights(built), "SavedModel": from_saved_model_variables}
exported = str(tf.train.list_variables(str(folder / "export" / "variables" / "variables")))
kept["optimizer state"] = equal | {"export": "optimizer" in exported}
for name, load in fixed.items():
    model = load()
    model.optimizer.learning_rate.assign(learning_rate)
    train(model, epochs, 2 * epochs)
    checks.assert_equal_weights(model.get_weights(), uninterrupted)
    kept["optimizer state"][name] = "one more line"

# %% [markdown]
# ### The proof, also with another number of replicas
#
# The checkpoint goes on with one replica more, at the same global batch size. Then the same check gets the run that
# has only the weights: a check that cannot fail proves nothing.

# %%
with one_more.scope():
    model = from_checkpoint()
train(model, epochs, 2 * epochs)
checks.assert_equal_weights(model.get_weights(), uninterrupted)
model = new_model(learning_rate)
model.set_weights(half_way)
train(model, epochs, 2 * epochs)
assert not works(checks.assert_equal_weights, model.get_weights(), uninterrupted)
print("The run from weights alone does not pass the check.")

# %% [markdown]
# <details><summary>Question: a colleague saves with <code>save_weights</code>, loads, trains on, and sees the loss
# jump up and recover. With plain SGD it never happened. Why?</summary>
#
# - *The file is damaged*: the misconception that a loading error shows as a worse loss. A damaged file raises an
#   error.
# - *The learning rate was too high from the start*: then the first part would have shown it.
# - ***Adam's averages were lost***: right. The first step after a restart is about $\eta$ in size for every weight,
#   as at the very beginning. Plain SGD has no state, so there was nothing to lose.
# - *The number of replicas changed*: at the same global batch size that changes nothing, as shown above.
#
# </details>

# %% [markdown]
# ## 7. Compile arguments
#
# The learning rate was changed after `compile`, as a schedule or a hand would do. The program that loads still says
# 0.001 where it compiles. Which rate does each loaded model have?
#
# And does a loaded model know its loss and metrics, when the program does not compile it again? To find out, it is
# asked to evaluate itself.

# %%
kept["learning rate"] = {"export": "learning_rate" in exported}
for name, rate in loaded_rate.items():
    kept["learning rate"][name] = bool(np.isclose(rate, learning_rate))
    print(f"{name:13} learning rate {rate:g}")


def evaluate(load):
    load().evaluate(x_train, y_train, verbose=0)


uncompiled = {
    "weights only": lambda: from_weights(models.mlp),
    "checkpoint": lambda: from_checkpoint(models.mlp),
    "export": lambda: tf.saved_model.load(str(folder / "export")),
}
ways = loaders | uncompiled
kept["loss and metrics"] = {name: works(evaluate, load) for name, load in ways.items()}
print("can evaluate itself:", kept["loss and metrics"])

# %% [markdown]
# A run that goes on from weights alone trains with another learning rate than the run that it continues, unless its
# author remembers. A checkpoint brings the rate along, since it is one of the optimizer's variables; the loss is
# Python code, and no variable.
#
# ## 8. Your own Python code
#
# A layer of our own multiplies by one learned factor. **Predict.** Its class stands in this very notebook. Which
# formats load a model that contains it?


# %%
class Scale(tf.keras.layers.Layer):
    def build(self, input_shape):
        self.factor = self.add_weight(name="factor", shape=(), initializer="ones")

    def call(self, values):
        return self.factor * values


with strategy.scope():
    scaled = tf.keras.Sequential([tf.keras.layers.Input((28, 28)), tf.keras.layers.Flatten()])
    scaled.add(Scale())
    scaled.add(tf.keras.layers.Dense(10))
expected = scaled.predict(x_test, verbose=0)
scaled.save(folder / "scaled", save_format="tf")
scaled.save(folder / "scaled.keras")
scaled.export(folder / "scaled_export")

# %%
from_file = tf.keras.models.load_model(folder / "scaled", compile=False)
serving = tf.saved_model.load(str(folder / "scaled_export"))
assert same_predictions(from_file.predict(x_test, verbose=0), expected)
assert same_predictions(serving.serve(x_test), expected)
print("SavedModel and export: equal predictions")
print("The loaded layer is of our class:", isinstance(from_file.layers[1], Scale))
try:
    tf.keras.models.load_model(folder / "scaled.keras")
except TypeError as error:
    print("Keras format:", str(error).partition(".")[0])
with tf.keras.saving.custom_object_scope({"Scale": Scale}):
    restored = tf.keras.models.load_model(folder / "scaled.keras", compile=False)
assert same_predictions(restored.predict(x_test, verbose=0), expected)
print("Keras format, told the class: equal predictions")

kept["own layer"] = {"SavedModel": True, "export": True}
kept["own layer"]["Keras format"] = works(use_as_model, folder / "scaled.keras")
for name in ("weights only", "checkpoint", "BackupAndRestore"):  # no model comes from these alone
    kept["own layer"][name] = kept["structure"][name]

# %% [markdown]
# The Keras format refuses a class that is not registered, even if it exists, because the file stores a *name* and no
# code. A SavedModel stores the traced graph of each layer: a stand-in is made that computes the same, but none of
# your methods are there.
#
# The decorator `@tf.keras.saving.register_keras_serializable(package="course")` above the class, or a
# `custom_object_scope` around the loading as here, gives the name back its class. The program still has to bring the
# class along.

# %% [markdown]
# ## 9. Position and data order
#
# A pipeline that shuffles with a fixed seed looks reproducible. Two epochs, then the program is started again.
# **Predict.** In which order do the numbers come after the restart?


# %%
def pipeline():
    return tf.data.Dataset.range(8).shuffle(8, seed=7)


def order(numbers):
    return [int(number) for number in numbers]


without_stop = pipeline()
for epoch in range(4):
    print("epoch", epoch, order(without_stop))
print("after a restart, as epoch 2:      ", order(pipeline()))
tf.keras.utils.set_random_seed(seed + 1)
print("after one with another global seed:", order(pipeline()))
tf.keras.utils.set_random_seed(seed)

# %% [markdown]
# The order is new in each epoch, drawn from a generator that starts at the seed and lives in the dataset object. A
# restart makes a new object, so epoch 2 sees the order of epoch 0 again. The trap is quiet: the network sees some
# orders twice and others never. Another surprise: the global seed of `set_random_seed` is mixed into `seed=7`, so a
# restarted program must set both.
#
# Two cures. The first makes the order a function of the epoch's number, as `training_data` does: then the epoch is
# all there is to remember. The second saves the iterator, with its place and its shuffle buffer.

# %%
iterator = iter(pipeline().repeat())
first_part = [int(next(iterator)) for _ in range(11)]
tf.train.Checkpoint(iterator=iterator).write(str(folder / "iterator"))
expected_next = [int(next(iterator)) for _ in range(8)]
again = iter(pipeline().repeat())
tf.train.Checkpoint(iterator=again).read(str(folder / "iterator"))
assert [int(next(again)) for _ in range(8)] == expected_next
print("The restored iterator goes on in mid-epoch:", expected_next)

iterator = iter(images.shuffle(len(x_train)))
next(iterator)
tf.train.Checkpoint(iterator=iterator).write(str(folder / "of_images" / "iterator"))
larger = kilobytes(folder / "of_images") > sizes["checkpoint"]
print("The iterator is larger than the model's checkpoint:", larger)
try:
    distributed = strategy.experimental_distribute_dataset(training_data(0))
    tf.train.Checkpoint(iterator=iter(distributed))
except ValueError as error:
    print("A distributed one:", str(error).partition(",")[0].partition(" (")[0])

# %% [markdown]
# The iterator of a distributed dataset cannot be put into a checkpoint at all, and a saved shuffle buffer contains
# the images themselves. For a distributed run the first cure is the practical one.
#
# ### A program that is started again
#
# The first half of the run, in section 2, wrote with `BackupAndRestore`. What it left behind is what a run leaves
# that was killed after `epochs` epochs. Now the program is started again: a new model, the same callback, `fit` for
# the whole number of epochs.
#
# **Predict.** With which epoch does `fit` begin, and is the result that of the uninterrupted run?


# %%
def start_again(first_order, build=new_model):
    # `fit` removes the backup when it has finished; the copy can go.
    copy = shutil.copytree(folder / "backup", folder / "backup_copy", dirs_exist_ok=True)
    with strategy.scope():
        model = build()
    restore = tf.keras.callbacks.BackupAndRestore(str(copy))
    settings = {"epochs": 2 * epochs, "steps_per_epoch": steps, "verbose": 0}
    history = model.fit(training_data(first_order), callbacks=[restore], **settings)
    same = checks.largest_difference(model.get_weights(), uninterrupted) <= checks.TOLERANCE
    return history.epoch, same


for program, first_order in {"program unchanged": 0, "right data order": epochs}.items():
    epochs_run, same = start_again(first_order)
    print(f"{program}: runs epochs {epochs_run}, equal to the uninterrupted run: {same}")
    assert epochs_run[0] == epochs and same == (first_order == epochs)

# %% [markdown]
# `fit` finds the epoch, and weights, optimizer state and learning rate are back. Still the unchanged program ends
# elsewhere: the dataset that it hands to `fit` begins with the order of epoch 0. A callback cannot move your
# pipeline; only when the program starts it at the right epoch is the result exact.
#
# What do the other formats know about the epoch? Each loaded model is trained for one step by a `fit` that names no
# `initial_epoch`.

# %%
first_epochs = {"BackupAndRestore": epochs_run[0]}
for name, load in loaders.items():
    history = load().fit(training_data(0), steps_per_epoch=1, verbose=0)
    first_epochs[name] = history.epoch[0]
print("First epoch after loading:", first_epochs)
kept["epoch number"] = {name: epoch == epochs for name, epoch in first_epochs.items()}
kept["epoch number"]["export"] = False  # it cannot be trained
for part in ("weights", "optimizer state", "learning rate"):  # `same` needs them all
    kept[part]["BackupAndRestore"] = same
kept["loss and metrics"]["BackupAndRestore"] = works(start_again, epochs, models.mlp)

# %% [markdown]
# ## 10. Random state
#
# Dropout draws random numbers. **Predict.** The same experiment with dropout 0.2 on one device, a checkpoint, and the
# right data order: is the continued run equal?


# %%
def dropout_run(resume):
    tf.keras.utils.set_random_seed(seed)
    model = new_model(dropout=0.2)
    if resume:
        train(model, 0, epochs)
        path = tf.train.Checkpoint(model=model).write(str(folder / "dropout"))
        tf.keras.utils.set_random_seed(seed)  # what the restarted program does in its first lines
        model = new_model(dropout=0.2)
        tf.train.Checkpoint(model=model).read(path).expect_partial()
    train(model, epochs if resume else 0, 2 * epochs)
    return model.get_weights()


straight = dropout_run(resume=False)
repeated = checks.largest_difference(dropout_run(resume=False), straight) <= checks.TOLERANCE
continued = checks.largest_difference(dropout_run(resume=True), straight) <= checks.TOLERANCE
print("The same run twice is equal:", repeated, "| stopped and continued is equal:", continued)
assert repeated and not continued

# %% [markdown]
# The seed makes the whole run repeatable, but after the restart dropout draws the numbers of epoch 0 again. The
# checkpoint has every variable of the model and its optimizer; the state of Keras's dropout is not one of them.
#
# A generator that is an object, `tf.random.Generator`, can be handed to a checkpoint like any other trackable object;
# so can a `tf.Variable` that counts epochs. This is tried first. Then the last rows of the table: after each way of
# loading, does a new pipeline give epoch 2's order, and does TensorFlow's global generator go on?

# %%
generator, epochs_done = tf.random.Generator.from_seed(seed), tf.Variable(epochs)
generator.uniform([1000])
tf.train.Checkpoint(generator=generator, epochs_done=epochs_done).write(str(folder / "objects"))
expected_draw = generator.uniform(())
generator, epochs_done = tf.random.Generator.from_seed(seed), tf.Variable(0)  # the restarted program
tf.train.Checkpoint(generator=generator, epochs_done=epochs_done).read(str(folder / "objects"))
assert generator.uniform(()) == expected_draw and epochs_done == epochs
print("The generator goes on where it was, and the number of epochs is known.")

replayed = pipeline()
third_order = [order(replayed) for _ in range(3)][-1]
tf.keras.utils.set_random_seed(seed)
tf.random.uniform(())
expected_draw = tf.random.uniform(())
kept |= {"data order": {}, "random state": {}}
others = {"export": uncompiled["export"], "BackupAndRestore": lambda: start_again(epochs)}
for name, load in (loaders | others).items():
    tf.keras.utils.set_random_seed(seed)
    load()
    kept["data order"][name] = order(pipeline()) == third_order
    kept["random state"][name] = bool(tf.random.uniform(()) == expected_draw)
for part in ("epoch number", "data order", "random state"):
    kept[part]["checkpoint"] = "one more line"  # each was handed to a checkpoint above and came back

# %% [markdown]
# ## 11. A run that can be stopped at any epoch
#
# The recipe that follows: a checkpoint with the model (which brings its optimizer along) and the number of epochs
# done, and a data order that follows from that number. `CheckpointManager` names the files, keeps the newest two, and
# finds them again; `restore(None)`, on the first start, does nothing.


# %%
def run(last_epoch, stop_after=None):
    with strategy.scope():
        model = new_model(learning_rate)
    epochs_done = tf.Variable(0)
    checkpoint = tf.train.Checkpoint(model=model, epochs_done=epochs_done)
    manager = tf.train.CheckpointManager(checkpoint, folder / "run", max_to_keep=2)
    checkpoint.restore(manager.latest_checkpoint)
    print("starts with epoch", int(epochs_done))
    if int(epochs_done) == 0:
        model.set_weights(start_weights)  # only so that it can be compared with the run of section 6
    while int(epochs_done) < last_epoch:
        train(model, int(epochs_done), int(epochs_done) + 1)
        epochs_done.assign_add(1)
        manager.save()
        if int(epochs_done) == stop_after:
            raise KeyboardInterrupt
    return model


# %%
try:
    run(2 * epochs, stop_after=epochs)
except KeyboardInterrupt:
    print("stopped")
model = run(2 * epochs)
checks.assert_equal_weights(model.get_weights(), uninterrupted)
scratch.cleanup()

# %% [markdown]
# With several workers, each a process of its own, the question who writes joins in; notebook 07, multi-worker,
# answers it.
#
# <details><summary>Question: what must change for a model with dropout, if the continued run is to equal the
# uninterrupted one?</summary>
#
# - *The format: take `.keras`*: the misconception that a format with more structure keeps more state. It has no
#   random state either.
# - *Set the seed again after loading*: that repeats the numbers of epoch 0.
# - ***Draw the masks from a generator that the checkpoint holds, or from a seed computed from the step***: right, the
#   same two cures as for the data order.
# - *Nothing, it is only noise*: a fair answer for the accuracy, but the proof by equality is lost, and with it an
#   easy way to find errors.
#
# </details>

# %% [markdown]
# ## 12. What each format keeps
#
# The table that the cells above have filled in. "+ line" means one more line: the state is in the file, or can be put
# there, but the plain call does not restore it. For the Keras format and an own layer there is no such line: the
# class itself must come from elsewhere.

# %%
formats = list(places)
words = {True: "yes", "one more line": "+ line", False: "no"}
print(f"{'':20}", *formats, sep="  ")
for part, answers in kept.items():
    row = [f"{words[answers[name]]:{len(name)}}" for name in formats]
    print(f"{part:20}", *row, sep="  ")

# %%
looks = {True: ("full", "kept"), "one more line": ("left", "one more line"), False: ("none", "not kept")}
listed = ""
for part, answers in kept.items():
    listed += f" {part}: " + ", ".join(f"{name} {words[answers[name]]}" for name in formats) + "."
draw.show(draw.grid(kept, formats, looks), f"Which format keeps which part, as circles in a grid.{listed}")

# %% [markdown]
# ## Recap
#
# - The scope in which a file is loaded decides where the model lives; the number of replicas is not in the file.
# - Predictions were equal in every format; that does not show that training can go on.
# - Adam's state is in a SavedModel and in a weights-only file, but the plain loading calls drop it without an error.
# - The Keras format and a checkpoint continue a run exactly, also with another number of replicas.
# - No format brings the data order back by itself: make it a function of the epoch's number.
# - A SavedModel runs without Keras and without your classes.
#
# **Next.** [06 collectives](06_collectives_and_ring_all_reduce.ipynb): how replicas add their gradients.
#
# **Sources.** D. P. Kingma, J. Ba (2015), *Adam: A Method for Stochastic Optimization*, arXiv:1412.6980. D. G. Murray
# et al. (2021), *tf.data*, arXiv:2101.12127. TensorFlow guides *Training checkpoints*, *Using the SavedModel format*.
