# %% [markdown]
# # 05 Save and load
#
# **Goal.** Write a distributed run to disk so that it can be served, shared, loaded under another strategy, or
# resumed as if nothing had happened; and know what each format leaves out.
#
# **Time.** 35 minutes to read, under a minute to run.
#
# **Before this.** [03 mirrored strategy](03_mirrored_strategy.ipynb) and [04 custom training
# loop](04_custom_training_loop.ipynb).
#
# **Questions.**
#
# - Which format do you need to serve a model, to share it, and to resume its training?
# - Can one device, or three, load a file that two replicas wrote?
# - Does a run that stops and resumes end with the same weights as a run that never stopped?
# - What does each format leave out?
#
# **Hardware.** Any machine; without GPUs the processor is divided into logical devices.

# %% tags=["parameters"]
dataset = "digits"  # "digits", "mnist" or "fashion_mnist"; at most 512 training images are used here
epochs = 2  # epochs before the checkpoint, and the same number after it
workers = 2  # replicas of the strategy that saves; loading is also tried with one replica more

# %%
import distlab  # first: it selects tf-keras, which must happen before TensorFlow is imported

import contextlib
import math
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import absl.logging
import numpy as np
import tensorflow as tf

from distlab import checks, data, devices, draw, models, quizzes

draw.apply_style()
tf.get_logger().setLevel("ERROR")  # no advice on retracing: this chapter makes many small models on purpose
absl.logging.set_verbosity("error")  # Keras's warning about `load_weights` is discussed in section 9
tf.keras.utils.disable_interactive_logging()  # `export` would print memory addresses
seed = 5
tf.keras.utils.set_random_seed(seed)
tf.config.experimental.enable_tensor_float_32_execution(False)  # else some GPUs round factors to 10 bits
scratch = tempfile.TemporaryDirectory()
folder = Path(scratch.name)
print(data.describe(dataset))

# %% [markdown] tags=["slide-table"]
# ## 1. The answer first
#
# | you want to | write | read |
# |---|---|---|
# | serve, without Keras | `model.export(path)` or `tf.saved_model.save(model, path)` | `tf.saved_model.load(path)` |
# | share a model with Keras programs | `model.save("model.keras")` | `tf.keras.models.load_model("model.keras")` |
# | share weights; both sides have the code | `model.save_weights("model.weights.h5")` | `model.load_weights(…)` |
# | resume any training loop | `tf.train.CheckpointManager(…).save()` | `checkpoint.restore(…)` |
# | resume `fit` after a crash | the callback `BackupAndRestore` | the same callback |
#
# Part 1 of this notebook is about the first three rows, part 2 about the last two.
#
# A **format** is a choice: a run consists of more than weights, and no format keeps everything.

# %% [markdown] tags=["slide-table"]
# What each format keeps. "+ line" means that the plain call does not restore it, but one more line of code does. The
# cells below try most of the rows.
#
# | part of a run | serving | Keras SavedModel | `.keras` | `.weights.h5` | checkpoint | BackupAndRestore |
# |---|---|---|---|---|---|---|
# | weights | yes | yes | yes | yes | yes | yes |
# | structure: layers and their order | no | yes | yes | no | no | no |
# | runs without Keras | yes | yes | no | no | no | no |
# | your own layer, without its class | yes | yes | no | no | no | no |
# | loss and metrics | no | yes | yes | no | no | no |
# | learning rate, as it is now | no | yes | yes | no | yes | yes |
# | optimizer state | no | + line | yes | + line | yes | yes |
# | epoch number | no | no | no | no | + line | yes |
# | data order | no | no | no | no | + line | no |
# | random state | no | no | no | no | + line | no |

# %% [markdown]
# ## Part 1: save to serve and share
#
# ### 2. The smallest whole program
#
# It trains on several replicas, saves once for sharing and once for serving, and loads both files under another
# strategy. `tf.saved_model.save` and `tf.saved_model.load` are the lecture's calls.

