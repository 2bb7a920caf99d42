# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 05 Save and load
#
# **Goal.** Write a distributed run to disk so that it can be served, shared, loaded under another strategy, or resumed
# with exactly the result of an uninterrupted run; and know what each format leaves out.
#
# **Time.** 45 minutes to read, under a minute to run.
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
# **Hardware.** Any machine; with fewer than `workers` + 1 GPUs the processor is divided into logical devices.

# %% tags=["parameters"]
dataset = "digits"  # not used: this chapter takes scikit-learn's digits of 8 × 8 pixels
epochs = 6  # epochs before a run is saved, and the same number after it
workers = 2  # replicas of the strategy that saves, 1 to 4; one replica more also loads

# %% jupyter={"source_hidden": true}
import distlab  # first: it selects tf-keras, which must happen before TensorFlow is imported

import contextlib
import json
import logging
import os
import subprocess
import sys
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import tensorflow as tf
from IPython.display import Markdown

from distlab import checks, draw, quizzes

draw.apply_style()
tf.get_logger().setLevel("ERROR")  # no advice: many models on purpose
tf.config.experimental.enable_tensor_float_32_execution(False)  # exact factors
tf.keras.utils.disable_interactive_logging()  # `export` would print memory addresses
logging.basicConfig(stream=sys.stdout, format="%(levelname)s: %(message)s", force=True)

# %% [markdown]
# ## 1. A model moves to another machine
#
# You train on eight GPUs and serve on one processor, or tomorrow the cluster gives you another number of GPUs. So a
# file must not depend on the strategy that wrote it.
#
# The next two cells are a whole program; with the parameters above it also runs as a separate file. It trains on
# several replicas, saves the model, loads it on one device, and trains both models to the end. The batch is divided
# evenly, since Keras averages inside each replica first ([chapter 03](03_mirrored_strategy.ipynb)).

# %% tags=["program"]
import tempfile

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

kind = "GPU" if len(tf.config.list_physical_devices("GPU")) > workers else "CPU"
if kind == "CPU":  # divide the processor into logical devices
    parts = [tf.config.LogicalDeviceConfiguration()] * (workers + 1)
    processor = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(processor, parts)
names = [f"{kind}:{number}" for number in range(workers + 1)]
images, labels = load_digits(return_X_y=True)
batch_size = 11 * workers * (workers + 1)  # divides evenly among `workers` and one more
images, labels = np.float32(images[: 8 * batch_size] / 16), labels[: 8 * batch_size]


def network(dropout=0.0):
    layers = tf.keras.layers
    hidden = [layers.Dense(1024, activation="relu"), layers.Dropout(dropout)]
    return tf.keras.Sequential([layers.Input((64,)), *hidden, layers.Dense(10)])


def new_model(dropout=0.0):
    tf.keras.utils.set_random_seed(5)
    model = network(dropout)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=tf.keras.optimizers.Adam(0.001), loss=loss, metrics=["accuracy"])
    return model


# %% tags=["program", "slide-code", "slide-output"]
def train(model, first_epoch, last_epoch, **more):
    settings = {"batch_size": batch_size, "shuffle": False, "verbose": 0} | more
    model.fit(images, labels, initial_epoch=first_epoch, epochs=last_epoch, **settings)


strategy = tf.distribute.MirroredStrategy(names[:workers])
with strategy.scope():
    model = new_model()
train(model, 0, epochs)
scratch = tempfile.TemporaryDirectory()  # removed when the program ends
model.save(f"{scratch.name}/model.keras")

with tf.distribute.OneDeviceStrategy(names[0]).scope():
    loaded = tf.keras.models.load_model(f"{scratch.name}/model.keras")
for copy in (model, loaded):
    train(copy, epochs, 2 * epochs)
    print("loss, accuracy:", np.round(copy.evaluate(images, labels, verbose=0), 3))