# %%
names = devices.at_least(workers + 1)
(x_train, y_train), (x_test, y_test) = data.load(dataset)
x_train, y_train, x_test = x_train[:512], y_train[:512], x_test[:256]

# %%
strategy = tf.distribute.MirroredStrategy(names[:workers])
with strategy.scope():
    model = models.mlp(dropout=0.0)
    model.compile(
        optimizer=tf.keras.optimizers.Adam(0.001),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
model.fit(x_train, y_train, batch_size=32 * workers, epochs=epochs, verbose=0)
reference = model.predict(x_test, verbose=0)

model.save(folder / "shared.keras")
tf.saved_model.save(model, str(folder / "served"))

one_device = tf.distribute.OneDeviceStrategy(names[0])
with one_device.scope():
    shared = tf.keras.models.load_model(folder / "shared.keras")
    served = tf.saved_model.load(str(folder / "served"))
serve = served.signatures["serving_default"]
outputs = serve(tf.constant(x_test))[model.output_names[0]]
checks.assert_equal([shared.predict(x_test, verbose=0), outputs], [reference] * 2, "outputs")

# %% [markdown]
# The shared file gives a Keras model again, which can be trained. The served folder gives functions: a **signature** is
# a traced function with named inputs and outputs, here one output named after the last layer.
#
# ### 3. Five ways to write
#
# - **SavedModel for serving**: a folder with TensorFlow's graph of the forward pass and the variables.
#   `tf.saved_model.save` works for any TensorFlow object. `model.export` is Keras's call; its function is named
#   `serve`.
# - **Keras SavedModel**: `model.save(…, save_format="tf")` adds what Keras needs to rebuild the model. Keras 3 no
#   longer offers it.
# - **Keras format**: one `.keras` file, a zip archive with the structure as JSON and the weights.
# - **Weights only**: one `.weights.h5` file.
# - **Checkpoint**: `tf.train.Checkpoint` writes the variables of the Python objects that you pass to it.


# %%
def save_in_every_format(model, folder):
    tf.saved_model.save(model, str(folder / "saved_model_save"))
    model.export(folder / "export")
    model.save(folder / "keras_saved_model", save_format="tf")
    model.save(folder / "model.keras")
    model.save_weights(folder / "model.weights.h5")
    tf.train.Checkpoint(model=model).write(str(folder / "checkpoint" / "model"))


trained = folder / "trained"
save_in_every_format(model, trained)

# %% [markdown] tags=["slide-predict"]
# **Predict.** Each weight takes 4 bytes. "Weights only" sounds like the smallest choice. How many times the bytes of
# the weights does each format take on disk?


# %% tags=["slide-output"]
def kilobytes(path):
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / 1000


weights_alone = 4 * model.count_params() / 1000
sizes = {path.name: kilobytes(path) for path in sorted(trained.iterdir())}
print("Size on disk, in multiples of the weights:")
print({name: round(size / weights_alone) for name, size in sizes.items()})

# %% [markdown] tags=["slide-takeaway", "slide-quiz"]
# The weights-only file holds three values per weight: the weight and Adam's two averages. In this version of Keras it
# contains the optimizer's state, whatever its name says. `tf.saved_model.save` writes the averages too. The export
# holds no optimizer, but writes
# each mirrored weight twice: it lists the variables under two names and does not recognise the wrapped ones as the
# same.
#
# **Question.** A model of 1 GB of float32 weights is trained with Adam on 8 replicas of one machine. How large is its
# checkpoint?
#
# 1. 1 GB
# 2. 8 GB or 24 GB
# 3. 3 GB
#
# <details>
# <summary>Answer</summary>
#
# 1. The misconception that a checkpoint is the weights. Adam keeps two more values per weight.
# 2. The misconception that each replica is saved. The copies of a mirrored variable are equal, so one is written.
# 3. **Right.** With plain SGD it would be 1 GB, with momentum 2 GB.
# </details>

# %% [markdown]
# ### 4. Load inside another strategy's scope
#
# A model's variables belong to the strategy in whose `scope()` they are created, and loading creates variables. So the
# scope in which you *load* decides where the model lives. Two formats contain the structure, and `load_model` builds
# the model from the file. The other two fill a model that your program has built. (`expect_partial()` switches off the
# warning about values in the file, such as Adam's averages, that have no variable yet.)


# %%
def new_model(learning_rate=0.001, dropout=0.0):
    model = models.mlp(dropout)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=tf.keras.optimizers.Adam(learning_rate), loss=loss, metrics=["accuracy"])
    return model


def load_as_model(path, build=new_model):
    """A Keras model from one of the formats; `build` makes the model that weights or a checkpoint fill."""
    if path.name in ("keras_saved_model", "model.keras"):
        return tf.keras.models.load_model(path)
    model = build()
    if path.name == "model.weights.h5":
        model.load_weights(path)
    else:
        tf.train.Checkpoint(model=model).read(str(path / "model")).expect_partial()
    return model


FOR_KERAS = ("keras_saved_model", "model.keras", "model.weights.h5", "checkpoint")

# %% [markdown] tags=["slide-predict"]
# **Predict.** The files were written by several replicas. They are loaded with no strategy, on one device, and on one
# replica more. By how much will the predictions differ?

# %% tags=["slide-output"]
# Two MirroredStrategies in one process would mix up each other's collectives, so the second one does without them.
one_more = tf.distribute.MirroredStrategy(names, cross_device_ops=tf.distribute.ReductionToOneDevice())
targets = {
    "no strategy": contextlib.nullcontext(),
    "one device": one_device.scope(),
    "one replica more": one_more.scope(),
}
for target, scope in targets.items():
    with scope:
        loaded = [load_as_model(trained / name) for name in FOR_KERAS]
    replicas = loaded[0].distribute_strategy.num_replicas_in_sync
    print(f"{target}: number of replicas {replicas}, each weight a {type(loaded[0].weights[0]).__name__}")
    outputs = [model.predict(x_test, verbose=0) for model in loaded]
    checks.assert_equal(outputs, [reference] * len(loaded), "outputs")

# %% [markdown] tags=["slide-takeaway"]
# No trace of the saving strategy is left. A mirrored variable is one logical value with equal copies; a format stores
# the value, and the loading scope makes as many copies as it needs. That is why the number of replicas may change
# between training and serving, or between two parts of one training.
#
# The comparison allows for rounding: with other batch shapes the processor may add in another order.
#
# ### 5. Serve without Keras
#
# A serving machine needs no layers and no `fit`. To make sure that Keras has no part in it, a second Python process
# blocks every import of Keras and loads what the two serving calls wrote.

# %%
program = """
import sys
sys.modules["keras"] = sys.modules["tf_keras"] = None  # any import of a Keras now fails
import numpy as np, tensorflow as tf

images = np.load(sys.argv[1] + "/images.npy")
exported = tf.saved_model.load(sys.argv[1] + "/export")
np.save(sys.argv[1] + "/export.npy", exported.serve(images))
saved = tf.saved_model.load(sys.argv[1] + "/saved_model_save")
np.save(sys.argv[1] + "/saved_model_save.npy", saved(images))
for name, loaded in {"export": exported, "tf.saved_model.save": saved}.items():
    print(name, "has the output", *loaded.signatures["serving_default"].structured_outputs)
"""

# %%
np.save(trained / "images.npy", x_test)
environment = os.environ | {"CUDA_VISIBLE_DEVICES": "-1"}  # no GPU on the serving machine
command = [sys.executable, "-c", program, str(trained)]
child = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
print(child.stdout.strip())
outputs = [np.load(trained / f"{name}.npy") for name in ("export", "saved_model_save")]
checks.assert_equal(outputs, [reference] * 2, "outputs")

# %% [markdown]
# Both hold the same graph. The names of the outputs differ, so a client must know which call wrote the folder.
#
# Which formats can be used without the code that builds the model? `load_model` and `predict`, and
# `tf.saved_model.load`, are tried on each.