# %% tags=["slide-output", "slide-continued"]
folder = Path(scratch.name)
checks.assert_equal_weights(loaded.get_weights(), model.get_weights())
uninterrupted = model.get_weights()

# %% [markdown] tags=["slide-text", "slide-picture"]
# The replicas are gone, and the training reached the same weights. That works because the file keeps more than the
# weights. A run consists of many parts, and every **format** keeps a selection of them:
#
# ![For each of seven formats, a stack of boxes with the parts of a run that it keeps](../figures/05_formats.svg)
#
# The picture shows what is *in* the files. This chapter asks what you get *back*, which is sometimes less.

# %% [markdown] tags=["slide-table"]
# | you want to | write | read |
# |---|---|---|
# | serve, without Keras | `model.export(path)` or `tf.saved_model.save(model, path)` | `tf.saved_model.load(path)` |
# | share a model within the same Keras | `model.save("model.keras")` | `tf.keras.models.load_model("model.keras")` |
# | share weights; both sides have the code | `model.save_weights("model.weights.h5")` | `model.load_weights(…)` |
# | resume any training loop | `tf.train.CheckpointManager(…).save()` | `checkpoint.restore(…)` |
# | resume `fit` after a crash | the callback `BackupAndRestore` | the same callback |

# %% [markdown]
# ## 2. Save to serve and share
#
# A **SavedModel** is a folder with the graph of the forward pass and the variables. `tf.saved_model.save` writes one of
# any `tf.Module`, `model.export` is Keras's for serving, and `model.save(…, save_format="tf")` adds what Keras needs to
# rebuild the model.
#
# The others contain no graph. A `.keras` file is a zip archive of JSON and arrays, a `.weights.h5` file has arrays
# only, and `tf.train.Checkpoint` writes the variables of the objects that you pass.
#
# > **Keras 3** has no `save_format`, and its `load_model` refuses a SavedModel. It can only wrap one as a layer:
# > `tf.keras.layers.TFSMLayer(path, call_endpoint="serve")` for what `export` wrote, `"serving_default"` for the other
# > two. It reads a `.keras` file of legacy Keras with `compile=False` alone, and legacy Keras reads none of Keras 3.


# %%
def save_in_every_format(model, folder):
    tf.saved_model.save(model, str(folder / "saved_model_save"))
    model.export(folder / "export")
    model.save(folder / "keras_saved_model", save_format="tf")
    model.save(folder / "model.keras")
    model.save_weights(folder / "model.weights.h5")
    tf.train.Checkpoint(model=model).write(str(folder / "checkpoint" / "model"))


save_in_every_format(model, folder / "trained")
SAVED_MODELS = ("export", "saved_model_save", "keras_saved_model")
OTHERS = ("model.keras", "model.weights.h5", "checkpoint")
FORMATS = {name: folder / "trained" / name for name in SAVED_MODELS + OTHERS}
TO_TRAIN = ("keras_saved_model", *OTHERS)

# %% [markdown]
# **Predict.** Each weight takes 4 bytes. How many times the bytes of the weights does each format take on disk, and
# which one is the smallest?


# %%
def bytes_on_disk(path):
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)


print("Size on disk, in multiples of the weights:")
for name, path in FORMATS.items():
    print(f"  {name:18} {bytes_on_disk(path) / (4 * model.count_params()):.0f}")

# %% [markdown] tags=["slide-takeaway", "slide-quiz"]
# The weights-only file holds three values per weight, whatever its name says: the weight and Adam's two averages. The
# export has no optimizer, but it writes each mirrored weight twice, under two names.
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
# 1. A checkpoint is more than the weights: Adam keeps two more values per weight.
# 2. The copies of a mirrored variable are equal, so only one is written.
# 3. **Right.** With momentum it would be 2 GB, and with plain SGD 1 GB in Keras 3. Legacy Keras writes 2 GB for plain
#    SGD, too: it keeps a momentum that it never uses.
# </details>