# %%
def works(function, *arguments):
    """Whether TensorFlow or Keras accepts it; a mistake of ours, such as a wrong name, is still an error."""
    try:
        function(*arguments)
    except (OSError, ValueError, TypeError, AttributeError, RuntimeError, AssertionError, tf.errors.OpError):
        return False
    return True


def predict_as_model(path):
    tf.keras.models.load_model(path).predict(x_test, verbose=0)


print(f"{'can be used':18} as a Keras model  as a function")
for name in sizes:
    as_model = "yes" if works(predict_as_model, str(trained / name)) else "no"
    as_function = "yes" if works(tf.saved_model.load, str(trained / name)) else "no"
    print(f"{name:18} {as_model:16} {as_function}")

# %% [markdown] tags=["slide-predict"]
# **Predict.** A serving machine with several devices loads the export inside a mirrored strategy's scope. It calls the
# function in three ways: inside the scope, after leaving the scope, and on each replica through `strategy.run`. Which
# of these calls work?

# %% tags=["slide-output"]
with one_more.scope():
    serving = tf.saved_model.load(str(trained / "export"))
    try:
        serving.serve(x_test)
    except tf.errors.InvalidArgumentError as error:
        print("inside the scope:", str(error).partition("failed: [")[2].partition(".")[0])
print("after leaving the scope:", end=" ")
checks.assert_equal([serving.serve(x_test)], [reference], "outputs")


# %% tags=["slide-output", "slide-continued"]
@tf.function
def on_each_replica(batch):
    return one_more.run(serving.signatures["serving_default"], args=(batch,))["output_0"]


batches = tf.data.Dataset.from_tensor_slices(x_test).batch(128)
outputs = []
for batch in one_more.experimental_distribute_dataset(batches):
    outputs.extend(one_more.experimental_local_results(on_each_replica(batch)))
print("on each replica, in", len(outputs), "parts:", end=" ")
checks.assert_equal([np.concatenate(outputs)], [reference], "outputs")

# %% [markdown] tags=["slide-takeaway"]
# Load inside the scope, call outside it. Inside `scope()` the program is in *cross-replica context*: it speaks for
# all replicas at once, and a restored graph cannot tell whose copy of a variable to read. `strategy.run` puts the
# call into *replica context*, where each replica reads its own copy and gets its own part of the batch.
#
# ### 6. Your own layers
#
# A custom layer multiplies by one learned factor. **Predict.** Its class is defined in this very notebook. Which
# formats load a model that contains it?


# %%
class Scale(tf.keras.layers.Layer):
    def build(self, input_shape):
        self.factor = self.add_weight(name="factor", shape=(), initializer="ones")

    def call(self, values):
        return self.factor * values


with strategy.scope():
    layers = tf.keras.layers
    scaled = tf.keras.Sequential([layers.Input((28, 28)), layers.Flatten(), Scale(), layers.Dense(10)])

# %%
expected = scaled.predict(x_test, verbose=0)
scaled.save(folder / "scaled", save_format="tf")
scaled.save(folder / "scaled.keras")
scaled.export(folder / "scaled_export")

rebuilt = tf.keras.models.load_model(folder / "scaled", compile=False)
serving = tf.saved_model.load(str(folder / "scaled_export"))
print("Keras SavedModel and export:", end=" ")
checks.assert_equal([rebuilt.predict(x_test, verbose=0), serving.serve(x_test)], [expected] * 2, "outputs")
print("saved layer: ", Scale)
print("loaded layer:", type(rebuilt.layers[1]))
try:
    tf.keras.models.load_model(folder / "scaled.keras")
except TypeError as error:
    print("Keras format:", str(error).partition(".")[0])
with tf.keras.saving.custom_object_scope({"Scale": Scale}):
    restored = tf.keras.models.load_model(folder / "scaled.keras", compile=False)
print("Keras format, with the class:", end=" ")
checks.assert_equal([restored.predict(x_test, verbose=0)], [expected], "outputs")

# %% [markdown]
# The Keras format refuses a class that is not registered, even if it exists, because the file stores a *name* and no
# code. A SavedModel stores the traced graph of each layer: Keras builds a placeholder class that computes the same, but
# has none of your methods.
#
# The decorator `@tf.keras.saving.register_keras_serializable(package="course")` above the class, or a
# `custom_object_scope` around the loading as here, connects the name to its class. The program that loads must still
# contain the class.
#
# ### 7. Loss and metrics
#
# Can a loaded model evaluate itself, if the program that loads it does not compile it again?


# %%
def evaluate(name):
    load_as_model(trained / name, build=models.mlp).evaluate(x_train, y_train, verbose=0)


print("can evaluate themselves:", *(name for name in FOR_KERAS if works(evaluate, name)))

# %% [markdown] tags=["slide-predict"]
# The loss is Python code, not a variable, so a weights file or a checkpoint cannot contain it.
#
# ## Part 2: save to resume
#
# ### 8. The smallest program that resumes
#
# To resume a run tomorrow, you need the model, its optimizer and the number of epochs done. `CheckpointManager` names
# the files, keeps the newest two, and finds them again; `restore(None)`, on the first start, does nothing.
#
# The global batch must divide evenly among the replicas of both mirrored strategies: Keras averages inside each
# replica first, so uneven shares would change the gradient. The order of the images is a function of the epoch's
# number, `shuffle(seed=epoch)`; section 10 shows why.
#
# **Predict.** One run makes all epochs. Another stops half-way and is started again. Do they end with the same
# weights?

# %%
multiple = math.lcm(workers, workers + 1)
global_batch_size = multiple * max(1, round(64 / multiple))
steps = len(x_train) // global_batch_size
images = tf.data.Dataset.from_tensor_slices((x_train, y_train))


def training_data(first_epoch):
    def one_epoch(epoch):
        shuffled = images.shuffle(len(x_train), seed=epoch, reshuffle_each_iteration=False)
        return shuffled.batch(global_batch_size, drop_remainder=True)

    return tf.data.Dataset.range(first_epoch, 1000).flat_map(one_epoch)


# %%
def train(model, first_epoch, last_epoch, callbacks=None):
    return model.fit(
        training_data(first_epoch),
        initial_epoch=first_epoch,
        epochs=last_epoch,
        steps_per_epoch=steps,
        callbacks=callbacks,
        verbose=0,
    )


def run(name, last_epoch):
    """The whole program: started again, it resumes from its newest checkpoint."""
    tf.keras.utils.set_random_seed(seed)
    with strategy.scope():
        model = new_model()
    epochs_done = tf.Variable(0)
    checkpoint = tf.train.Checkpoint(model=model, epochs_done=epochs_done)
    manager = tf.train.CheckpointManager(checkpoint, folder / name, max_to_keep=2)
    checkpoint.restore(manager.latest_checkpoint)
    print(name, "starts with epoch", int(epochs_done))
    while int(epochs_done) < last_epoch:
        train(model, int(epochs_done), int(epochs_done) + 1)
        epochs_done.assign_add(1)
        manager.save()
    return model.get_weights()


# %% tags=["slide-output"]
run("interrupted", epochs)  # the program ends here; then it is started again
resumed = run("interrupted", 2 * epochs)
checks.assert_equal_weights(resumed, run("straight", 2 * epochs))

# %% [markdown]
# ### 9. The optimizer
#
# What would be lost with another format? With gradient $g_t$ Adam computes
#
# $$m_t = \beta_1 m_{t-1} + (1 - \beta_1) g_t \qquad v_t = \beta_2 v_{t-1} + (1 - \beta_2) g_t^2$$
#
# $$w_t = w_{t-1} - \eta \, \frac{m_t / (1 - \beta_1^t)}{\sqrt{v_t / (1 - \beta_2^t)} + \epsilon}$$
#
# so the next weight depends on the averages $m$ and $v$ and on the step count $t$, too. (Keras adds $\epsilon$ to
# $\sqrt{v_t}$ before the correction.)