# %% [markdown] tags=["slide-text", "slide-predict"]
# ### Load inside another strategy's scope
#
# A model's variables belong to the strategy in whose `scope()` they are created, and loading creates variables. So the
# scope in which you *load* decides where the model lives. `load_model` builds the model from the file. Weights and
# checkpoints have no structure; they fill a model that your program has built.
#
# **Predict.** The files were written by several replicas. They are loaded with no strategy, on one device, and on one
# replica more. By how much will the predictions differ?


# %%
def load_as_model(path, build=network):
    if path.name in ("keras_saved_model", "model.keras"):
        return tf.keras.models.load_model(path)
    model = build()
    if path.name == "model.weights.h5":
        model.load_weights(path)
    else:
        # `expect_partial`: some values in the file may never be used.
        tf.train.Checkpoint(model=model).read(str(path / "model")).expect_partial()
    return model


# %% tags=["slide-output"]
# A second MirroredStrategy with other devices would collide with the collectives of the
# first, so this one uses none.
one_more = tf.distribute.MirroredStrategy(names, tf.distribute.ReductionToOneDevice())
one_device = tf.distribute.OneDeviceStrategy(names[0])
expected = model.predict(images, verbose=0)
for target in (tf.distribute.get_strategy(), one_device, one_more):
    with target.scope():
        models = [load_as_model(FORMATS[name]) for name in TO_TRAIN]
    print(target.num_replicas_in_sync, type(models[0].weights[0]).__name__, end=": ")
    outputs = [model.predict(images, verbose=0) for model in models]
    checks.assert_equal(outputs, [expected] * len(outputs), "outputs")

# %% [markdown] tags=["slide-takeaway"]
# No trace of the saving strategy is left. A mirrored variable is one logical value with equal copies; a format stores
# the value, and the loading scope makes as many copies as it needs. So the number of replicas may change between
# training and serving, or in the middle of a training.
#
# ### Serve without Keras
#
# A serving machine needs no layers and no `fit`. So a second Python process blocks every import of Keras and tries to
# load what each call wrote. A SavedModel contains **signatures**: traced functions with named inputs and outputs.
# `serving_default` is the one that servers call.

# %%
program = """
import json, sys
sys.modules["keras"] = sys.modules["tf_keras"] = None  # any import of a Keras now fails
import numpy as np, tensorflow as tf

folder, *names = sys.argv[1:]
results = {}
for name in names:
    try:
        serve = tf.saved_model.load(f"{folder}/{name}").signatures["serving_default"]
    except OSError:
        continue
    [(output, values)] = serve(tf.constant(np.load(folder + "/images.npy"))).items()
    difference = np.abs(values - np.load(folder + "/expected.npy")).max()
    results[name] = [output, float(difference)]
print(json.dumps(results))
"""

# %%
np.save(folder / "trained" / "images.npy", images)
np.save(folder / "trained" / "expected.npy", expected)
environment = os.environ | {"CUDA_VISIBLE_DEVICES": "-1"}  # no GPU on the serving machine
command = [sys.executable, "-c", program, str(folder / "trained"), *FORMATS]
child = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
served = json.loads(child.stdout)
for name, (output, difference) in served.items():
    print(f"{name:18} output {output:9} differs by {difference:.5f}")

# %% [markdown] tags=["slide-predict"]
# Three of the six run without Keras. All three hold the same graph, but their outputs have different names, so a client
# should read the name from the signature, as this program does.
#
# **Predict.** A serving machine with several devices loads the export inside a mirrored strategy's scope. It then calls
# the function inside the scope, after leaving it, and on each replica through `strategy.run`. Which calls work?

# %% tags=["slide-output"]
with one_more.scope():
    serving = tf.saved_model.load(str(FORMATS["export"]))
batches = tf.data.Dataset.from_tensor_slices(images).batch(len(images))
batch = next(iter(one_more.experimental_distribute_dataset(batches)))


@tf.function
def on_each_replica(batch):
    return one_more.run(lambda part: serving.serve(part), args=(batch,))