# %% [markdown] tags=["slide-text", "slide-predict"]
# The run below is saved half-way in every format. Its learning rate was changed after `compile`, as the callback
# `LearningRateScheduler` does. Two callbacks write during `fit`: `ModelCheckpoint` a file after each epoch,
# `BackupAndRestore` the newest state.
#
# **Predict.** Four formats, all with three values per weight. Each is loaded on one device and trained to the end.
# Which continue the run exactly? Which learning rate does each model have?

# %%
half_way, learning_rate = folder / "half_way", 0.0005
every_epoch = tf.keras.callbacks.ModelCheckpoint(str(folder / "epoch_{epoch}.keras"))
backup = tf.keras.callbacks.BackupAndRestore(str(folder / "backup"), delete_checkpoint=False)
with strategy.scope():
    model = new_model()
start_weights = model.get_weights()
model.optimizer.learning_rate.assign(learning_rate)
train(model, 0, epochs, callbacks=[every_epoch, backup])
save_in_every_format(model, half_way)
print("written by ModelCheckpoint:", *sorted(file.name for file in folder.glob("epoch_*.keras")))

# %%
with strategy.scope():
    straight = new_model(learning_rate)
straight.set_weights(start_weights)
train(straight, 0, 2 * epochs)
uninterrupted = straight.get_weights()

# %% tags=["slide-output"]
loaded = {name: load_as_model(half_way / name) for name in FOR_KERAS}
print("as loaded, all four:", end=" ")
loaded_weights = [weight for copy in loaded.values() for weight in copy.get_weights()]
checks.assert_equal_weights(loaded_weights, len(loaded) * model.get_weights())
print(f"{'format':18} learning rate  ends with")
for name, model in loaded.items():
    rate = model.optimizer.learning_rate.numpy()
    model.optimizer.learning_rate.assign(learning_rate)  # here only the optimizer's state may differ
    train(model, epochs, 2 * epochs)
    is_equal = checks.largest_difference(model.get_weights(), uninterrupted) <= checks.TOLERANCE
    print(f"{name:18} {rate:<14g} {'the same' if is_equal else 'other'} weights")

# %% [markdown] tags=["slide-takeaway"]
# Two formats loaded the same weights, trained on the same images in the same order, and ended elsewhere. Both files
# hold Adam's state; the loading calls drop it. The only hint is a warning in the log, for the weights-only file.
#
# The optimizer creates its variables at its first step. Before that there is nothing to load into, and `load_weights`
# does not wait when it reads an `.h5` file. A checkpoint waits and fills variables as they appear. For a Keras
# SavedModel, Keras makes a new optimizer from the compile arguments.
#
# One more line fixes each: create the optimizer's variables first; or read the SavedModel's `variables` folder, which
# is a checkpoint. Then the checkpoint continues with one replica more.


# %%
def built_model():
    model = new_model()
    model.optimizer.build(model.trainable_variables)  # the one more line
    return model


from_weights = load_as_model(half_way / "model.weights.h5", build=built_model)
from_saved_model = load_as_model(half_way / "keras_saved_model")
variables = half_way / "keras_saved_model" / "variables" / "variables"
from_saved_model.load_weights(str(variables)).expect_partial()  # the one more line
for model in (from_weights, from_saved_model):
    model.optimizer.learning_rate.assign(learning_rate)
    train(model, epochs, 2 * epochs)
    checks.assert_equal_weights(model.get_weights(), uninterrupted)

# %%
with one_more.scope():
    model = load_as_model(half_way / "checkpoint")
train(model, epochs, 2 * epochs)
checks.assert_equal_weights(model.get_weights(), uninterrupted)