def through_run():
    return np.concatenate(one_more.experimental_local_results(on_each_replica(batch)))


calls = {"direct call": lambda: serving.serve(images), "strategy.run": through_run}
for place, scope in {"inside": one_more.scope, "after": contextlib.nullcontext}.items():
    for name, call in calls.items():
        print(f"{name}, {place} the scope:", end=" ")
        try:
            with scope():
                print(f"differs by {np.abs(call() - expected).max():.5f}")
        except tf.errors.InvalidArgumentError as error:
            print(str(error).partition("failed: [")[2].partition(".")[0])

# %% [markdown] tags=["slide-takeaway"]
# Load inside the scope, and do not call the function directly there. Inside `scope()` the program is in *cross-replica
# context*: it speaks for all replicas at once, and TensorFlow cannot tell whose copy of a variable to read, so it
# passes a placeholder to the restored graph, which fails. After the scope a direct call reads one copy.
# `strategy.run` puts the call into *replica context*, inside the scope or not: each replica reads its own copy and gets
# its own part of the batch.
#
# ### Your own layers and models
#
# Which files need your code? The custom layer below multiplies by one learned factor. Its class is defined in this very
# process, but not registered.


# %%
class Scale(tf.keras.layers.Layer):
    def build(self, input_shape):
        self.factor = self.add_weight(name="factor", shape=(), initializer="ones")

    def call(self, values):
        return self.factor * values


def works(function, *arguments):
    """Whether TensorFlow or Keras accepts it."""
    try:
        function(*arguments)
    except (OSError, ValueError, TypeError, AttributeError, RuntimeError):
        return False
    return True


def load_alone(path):
    """A model or a function from the file alone: by Keras, else by TensorFlow."""
    if not works(tf.keras.models.load_model, path):
        tf.saved_model.load(path)


layers = [tf.keras.layers.Input((64,)), Scale(), tf.keras.layers.Dense(10)]
save_in_every_format(tf.keras.Sequential(layers), folder / "scaled")
scaled = [name for name in FORMATS if works(load_alone, str(folder / "scaled" / name))]
print("loaded:", *scaled)
try:
    tf.keras.models.load_model(folder / "scaled" / "model.keras")
except TypeError as error:
    print("model.keras:", str(error).partition(".")[0])

# %% [markdown]
# The Keras format refuses a class that is not registered, because the file stores a *name* and no code. Put
# `@tf.keras.saving.register_keras_serializable(package="course")` above the class,  or pass the class when you load:
# `load_model(path, custom_objects={"Scale": Scale})`. A Keras SavedModel stores the traced graph of each layer instead:
# Keras builds a placeholder class that computes the same, but has none of your methods.
#
# A model that is written as a class has one more trap: it gets its weights at its first call. A `Sequential` without
# `Input` is the same. What happens if it is saved before?

# %%
unbuilt = tf.keras.Sequential([tf.keras.layers.Dense(10)])
try:
    unbuilt.export(folder / "unbuilt")
except ValueError as error:
    print("export:", error)
with warnings.catch_warnings(record=True) as caught:
    unbuilt.save(folder / "unbuilt.keras")
print(".keras:", caught[0].message)

# %% [markdown]
# The Keras format only warns, and writes a file without a single weight. So build the model or call it once before you
# save it.
#
# ## 3. Save to resume
#
# ### The smallest program that resumes
#
# To resume a run tomorrow, you need the model, its optimizer and the position in the training. A `Checkpoint` takes all
# of them as one object. `CheckpointManager` names the files, keeps the newest two, and finds them again. On the first
# start, `restore(None)` does nothing, so the same program starts a run and resumes it.