# %% [markdown]
# **Question.** A colleague saves with `save_weights`, loads, continues to train, and sees the loss jump up and recover.
# With plain SGD it never happened. Why?
#
# 1. The file is damaged
# 2. The learning rate was too high from the start
# 3. Adam's averages were lost
# 4. The number of replicas changed
#
# <details>
# <summary>Answer</summary>
#
# 1. The misconception that a loading error shows as a worse loss. A damaged file usually raises an error, and an intact
#    one shows the same jump.
# 2. Then the first part would have shown it.
# 3. **Right.** The first step after a restart is about $\eta$ in size for every weight, as at the very beginning. Plain
#    SGD has no state.
# 4. At the same global batch size that changes nothing.
# </details>
#
# ### 10. Position and data order
#
# A pipeline shuffles with a fixed seed. **Predict.** After two epochs the program is started again. In which order do
# the numbers come?


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

# %% [markdown]
# The order is new in each epoch, drawn from a generator that starts at the seed and lives in the dataset object. A
# restart makes a new object, so epoch 2 sees the order of epoch 0 again. No error is raised: the network sees some
# orders twice and others never. The global seed of `set_random_seed` is mixed into `seed=7`, so a restarted program
# must set both.
#
# There are two fixes. The first makes the order a function of the epoch's number, as `training_data` does: then the
# epoch is all there is to remember. The second saves the iterator, with its place and its shuffle buffer.

# %%
tf.keras.utils.set_random_seed(seed)
iterator = iter(pipeline().repeat())
first_part = [int(next(iterator)) for _ in range(11)]
tf.train.Checkpoint(iterator=iterator).write(str(folder / "iterator"))
print("without a stop:", [int(next(iterator)) for _ in range(8)])
restored = iter(pipeline().repeat())
tf.train.Checkpoint(iterator=restored).read(str(folder / "iterator"))
print("restored:      ", [int(next(restored)) for _ in range(8)])

iterator = iter(images.shuffle(len(x_train)))
next(iterator)
tf.train.Checkpoint(iterator=iterator).write(str(folder / "of_images" / "iterator"))
multiples = kilobytes(folder / "of_images") / weights_alone
print(f"An iterator over {len(x_train)} images takes {multiples:.1f} times the bytes of the weights;", end=" ")
print(f"the model's checkpoint takes {sizes['checkpoint'] / weights_alone:.1f} times.")
try:
    distributed = strategy.experimental_distribute_dataset(training_data(0))
    tf.train.Checkpoint(iterator=iter(distributed))
except ValueError as error:
    print("A distributed iterator:", str(error).partition(",")[0].partition(" (")[0])

# %% [markdown] tags=["slide-text", "slide-predict"]
# The iterator of a distributed dataset cannot be put into a checkpoint at all, and a saved shuffle buffer contains the
# images themselves. For a distributed run, use the first fix: make the order a function of the epoch's number.
#
# #### `fit` after a crash
#
# In section 9 `BackupAndRestore` kept its backup, as after a run that was killed when `epochs` epochs were done. Now we
# start the program again: a new model, the same callback, `fit` for all epochs.
#
# **Predict.** With which epoch does `fit` begin? Does it end with the same weights as the uninterrupted run?


# %% tags=["slide-output"]
def start_again(first_order):
    # `fit` removes the backup when it has finished, so it works on a copy.
    copy = shutil.copytree(folder / "backup", folder / "backup_copy", dirs_exist_ok=True)
    with strategy.scope():
        model = new_model()
    restore = tf.keras.callbacks.BackupAndRestore(str(copy))
    settings = {"epochs": 2 * epochs, "steps_per_epoch": steps, "verbose": 0}
    history = model.fit(training_data(first_order), callbacks=[restore], **settings)
    return history.epoch, checks.largest_difference(model.get_weights(), uninterrupted) <= checks.TOLERANCE


for description, first_order in {"program unchanged": 0, "right data order": epochs}.items():
    epochs_run, is_equal = start_again(first_order)
    print(f"{description}: runs epochs {epochs_run}, ends with {'the same' if is_equal else 'other'} weights")

# %% [markdown] tags=["slide-takeaway"]
# `fit` finds the epoch, and weights, optimizer state and learning rate are back. The unchanged program still ends
# elsewhere: the dataset that it passes to `fit` begins with the order of epoch 0. A callback cannot move your pipeline.
# The result is exact only if the program starts the pipeline at the right epoch.
#
# The other formats do not know the epoch: after loading one of them, `fit` begins with epoch 0 unless you pass
# `initial_epoch`.

# %% [markdown]
# ### 11. Random state
#
# Dropout draws random numbers. **Predict.** The same experiment with dropout 0.2 on one device, a checkpoint, and the
# right data order: is the resumed run equal?


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
print("the same run twice:", end=" ")
checks.assert_equal_weights(dropout_run(resume=False), straight)
is_equal = checks.largest_difference(dropout_run(resume=True), straight) <= checks.TOLERANCE
print("stopped and resumed: ends with", "the same weights" if is_equal else "other weights")

# %% [markdown]
# The seed makes the whole run repeatable, but after the restart dropout draws the numbers of epoch 0 again. The
# checkpoint has every variable of the model and its optimizer; the state of Keras's dropout is not one of them.
#
# A generator that is an object, `tf.random.Generator`, can be put into a checkpoint like any other trackable object.
# The state behind `tf.random.uniform` is not such an object, and no format brings it back.

# %%
generator = tf.random.Generator.from_seed(seed)
generator.uniform([1000])
tf.train.Checkpoint(generator=generator).write(str(folder / "generator"))
print("without a stop:", generator.uniform([8], maxval=100, dtype=tf.int32).numpy())
generator = tf.random.Generator.from_seed(seed)  # the restarted program
tf.train.Checkpoint(generator=generator).read(str(folder / "generator"))
print("restored:      ", generator.uniform([8], maxval=100, dtype=tf.int32).numpy())

# %% [markdown] tags=["slide-quiz"]
# With several workers, each a process, one more question arises: who writes?
# [Notebook 07](07_multi_worker.ipynb) answers it.
#
# **Question.** What must change for a model with dropout so that the resumed run equals the uninterrupted one?
#
# 1. The format: take `.keras`
# 2. Set the seed again after loading
# 3. Draw the masks from a generator that the checkpoint holds, or from a seed computed from the step
# 4. Nothing, it is only noise
#
# <details>
# <summary>Answer</summary>
#
# 1. The misconception that a format with more structure keeps more state. It has no random state either.
# 2. That repeats the numbers of epoch 0.
# 3. **Right.** The same two fixes as for the data order.
# 4. A fair answer for the accuracy, but you lose the proof by equality, and with it an easy way to find errors.
# </details>

# %% [markdown]
# ## Quiz
#
# Ten questions that mark themselves; with `seed=2` they have other numbers.

# %%
quizzes.ask("05")

# %% [markdown]
# ## Recap
#
# - To serve: `tf.saved_model.save` or `export`. To share: the Keras format. To resume: a checkpoint.
# - The scope in which a file is loaded decides where the model lives; the number of replicas is not in the file.
# - Adam's state is in a weights-only file, but the plain loading call drops it without an error.
# - Without dropout, a checkpoint continues a run exactly.
# - No format brings the data order back by itself: make it a function of the epoch's number.
# - A SavedModel runs without Keras and your classes.
#
# **Next.** [Lab 05](../labs/05_save_and_load/lab.ipynb), [06 collectives](06_collectives_and_ring_all_reduce.ipynb):
# how replicas add their gradients.
#
# **Sources.**
# - D. P. Kingma, J. Ba (2015), *Adam: a method for stochastic optimization*,
#   [arXiv:1412.6980](https://arxiv.org/abs/1412.6980).
# - D. G. Murray et al. (2021), *tf.data: a machine learning data processing framework*,
#   [arXiv:2101.12127](https://arxiv.org/abs/2101.12127).
# - TensorFlow guides: [Training checkpoints](https://www.tensorflow.org/guide/checkpoint),
#   [Using the SavedModel format](https://www.tensorflow.org/guide/saved_model).