# %% tags=["slide-code", "slide-output"]
def run(path, last_epoch):
    """The whole program: started again, it resumes from its newest checkpoint."""
    with strategy.scope():
        model = new_model()
    epochs_done = tf.Variable(0)
    checkpoint = tf.train.Checkpoint(model=model, epochs_done=epochs_done)
    manager = tf.train.CheckpointManager(checkpoint, path, max_to_keep=2)
    checkpoint.restore(manager.latest_checkpoint)
    print("starts with epoch", int(epochs_done))
    while int(epochs_done) < last_epoch:
        train(model, int(epochs_done), int(epochs_done) + 1)
        epochs_done.assign_add(1)
        manager.save()
    return model.get_weights()


run(folder / "resumed", epochs)  # the program ends here; then it is started again
checks.assert_equal_weights(run(folder / "resumed", 2 * epochs), uninterrupted)

# %% [markdown] tags=["slide-takeaway"]
# The resumed run is the run without a stop.
#
# A custom loop resumes in the same way, with the optimizer named in the checkpoint. Count *steps* there, as [lab
# 05](../labs/05_save_and_load/lab.ipynb) does, and skip those of the current epoch,
# `batches.skip(step % steps_per_epoch)`: with the same order of the data a run then also resumes in the middle of an
# epoch. Add the metrics to the checkpoint as well, or the mean loss of that epoch covers only the steps after the
# restart.

# %% [markdown] tags=["slide-text", "slide-predict"]
# ### What the optimizer remembers
#
# What would be lost with another format? With gradient $g_t$ and learning rate $\eta$ Adam computes
#
# $$m_t = \beta_1 m_{t-1} + (1 - \beta_1) g_t \qquad v_t = \beta_2 v_{t-1} + (1 - \beta_2) g_t^2$$
#
# $$w_t = w_{t-1} - \eta \, \frac{m_t / (1 - \beta_1^t)}{\sqrt{v_t / (1 - \beta_2^t)} + \epsilon}$$
#
# so the next weight depends on the averages $m$ and $v$ and on the step count $t$, too. (Keras adds $\epsilon$
# earlier.)
#
# The run below changes its learning rate after `compile` and is saved half-way in every format. Each copy is loaded on
# one device and trained to the end on the same batches.
#
# **Predict.** Four formats, all with three values per weight. Which continue the run exactly? What will you see in the
# loss of the others?


# %%
def losses_of(model, first_epoch, last_epoch):
    """Train, and give the loss of all images after each step."""
    losses = []

    def record(step, logs):
        losses.append(float(model.loss(labels, model(images))))

    model.optimizer.learning_rate.assign(0.003)  # in each copy, too
    callback = tf.keras.callbacks.LambdaCallback(on_train_batch_end=record)
    train(model, first_epoch, last_epoch, callbacks=[callback])
    return losses


with strategy.scope():
    model = new_model()
before = losses_of(model, 0, epochs)
half_way = folder / "half_way"
save_in_every_format(model, half_way)
after = losses_of(model, epochs, 2 * epochs)
resumed = {name: load_as_model(half_way / name, build=new_model) for name in TO_TRAIN}
rates = {name: float(copy.optimizer.learning_rate) for name, copy in resumed.items()}
curves = {name: losses_of(copy, epochs, 2 * epochs) for name, copy in resumed.items()}

# %% jupyter={"source_hidden": true} tags=["slide-output"]
straight, lost = before + after, curves["model.weights.h5"]
figure, axes = plt.subplots(figsize=(7.2, 3.2))
steps = range(1, len(straight) + 1)
axes.plot(steps, straight, label="not interrupted; also .keras and checkpoint", marker="")
resumed_steps = steps[len(before) - 1 :]  # from the point where it was saved
jump = [before[-1], *lost]
axes.plot(resumed_steps, jump, label="weights only; also Keras SavedModel", marker="")
saved = {"color": draw.QUIET, "linestyle": ":", "label": "saved and loaded"}
axes.axvline(len(before), ymax=0.7, marker="", **saved)
axes.set(xlabel="step", ylabel="loss of all images", yscale="log")
axes.legend(loc="upper right")
draw.show(
    figure,
    "The loss of all images against the step, logarithmic, in two curves. "
    f"One falls to {straight[-1]:.2f} over all {len(straight)} steps. "
    f"The other begins where the run was saved, after {len(before)} steps, "
    f"at {before[-1]:.2f}; it jumps to {max(lost):.2f} and needs many steps to come back.",
)

# %% [markdown] tags=["slide-takeaway"]
# `.keras` and the checkpoint continue exactly; with the two others the loss jumps. They loaded the same weights,
# trained on the same batches, and had a higher loss for most of the remaining steps. Their files hold Adam's state; the
# loading calls drop it. With empty averages, the first step moves *every* weight that has a gradient by about $\eta$,
# as at the very beginning, although most need hardly any change now.

# %% [markdown]
# The warning above, about skipped variables, is the only hint, and only `load_weights` gives it. The 9 variables are
# the step count and two averages for each of the four weight arrays; the new optimizer has only its step count. The
# optimizer creates its variables at its first step; before that there is nothing to load into, and `load_weights` does
# not wait. A checkpoint waits, and fills variables as they appear. It also keeps the learning rate, a variable that is
# not among these 9. For a Keras SavedModel, Keras silently makes a new optimizer with the saved settings, the current
# learning rate included, but with empty averages and step count 0.
#
# Here is what came back. The last three rows were tried only with the four formats that Keras can train further:


# %% tags=["slide-output"] jupyter={"source_hidden": true}
def evaluate(name):
    load_as_model(FORMATS[name]).evaluate(images, labels, verbose=0)


def is_exact(name):
    difference = checks.largest_difference(resumed[name].get_weights(), model.get_weights())
    return difference <= checks.TOLERANCE


loaded_alone = {
    "usable without your code": [n for n in FORMATS if works(load_alone, str(FORMATS[n]))],
    "runs without Keras": list(served),
    "own layer, without its class": scaled,
}
to_train = {
    "loss and metrics": [name for name in TO_TRAIN if works(evaluate, name)],
    "learning rate": [name for name, rate in rates.items() if f"{rate:g}" == "0.003"],
    "optimizer state": [name for name in TO_TRAIN if is_exact(name)],
}
rows = [["", *FORMATS], ["---"] * (len(FORMATS) + 1)]
for tried, parts in ((FORMATS, loaded_alone), (TO_TRAIN, to_train)):
    for part, yes in parts.items():
        marks = {name: "yes" if name in yes else "–" for name in tried}
        rows.append([part, *(marks.get(name, "") for name in FORMATS)])
Markdown("\n".join(f"| {' | '.join(row)} |" for row in rows))

# %% [markdown]
# One more line brings back the optimizer's state. For weights, create its variables first; the learning rate is still
# not in the file, and only `losses_of` sets it here. For a Keras SavedModel, read its folder `variables`, which is a
# checkpoint. A `tf.train.Checkpoint` needs no extra line, and the run continues even with one replica more.

# %%
from_weights = new_model()
from_weights.optimizer.build(from_weights.trainable_variables)  # losses_of sets the rate
from_weights.load_weights(half_way / "model.weights.h5")
saved_model = half_way / "keras_saved_model"
from_saved_model = tf.keras.models.load_model(saved_model)
from_saved_model.load_weights(str(saved_model / "variables" / "variables")).expect_partial()
with one_more.scope():
    with_one_more = load_as_model(half_way / "checkpoint", build=new_model)
for copy in (from_weights, from_saved_model, with_one_more):
    losses_of(copy, epochs, 2 * epochs)
    checks.assert_equal_weights(copy.get_weights(), model.get_weights())

# %% [markdown] tags=["slide-quiz"]
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
# 1. A damaged file usually raises an error; an intact one shows the same jump.
# 2. Then the first part would have shown it.
# 3. **Right.** Plain SGD uses no averages.
# 4. At the same global batch size that changes nothing.
# </details>
#
# ### The order of the data
#
# So far each epoch had the same order. Real pipelines shuffle. This one has a fixed seed, and is started again after
# two epochs:


# %% tags=["slide-output"]
def pipeline():
    return tf.data.Dataset.range(8).shuffle(8, seed=7)


def order(numbers):
    return [int(number) for number in numbers]


tf.keras.utils.set_random_seed(5)
without_stop = pipeline()
for epoch in range(4):
    print("epoch", epoch, order(without_stop))
print("restart", order(pipeline()), "should be epoch 2")

# %% [markdown] tags=["slide-takeaway"]
# The order is new in each epoch, drawn from a generator that starts at the seed and lives in the data set object. A
# restart makes a new object, so epoch 2 sees the order of epoch 0 again. No error is raised: the network sees some
# orders twice and others never.
#
# ### Random numbers
#
# Dropout draws random numbers, too. **Predict.** A run with dropout 0.2 resumes from a checkpoint, with the right order
# of the data. Is it equal to the uninterrupted run?


# %%
def dropout_run(resume):
    model = new_model(dropout=0.2)
    train(model, 0, epochs)
    if resume:
        path = tf.train.Checkpoint(model=model).write(str(folder / "dropout"))
        model = new_model(dropout=0.2)  # the restarted program sets the seed again
        tf.train.Checkpoint(model=model).read(path)
    train(model, epochs, 2 * epochs)
    return model.get_weights()


without_stop = dropout_run(resume=False)
for resume in (False, True):
    difference = checks.largest_difference(dropout_run(resume), without_stop)
    result = "the same" if difference <= checks.TOLERANCE else "other"
    print("stopped and resumed:" if resume else "the same run again: ", result, "weights")

# %% [markdown]
# The seed makes the whole run repeatable, but after the restart dropout draws the numbers of epoch 0 again. The state
# of Keras's dropout is not a variable of the model, so no format has it.
#
# Order and random numbers have the same two fixes. The first makes them a function of the epoch's number: `shuffle(8,
# seed=epoch)`, where the restarted program must also call `set_random_seed`. For dropout, a custom layer uses
# `tf.random.stateless_uniform(shape, seed=(replica, step))`: `step` an int32 variable, since a Python number would be
# frozen in the graph, and `replica` from `tf.distribute.get_replica_context().replica_id_in_sync_group`, else all
# replicas draw the same mask. The second puts the object that has the state into the checkpoint: the iterator, with its
# place and its shuffle buffer, or a `tf.random.Generator`.

# %%
iterator = iter(pipeline())
print("first part:    ", [int(next(iterator)) for _ in range(3)])
path = tf.train.Checkpoint(iterator=iterator).write(str(folder / "iterator"))
print("without a stop:", order(iterator))
restored = iter(pipeline())  # the restarted program
tf.train.Checkpoint(iterator=restored).read(path)
print("restored:      ", order(restored))

# %% [markdown]
# A saved shuffle buffer contains the images themselves, and the iterator of a distributed data set cannot be saved at
# all. For a distributed run, use the first fix.
#
# **Question.** What must change for a model with dropout so that the resumed run equals the uninterrupted one?
#
# 1. The format: take `.keras`
# 2. Set the seed again after loading
# 3. Draw the masks from a generator that the checkpoint holds, or from a seed computed from step and replica
# 4. Nothing, it is only noise
#
# <details>
# <summary>Answer</summary>
#
# 1. It has no random state either: more structure is not more state.
# 2. That repeats the numbers of epoch 0.
# 3. **Right.** The same two fixes as for the order of the data.
# 4. True for the accuracy, but you lose the comparison of weights, and with it an easy way to find errors.
# </details>

# %% [markdown] tags=["slide-predict"]
# ### `fit` after a crash
#
# The callback `BackupAndRestore` writes the state of `fit` after each epoch, or with `save_freq=n` after every $n$
# steps. A program with it is killed in the middle of an epoch and started again without a change.
#
# **Predict.** Does it end with the weights of an uninterrupted run: with the same order in each epoch, with a backup
# every few steps, and with `shuffle=True`, the default of `fit`?


# %% tags=["slide-output"]
def program_with_backup(path, save_freq, shuffle, kill_at=-1):
    def kill(step, logs):
        if model.optimizer.iterations == kill_at:
            raise KeyboardInterrupt  # simulates the crash

    model = new_model()
    backup = tf.keras.callbacks.BackupAndRestore(str(path), save_freq=save_freq)
    killer = tf.keras.callbacks.LambdaCallback(on_train_batch_end=kill)
    with contextlib.suppress(KeyboardInterrupt):
        train(model, 0, 2 * epochs, callbacks=[backup, killer], shuffle=shuffle)
    return model.get_weights()


steps_per_epoch = len(images) // batch_size
half = steps_per_epoch // 2
for case, options in enumerate([("epoch", False), (half, False), ("epoch", True)]):
    straight = program_with_backup(folder / f"straight_{case}", *options)
    program_with_backup(folder / f"backup_{case}", *options, epochs * steps_per_epoch + half)
    restarted = program_with_backup(folder / f"backup_{case}", *options)
    is_equal = checks.largest_difference(restarted, straight) <= checks.TOLERANCE
    result = "the same" if is_equal else "other"
    print(f"save_freq={options[0]!r:7}  shuffle={options[1]!s:5}  {result} weights")

# %% [markdown] tags=["slide-takeaway"]
# Weights, optimizer and the place in the training are back each time, but the callback does not restore the position in
# your data. After a backup in the middle of an epoch, `fit` makes the right number of steps, but begins with the first
# batches again; with arrays each later epoch then starts in the middle, too. A shuffled run begins with the order of
# epoch 0.
#
# If you need an exact run, count the epochs as `run` does, and derive the order from the count.
#
# ### Larger runs
#
# With several workers, who writes? See [chapter 07](07_multi_worker.ipynb). If no process can hold the whole state
# ([chapter 12](12_model_parallelism.ipynb)), each rank writes its own part, a *sharded* checkpoint, and a load on
# another number of ranks divides it again: [Orbax](https://orbax.readthedocs.io) for JAX,
# [`torch.distributed.checkpoint`](https://docs.pytorch.org/docs/stable/distributed.checkpoint.html) for PyTorch. Both
# also write while the training continues ([chapter 13](13_fault_tolerance.ipynb)).

# %% [markdown]
# ## Quiz
#
# Ten questions with instant feedback; `seed=2` gives them other numbers.

# %%
quizzes.ask("05")

# %% [markdown]
# ## Recap
#
# - To serve: `tf.saved_model.save` or `export`. To share: the Keras format. To resume: a checkpoint.
# - The scope in which you load decides where the model lives; the number of replicas is not in the file.
# - Adam's state is in a weights-only file, but the plain loading call drops it with a warning, and the loss jumps.
# - Without dropout and with a fixed order of the data, a checkpoint continues a run exactly.
# - No format keeps the data's order by itself: compute it from the epoch, or save the iterator.
# - A SavedModel runs without Keras and without your classes.
#
# **Next.** [Lab 05](../labs/05_save_and_load/lab.ipynb), [06 collectives](06_collectives_and_ring_all_reduce.ipynb).
#
# **Sources.**
# - D. P. Kingma, J. Ba (2015), *Adam: a method for stochastic optimization*,
#   [arXiv:1412.6980](https://arxiv.org/abs/1412.6980).
# - D. G. Murray et al. (2021), *tf.data: a machine learning data processing framework*,
#   [arXiv:2101.12127](https://arxiv.org/abs/2101.12127).
# - TensorFlow guides: [Training checkpoints](https://www.tensorflow.org/guide/checkpoint),
#   [Using the SavedModel format](https://www.tensorflow.org/guide/saved_model).
