# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 12 Model parallelism
#
# **Goal.** Split one model in several ways, prove each time that it still computes the same, and choose a split for a
# model and a cluster by memory and time.
#
# **Time.** 45 minutes to read, one minute to run.
#
# **Before this.** [01 why distribute](01_why_distribute.ipynb) for the idea,
# [04 custom training loop](04_custom_training_loop.ipynb) for the tape,
# [06 collectives](06_collectives_and_ring_all_reduce.ipynb) for the virtual cluster.
#
# **Questions.**
# - What must be sent when a layer is split inside, and where does TensorFlow put the collectives?
# - How long do the stages of a pipeline wait, and what do they keep in memory meanwhile?
# - How can ranks convolve one image without sending it to each other?
# - What does each rank of plain data parallelism store redundantly?
# - Which split does a model of 540 billion parameters need?
#
# **Hardware.** Two processor cores; TensorFlow sees them as four and eight logical devices. GPUs are used where there
# are enough.

# %% tags=["parameters"]
dataset = "digits"  # digits, mnist or fashion_mnist
epochs = 1  # not used in this chapter: every run has a fixed number of steps, so that weights can be compared
workers = 4  # ranks in sections 4 and 5, at least 2

# %% jupyter={"source_hidden": true}
import distlab  # first: it selects tf-keras, which must happen before TensorFlow is imported

import argparse
import itertools
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf

from distlab import checks, costs, data, devices, draw, launch, model_parallel, programs, quizzes
from distlab.costs import BUBBLES, MEMORY, THROUGHPUTS, compare_figures, figures_table
from distlab.simulate import Network, World

layered_network, pipelines = model_parallel.layered_network, model_parallel.pipelines
zero = model_parallel.sharded_optimizers
draw.apply_style()
PROGRAMS, ranks = Path("programs/12_model_parallelism"), max(workers, 2)
names = devices.at_least(4)
print(data.describe(dataset))

# %% [markdown] tags=["slide-table"]
# ## 1. What can be split
#
# | split | a device has | what is sent in each step |
# |---|---|---|
# | data (chapters 03 to 11) | the whole model, a part of the batch | gradients: as much as there are parameters |
# | **inside a layer** (tensor) | a part of every layer, the whole batch | activations and gradients, all-reduced |
# | **by layers** (pipeline) | some layers | activations and their gradients, between neighbours only |
# | **by parts of the input** (spatial) | the whole model, a part of each image | borders |
# | **states** (ZeRO, FSDP) | a share of everything, a part of the batch | gradients and parameters |
#
# Each of them helps when something else is scarce. To compare them we need the cost of each, and a proof that it
# computes the same as the undivided model. Sections 2 to 5 contain that proof.

# %% [markdown]
# ## 2. Inside a layer
#
# ### By hand
#
# A hidden layer of 10 units, 5 on each of two devices. A unit is a column of the first weights and a row of the second.
# So each device computes 5 columns of the hidden layer, and with its 5 rows a *part of every sum* in the output.
#
# **Predict.** What must be sent in the forward pass: hidden units, partial outputs, weights? What in the backward
# pass, if another layer in front of this block needs the gradient of its input?

# %%
images, labels = (part[:64] for part in data.load(dataset).train)
images = images.reshape(64, -1)
numbers = np.random.default_rng(12)
first = numbers.normal(scale=784**-0.5, size=(784, 10)).astype(np.float32)
second = numbers.normal(scale=10**-0.5, size=(10, 10)).astype(np.float32)


def loss_of(logits):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))


# On one device: the loss, and its gradients by both weights and by the input.
X, W1, W2 = tf.Variable(images), tf.Variable(first), tf.Variable(second)
with tf.GradientTape() as tape:
    loss = loss_of(tf.nn.relu(X @ W1) @ W2)
gradients = tape.gradient(loss, [W1, W2, X])

# %%
# Divided: device d has a copy of the input, 5 columns of W1 and 5 rows of W2.
copies, columns, rows, partial_outputs = [], [], [], []
with tf.GradientTape() as tape:
    for d in range(2):
        with tf.device(names[d]):
            copies.append(tf.Variable(images))
            columns.append(tf.Variable(first[:, 5 * d : 5 * d + 5]))
            rows.append(tf.Variable(second[5 * d : 5 * d + 5]))
            partial_outputs.append(tf.nn.relu(copies[d] @ columns[d]) @ rows[d])
    output = tf.add_n(partial_outputs)  # the forward all-reduce
    split_loss = loss_of(output)
by_columns, by_rows, by_copies = tape.gradient(split_loss, [columns, rows, copies])
by_input = tf.add_n(by_copies)  # the backward all-reduce
split_gradients = [tf.concat(by_columns, axis=1), tf.concat(by_rows, axis=0), by_input]
scales = [tf.reduce_max(tf.abs(gradient)) for gradient in gradients]  # the input's gradient is small

print("each device has", [tuple(part[0].shape) for part in (copies, columns, rows)])
checks.assert_equal([split_loss], [loss], "losses")
relative = [part / scale for part, scale in zip(split_gradients, scales, strict=True)]
expected = [gradient / scale for gradient, scale in zip(gradients, scales, strict=True)]
checks.assert_equal(relative, expected, "gradients")

# %% [markdown]
# Forward, the **partial outputs** are summed over the devices, 64 × 10 numbers. Each device then has the whole output,
# and so the whole gradient of the output. Hidden units, weights and their gradients stay where they are.
#
# But the gradient of the *input* is again a sum over all hidden units, and each device has only its own 5. So the
# backward pass needs **a second all-reduce**, as large as the input, here 64 × 784 numbers. Megatron-LM writes the pair
# as two operators around the block: *f* copies the input forward and all-reduces backward; *g* all-reduces forward and
# copies backward (Shoeybi et al., 2019, section 3). Only a model's first block needs no *f*: the images need no
# gradient.
#
# A proof must be able to fail. Here are two deliberate mistakes: the second all-reduce is missing, or the ReLU comes
# *after* the sum.

# %%
off = checks.largest_difference([by_copies[0] / scales[2]], [gradients[2] / scales[2]])
print(f"without the backward all-reduce the input's gradient is off by {off:.0%} of its largest value")
wrong = tf.nn.relu(sum(copies[d] @ columns[d] @ rows[d] for d in range(2)))
loss_off = checks.largest_difference([loss_of(wrong)], [loss])
print(f"with the ReLU after the sum the loss is off by {loss_off:.2f}")

# %% [markdown] tags=["slide-picture"]
# ### With DTensor
#
# By hand that is one block. **DTensor** does it for a whole program. The devices form a **mesh** with named dimensions,
# here `data` × `model`. A **layout** says for each dimension of a tensor along which mesh dimension it is cut. The
# training step says nothing about it: TensorFlow follows the layouts through the computation and inserts the
# collectives, forward and backward.
#
# ![W by columns ends in an all-gather, W by rows in an all-reduce](../figures/12_tensor_split.svg)
#
# DTensor must make its devices before TensorFlow does anything, so it runs in a child process.

# %%
tensor_split = PROGRAMS / "tensor_split.py"
text = tensor_split.read_text()
print(text[text.index("SPLITS = {") : text.index("def parse")])
programs.show(tensor_split, "step", "train_split")

# %% [markdown] tags=["slide-predict"]
# **Predict.** "Column, row" cuts the first weights by columns and the second by rows, our 5 + 5 split. "Column, column"
# cuts both by columns. (The network has 80 hidden units and 16 outputs: ten digits, and six classes that no image has,
# so that 8 devices can divide the columns.) Which needs more communication, and where?

# %% tags=["varies"]
settings = {"result": True, "start_seconds": 300}
arguments = ["--devices", 8, "--steps", 10, "--dataset", dataset]
dtensor_runs = launch.alone(tensor_split, *arguments, **settings).result

# %% tags=["slide-output"]
print(f"{'split':16}{'data × model':>14}   first weights, second weights on one device")
for run in dtensor_runs["runs"]:
    shapes = ", ".join(f"{rows} × {columns}" for rows, columns in run["shapes"]["weights"])
    print(f"{run['split']:16}{run['data']:>10} × {run['model']}   {shapes}")
differences = [run["difference"] for run in dtensor_runs["runs"]]
print("\n10 steps of SGD, every split against one device, ", end="")
checks.assert_equal(differences, [0.0] * len(differences), "weights")

# %% [markdown] tags=["slide-takeaway"]
# Column, row: the hidden layer stays cut, and one **all-reduce** adds up the outputs. Column, column: a device needs
# all hidden units for its columns, so an **all-gather** of 64 × 80 numbers comes between the layers, instead of an
# all-reduce of 64 × 16 numbers after them. Hence the rule for transformers: first by columns, then by rows. For each
# block of two layers that is one all-reduce in the forward pass and one in the backward pass. A transformer layer has
# two such blocks, attention and MLP, so four all-reduces in each step.
#
# **Data × model** is both at once: on 2 × 4 devices each group of four holds the whole model, and gradients are
# all-reduced between the two groups, each device only with its counterpart.

# %% [markdown]
# **Question.** 8,000 hidden units instead of 80. How much more is sent with "column, row"?
#
# 1. A hundred times more, like the weights.
# 2. Nothing more.
# 3. A hundred times more, like the hidden layer.
#
# <details>
# <summary>Answer</summary>
#
# 1. No weight is sent at all.
# 2. **Right.** The partial outputs have the size batch × classes, and the input's gradient that of the input, whatever
#    the number of units.
# 3. It stays where it is.
# </details>

# %% [markdown] tags=["slide-picture"]
# ## 3. By layers: a pipeline
#
# The layers are cut into **stages**, one after the other, each on its device. While a stage works, the others wait,
# unless the batch is cut into **micro-batches** that follow each other through the stages.
#
# ![Four stages, each working on another micro-batch](../figures/12_pipeline_stages.svg)
#
# Here is a stage in TensorFlow. `tf.device` places its variables and its passes. Each micro-batch has its own **tape**
# on every stage: the tape is what must be kept until the gradient comes back.
#
# Some tutorials say that TensorFlow takes care of the communication automatically. That is true of the copy: when an
# operation on one device reads a tensor of another, TensorFlow copies it. It is wrong for a pipeline: TensorFlow does
# not cut the batch, order the passes, or keep the tapes. The program must:

# %%
stages_program = PROGRAMS / "pipeline_stages.py"
staged = programs.module(stages_program)
programs.show(stages_program, "forward", "backward")

# %%
options = argparse.Namespace(dataset=dataset, steps=10, batch=64, learning_rate=0.1)
undivided_weights = staged.train(options, staged.make_stages(1, names), "gpipe", 1)
tapes = {}
for count, schedule in ((2, "gpipe"), (2, "1f1b"), (4, "gpipe"), (4, "1f1b")):
    stages = staged.make_stages(count, names)
    weights = staged.train(options, stages, schedule, micro_batches=8)
    tapes[count, schedule] = [stage.most_tapes for stage in stages]
    print(f"{count} stages, {schedule}: ", end="")
    checks.assert_equal_weights(weights, undivided_weights)

# %% [markdown] tags=["slide-text", "slide-predict"]
# They are equal because all micro-batches see the same weights and their gradients are summed before the one update.
#
# The two schedules differ only in the order. **GPipe** does all forward passes, then all backward passes. **1F1B** (one
# forward, one backward) starts each backward pass as early as it can.
#
# **Predict.** Eight micro-batches, four stages. Which schedule is faster? How many tapes does the first stage hold, and
# how many the last?

# %%
for (count, schedule), most in tapes.items():
    formula = [pipelines.activations_held(schedule, count, 8, stage) for stage in range(count)]
    print(f"{count} stages, {schedule:5}: tapes held at most, by stage {most}, by formula {[*map(int, formula)]}")

# %% [markdown]
# ### The time line
#
# Four devices that share two cores cannot show the time, but the virtual cluster can. A backward pass takes twice as
# long as a forward pass; messages take no time for now. The third schedule is **interleaved**: each stage has two
# chunks of layers, chunk 0 of all stages first, then chunk 1. In the picture chunk 1 is darker.

# %% tags=["slide-output"]
titles = {"gpipe": "GPipe", "1f1b": "1F1B", "interleaved": "interleaved 1F1B, two chunks a stage"}
timings = {
    title: pipelines.simulate(name, stages=4, micro_batches=8, chunks=2 if name == "interleaved" else 1)
    for name, title in titles.items()
}
draw.show(
    draw.pipeline_schedules(timings),
    "Time lines of four stages and eight micro-batches: GPipe and 1F1B take equally long, interleaved 1F1B is shorter.",
)

# %% [markdown] tags=["slide-takeaway"]
# GPipe and 1F1B take *equally* long: the **bubble**, the time in which stages wait, is the filling and draining, and no
# order of the same passes avoids it. What 1F1B saves is memory. With $p$ stages, $m$ micro-batches and $v$ chunks a
# stage, the bubble has the share
#
# $$\frac{p - 1}{v\,m + p - 1}$$
#
# of all time (Huang et al., 2019, section 2.3, for $v = 1$; Narayanan et al., 2021, section 2.2, as a share of the
# ideal time: $\frac{1}{v} \cdot \frac{p - 1}{m}$). Formula and simulation, for all sizes:

# %%
simulated, by_formula = [], []
for p in range(1, 9):
    for m in range(1, 33):
        for name, v in (("gpipe", 1), ("1f1b", 1), ("interleaved", 2), ("interleaved", 4)):
            if name == "interleaved" and m % p:
                continue  # it needs a multiple of the stages
            run = pipelines.simulate(name, p, m, v, forward_seconds=1.0, backward_seconds=2.0)
            simulated.append(run.bubble_fraction)
            by_formula.append(pipelines.bubble_fraction(p, m, v))
print(f"{len(simulated)} pipelines of 1 to 8 stages, ", end="")
checks.assert_equal(simulated, by_formula, "bubbles")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3))
m = 8 * np.arange(1, 17)
for number, (name, v) in enumerate((("gpipe", 1), ("1f1b", 1), ("interleaved", 2))):
    look = {"color": draw.RANK_COLOURS[number], "linestyle": draw.DASHES[number], "marker": ""}
    left.plot(m, 100 * pipelines.bubble_fraction(8, m, v), label=titles[name].split(",")[0], **look)
    right.plot(m, [pipelines.activations_held(name, 8, count, 0, v) for count in m], **look)
left.set(xlabel="micro-batches", ylabel="bubble in %", ylim=0)
right.set(xlabel="micro-batches", ylabel="activations held by stage 0\nin micro-batches", ylim=(0, 40))
figure.legend(loc="outside upper center", ncols=3)
draw.show(figure, "Eight stages: the bubble falls with micro-batches; GPipe's memory grows with them, 1F1B's does not.")

# %% [markdown]
# On the left, GPipe and 1F1B have the same line. More micro-batches shrink the bubble, and under GPipe they fill the
# memory. Under 1F1B a stage never keeps more than $p$ of them. That is why large models use 1F1B.
#
# Interleaving is not free: it keeps somewhat more activations than 1F1B (right), and it sends $v$ times as many
# messages.
#
# **Predict.** Messages now take a tenth of a forward pass, then three tenths. Does interleaving still pay?

# %%
for message in (0.0, 0.1, 0.3):
    network = Network(latency=message, seconds_per_byte=0.0)
    times = {
        f"{name}, v = {v}": pipelines.simulate(name, 4, 32, v, network=network).seconds
        for name, v in (("1f1b", 1), ("interleaved", 2), ("interleaved", 4))
    }
    print(f"message {message:.1f}: " + ",  ".join(f"{name}: {seconds:6.1f}" for name, seconds in times.items()))

# %% [markdown]
# Messages of a tenth of a forward pass already cancel the gain here. What do profiled runs say? The table has bubble
# shares of models on 8 to 32 GPUs, which Qi et al. computed from the measured times of passes and messages (2024, table
# 5), and those of our formula, which knows only $p$, $m$ and $v$; in %, the difference in points:

# %%
bubbles = compare_figures([figure for figure in BUBBLES if figure.is_described])
print(figures_table(bubbles[::3]))

# %% [markdown]
# The formula always predicts a little too little: messages and unequal stages make devices wait, too.
#
# **Question.** Four stages. What do eight micro-batches instead of four do to the time?
#
# 1. It halves.
# 2. It falls from 7 to 5.5 units of a quarter batch's pass.
# 3. Nothing, the number of stages decides.
#
# <details>
# <summary>Answer</summary>
#
# 1. The work is the same; only waiting shrinks.
# 2. **Right.** $(m + p - 1)/m$ goes from $7/4$ to $11/8$.
# 3. The bubble is $p - 1$ passes of a *micro-batch*, and those got shorter.
# </details>

# %% [markdown] tags=["slide-picture"]
# ## 4. On parts of one large image
#
# A tomogram or a satellite image may not fit although the model is small. So each rank takes a **tile** of every layer.
# A convolution needs pixels beyond the tile's edge, the **halo**: for a kernel of $2k + 1$ pixels, $k$ on each side.
# The neighbours have them.
#
# ![Four tiles; columns are exchanged first, then rows with the corners](../figures/12_spatial_split.svg)
#
# `with_halo` is a rank program: it runs on the virtual cluster here, and over MPI when `spatial_split.py` is started
# with `mpirun`.

# %%
spatial = programs.module(PROGRAMS / "spatial_split.py")
programs.show(PROGRAMS / "spatial_split.py", "with_halo")

# %% [markdown] tags=["slide-text", "slide-predict"]
# `convolve_tiles` does two convolutions with a ReLU between, then their gradients. The backward pass needs a halo, too:
# of gradients.
#
# **Predict.** An image of 301 × 203 pixels, kernels of 5 × 5. The tiles cannot all be equal. How much is sent, as a
# share of the image?

# %% tags=["slide-output"]
image, kernels, target = spatial.problem(height=301, width=203, kernel=5)
inputs = list(zip(spatial.tiles_of(image, ranks), spatial.tiles_of(target, ranks), strict=True))
run = World(ranks).run(lambda rank, own: spatial.convolve_tiles(rank, own[0], kernels, own[1]), inputs)
outputs = spatial.together([tile for tile, _ in run.results])
print("tiles:", ", ".join(f"{tile.shape[0]} × {tile.shape[1]}" for tile, _ in inputs))
print(f"sent in forward and backward pass together: {run.bytes_sent / image.nbytes:.0%} of the image's bytes")

# %%
with tf.GradientTape() as tape:
    variables = [tf.Variable(kernel) for kernel in kernels]
    hidden = tf.nn.relu(tf.nn.conv2d(image[None], variables[0], strides=1, padding="SAME"))
    whole = tf.nn.conv2d(hidden, variables[1], strides=1, padding="SAME")[0]
    error = tf.reduce_sum((whole - target) ** 2) / 2
checks.assert_equal([outputs], [whole], "outputs")
whole_gradients = tape.gradient(error, variables)
scale = max(float(tf.reduce_max(tf.abs(gradient))) for gradient in whole_gradients)
tile_gradients = run.results[0][1]
checks.assert_equal([part / scale for part in tile_gradients], [part / scale for part in whole_gradients], "gradients")

# %% [markdown]
# TensorFlow on the whole image agrees. (Gradients are sums over all pixels, so they are compared relative to the
# largest.) The halo grows with a tile's perimeter, the work with its area: the larger the tiles, the smaller the share
# that is sent.
#
# And without the exchange? Then every tile is surrounded by zeros, as if the image ended there:

# %%
alone = [World(1).run(lambda rank, own=own: spatial.convolve_tiles(rank, own[0], kernels, own[1])) for own in inputs]
seams = np.abs(spatial.together([run.results[0][0] for run in alone]) - whole).max(axis=2) > 1e-6
print(f"{np.mean(seams):.1%} of the pixels are wrong; rows {np.flatnonzero(seams.all(axis=1)).tolist()} all along")

# %% [markdown]
# Two convolutions of 5 × 5 reach 4 pixels: the seams are 8 pixels wide. Nothing crashes, a training would go on, and
# the output is wrong along all cuts. Only the comparison shows it.
#
# **Question.** Could a rank fetch one halo of 4 pixels at the start instead of 2 pixels twice?
#
# 1. No, the second layer's values do not exist yet.
# 2. Yes: fewer messages, and the overlap is computed twice.
# 3. Yes, and it is always better.
#
# <details>
# <summary>Answer</summary>
#
# 1. They can be computed from the wider halo.
# 2. **Right.** It pays where latency is high and layers are few. Be careful with the padding at the image's edge:
#    outside, hidden values are 0, not computed.
# 3. The overlap grows with every layer; after 20 layers it is larger than the tile.
# </details>

# %% [markdown] tags=["slide-table"]
# ## 5. Sharded states: ZeRO
#
# In data parallelism every rank stores *all* parameters, gradients and optimizer states, the same numbers as every
# other rank. With Adam in mixed precision each parameter needs 2 bytes for its value, 2 for its gradient, and 12 in the
# optimizer: 4 each for a copy in single precision, the momentum and the variance. **ZeRO** (Rajbhandari et al., 2020)
# divides them among the $N$ ranks:
#
# | stage | divided | bytes per parameter |
# |---|---|---|
# | 0 | nothing | $2 + 2 + 12$ |
# | 1 | optimizer states | $2 + 2 + 12/N$ |
# | 2 | gradients, too | $2 + (2 + 12)/N$ |
# | 3 | parameters, too (PyTorch calls it FSDP) | $(2 + 2 + 12)/N$ |
#
# An all-reduce is a reduce-scatter and an all-gather. Between the two each rank has *its share* of the summed
# gradient. That is all it needs to update its share of the parameters. So stages 1 and 2 send nothing more.

# %% [markdown]
# Here is the whole program of a rank: the loop over the batches, and the class that keeps its share of the states.
# `_layer`, `_reduced` and `_update` are the three places where the stages differ.

# %%
programs.show(zero.__file__, "train", "_Replica")

# %% [markdown] tags=["slide-predict"]
# **Predict.** Stage 3 has to gather each layer before it can compute with it, forward and backward. How much more does
# it send than plain data parallelism? (This small network uses double precision: 8 bytes of value, 8 of gradient, 16 of
# momentum and variance per parameter.)

# %%
layers = layered_network.random_layers((784, 64, 32, 10), seed=12)
count, double_precision = sum(layer.size for layer in layers), zero.BytesPerParameter(8, 8, 16)
train_images, train_labels = data.load(dataset).train
batches = [
    (train_images[start : start + 64].reshape(64, -1).astype(np.float64), train_labels[start : start + 64])
    for start in range(0, 640, 64)
]
serial = zero.train_serially(layers, batches)
sharded = {
    stage: World(ranks).run(lambda rank, stage=stage: zero.train(rank, layers, batches, stage)) for stage in zero.STAGES
}
for stage, run in sharded.items():
    print(f"stage {stage}: ", end="")
    checks.assert_equal_weights(zero.whole_layers(run.results, [layer.shape for layer in layers], stage), serial)

# %% tags=["slide-output"]
print(f"{'':8}{'parameters + gradients + optimizer':>36}{'sum':>11}{'formula':>11}{'sent':>12}{'formula':>12}")
for stage, run in sharded.items():
    state_bytes = run.results[0].bytes_held
    formula = zero.model_state_bytes(count, ranks, stage, double_precision)
    sent, sent_formula = run.bytes_sent_by_rank[0], len(batches) * zero.bytes_sent(8 * count, ranks, stage)
    parts = " + ".join(f"{size:,}" for size in state_bytes)
    print(f"stage {stage} {parts:>36}{sum(state_bytes):11,}{formula:11,.0f}{sent:12,}{sent_formula:12,.0f}")

# %% [markdown] tags=["slide-takeaway"]
# The weights are the serial ones in every stage. The numbers differ a little from the formula where the size of a layer
# is no multiple of the ranks. Stages 0 to 2 send the same number of bytes, apart from that. Stage 3 sends 50 % more:
# the all-gather of the backward pass. Adam works element by element, so a shard can be updated without the rest.
#
# The same program over real processes, two of them:

# %% tags=["varies"]
real = launch.mpirun(PROGRAMS / "shard_optimizer.py", "--dataset", dataset, ranks=2, **settings).result

# %%
all_states = sum(real["stages"]["0"]["bytes_held"][0].values())
for stage, run in real["stages"].items():
    share = sum(run["bytes_held"][0].values()) / all_states
    print(f"stage {stage}: each rank stores {share:.0%} of the states, ", end="")
    checks.assert_equal([run["difference"]], [0.0], "weights")

# %% [markdown]
# The next table compares the paper's table 1, in GB, with the formula, for 7.5 billion parameters; the difference is in
# %. The picture shows what each of 64 devices stores:

# %%
memory = compare_figures(MEMORY)
print(figures_table([comparison for comparison in memory if "7.5B" in comparison.figure.what]))
print(f"\nwithin 1 %: {sum(comparison.is_within for comparison in memory)} of {len(memory)} figures of the table")

# %% tags=["slide-output"]
figure, axes = plt.subplots(figsize=(7.2, 2.4))
for stage in zero.STAGES:
    begin = 0.0
    for number, (state, size) in enumerate({"parameters": 2, "gradients": 2, "optimizer": 12}.items()):
        width = 7.5 * size / (64 if stage >= 3 - number else 1)  # billions of parameters times bytes: GB
        look = {"color": draw.RANK_COLOURS[number], "hatch": draw.HATCHES[number], "edgecolor": "white"}
        axes.barh(stage, width, left=begin, label=state if stage == 0 else None, **look)
        begin += width
    axes.annotate(f"{begin:.1f} GB", (begin, stage), (4, 0), textcoords="offset points", va="center")
axes.set_yticks(list(zero.STAGES), [f"ZeRO {stage}" if stage else "none" for stage in zero.STAGES])
axes.invert_yaxis()
axes.set(xlabel="GB on each of 64 devices", xlim=(0, 140))
figure.legend(loc="outside upper center", ncols=3)
draw.show(figure, "Bars of model states per device: 120 GB without ZeRO, 31.4 with stage 1, 16.6 with 2, 1.9 with 3.")

# %% [markdown]
# ## 6. Which split for which model?
#
# Now real models on a real cluster: servers of 8 A100 with 80 GB (Narayanan et al., 2021). First the memory. The table
# shows the states of each model in GB, and the smallest number of devices that can hold them if only ZeRO 3 divides
# them:

# %%
cluster = costs.HARDWARE["selene"]
models = [costs.TRANSFORMERS[name] for name in ("gpt-1.7b", "gpt-7.5b", "gpt-39b", "gpt-175b", "palm-540b")]
print(f"{'':12}{'parameters':>17}{'states':>11}{'one micro-batch':>18}{'devices':>9}")
for model in models:
    states = float(zero.model_state_bytes(model.parameters, 1, 0))
    kept = model.layers * model.layer_activation_bytes(1)
    least = int(np.ceil(states / cluster.memory_bytes))
    print(f"{model.name:12}{model.parameters:17,}{states / 1e9:8,.0f} GB{kept / 1e9:15,.0f} GB{least:9,}")

# %% [markdown]
# The last column but one shows the activations of *one* sequence of 2,048 tokens, if nothing is recomputed (Korthikanti
# et al., 2022, equation 1). Large models therefore keep only the inputs of each layer, and compute a layer's
# activations again in the backward pass.
#
# Fitting is one thing, time another. `costs.predict_split` adds up the time of a step: matrix products, work at memory
# speed, all-reduces inside the layers, messages between stages, the bubble, gradients among replicas. Can you trust it?
# Here are runs on up to 3,072 GPUs (Narayanan et al., 2021, tables 1 and 2), in teraFLOP/s of a GPU, and the difference
# of the prediction in %:

# %%
throughputs = compare_figures(THROUGHPUTS)
described = [comparison for comparison in throughputs if comparison.figure.is_described]
print(figures_table(described))
print(f"\nwithin 10 %: {sum(comparison.is_within for comparison in described)} of {len(described)}")

# %% [markdown]
# One number was fitted to the first ten of those rows: the share of its peak that an A100 reaches in matrix products.
# Table 1 does not give micro-batches and chunks; they are assumed. The rest are data sheets, arithmetic, and 11's share
# of a link's bandwidth. For the next rows the prediction fails, because it leaves out what matters most there:

# %%
print(figures_table([comparison for comparison in throughputs if not comparison.figure.is_described]))

# %% [markdown] tags=["slide-text", "slide-predict"]
# This is ZeRO 3 alone, on so many devices that each has few sequences. All parameters cross the network for every
# micro-batch, and the formula knows no congestion. So **a predicted time with ZeRO 3 is unreliable**: it is too short.
#
# Now we let it choose. 512 GPUs, 1,024 sequences per step; it tries splits by powers of two, without interleaving, with
# micro-batches of one, two and four sequences. It tries ZeRO 2 only without a pipeline, whose many micro-batches would
# each need a reduce-scatter, and ZeRO 3 only where nothing else fits.
#
# **Predict.** From which model on is a pipeline worth its bubble?


# %%
def fitting(model, stages, gpus=512, sequences=1024):
    """A step for every split with one of these ZeRO stages that divides and fits; above 1 without a pipeline."""
    steps = []
    sizes = itertools.product((1, 2, 4, 8), (1, 2, 4, 8, 16, 32), stages, (1, 2, 4))
    for tensor, pipeline, stage, micro_batch in sizes:
        try:
            split = costs.Split(tensor, pipeline, stage, micro_batch)
            step = costs.predict_split(model, cluster, gpus, split, sequences=sequences)
        except ValueError:
            continue  # layers, heads or sequences do not divide
        if step.fits and (pipeline == 1 or stage <= 1):
            steps.append(step)
    return steps


chosen = {}
for model in models:
    candidates = fitting(model, (0, 1, 2)) or fitting(model, (3,))
    chosen[model.name] = min(candidates, key=lambda step: step.step_seconds)

# %% tags=["slide-output"]
print(f"{'':11}{'tensor':>7}{'pipeline':>9}{'data':>5}{'ZeRO':>5}{'step':>8}{'bubble':>8}{'TFLOP/s':>9}{'memory':>9}")
for name, step in chosen.items():
    split, memory = step.split, (step.state_bytes + step.activation_bytes) / 1e9
    print(
        f"{name:11}{split.tensor:7}{split.pipeline:9}{step.data:5}{split.zero:5}{step.step_seconds:6.1f} s"
        f"{step.bubble_fraction:8.0%}{step.flops_per_device / 1e12:9.0f}{memory:6.0f} GB"
        f"{'  time unreliable: ZeRO 3' if split.zero == 3 else ''}"
    )

# %% [markdown] tags=["slide-takeaway"]
# Small models need no model parallelism: data parallelism alone is enough, with ZeRO 1 when memory runs short. Larger
# models need the others:
#
# 1. **ZeRO 1**, and 2 with few micro-batches: less memory for the same bytes sent.
# 2. **Tensor**, within a server: every layer waits for its all-reduces, so they need NVLink, the fast link between the
#    GPUs of a server (00).
# 3. **Pipeline**, between servers: little traffic, but a bubble; it needs many micro-batches, so large batches.
# 4. **Data** with all devices that are left.

# %% [markdown]
# PaLM is the exception: its 118 layers divide by 2 and 59 only, so there is no pipeline of 4 to 32 equal stages, and
# with two stages it does not fit. What remains is ZeRO 3, whose predicted time is unreliable (see above): the table
# shows that this split *fits*, not how fast it is. PaLM's authors chose something similar on TPUs with a different
# network: 12-way inside the layers, parameters sharded 256-way, no pipeline (Chowdhery et al., 2022, section 4). There
# is no best split, only one for a model *and* a network.

# %% [markdown]
# Three more techniques are common. The first two split more; the third moves states away.
#
# **Sequence parallelism** cuts the tokens of a sequence. In Megatron-LM (Korthikanti et al., 2022) the ranks of a
# tensor split also divide layer norm and dropout. Each all-reduce becomes a reduce-scatter and an all-gather: the same
# bytes, less memory. Ring attention (Liu et al., 2023) also cuts the attention.

# %% [markdown]
# **Expert parallelism.** In a mixture of experts, a router sends each token to a few of many MLPs (one or two in the
# papers below), the experts. Each device has some experts. Tokens travel to their experts and back, two **all-to-alls**
# per layer in the forward pass and two in the backward pass. A model then has many times more parameters for nearly the
# same work per token, but popular experts become stragglers (Lepikhin et al., 2020; Fedus et al., 2021).
#
# **Offload** moves states to memory that is larger and slower. ZeRO-Offload keeps optimizer states
# in the host's memory and updates the weights on its processor (Ren et al., 2021); ZeRO-Infinity also uses SSDs
# (Rajbhandari et al., 2021). The limit is the link between the two memories, so it needs large batches.
#
# The command line predicts your own split:

# %%
command = "predict --model gpt-175b --tensor 4 --pipeline 4 --zero 1 --sequences 1024 --ranks 256,512"
print("distlab", command)
program = [sys.executable, "-m", "course_tools", *command.split()]
done = subprocess.run(program, capture_output=True, text=True)
print(done.stdout or done.stderr)

# %% [markdown]
# **Question.** A model fits on one device, but training is too slow. Which split?
#
# 1. Tensor: it divides the work of each layer.
# 2. A pipeline: its messages are small.
# 3. Data parallelism.
#
# <details>
# <summary>Answer</summary>
#
# 1. So does data parallelism, without waiting in every layer.
# 2. It has a bubble; data parallelism has none.
# 3. **Right.** The others are for what does not fit, and for batches that must not grow further.
# </details>

# %% [markdown]
# ## Quiz
#
# Ten questions with instant feedback; `seed=2` gives them other numbers.

# %%
quizzes.ask("12")

# %% [markdown]
# ## Recap
#
# - Columns, then rows: for two layers one all-reduce forward and one backward; no weight is sent.
# - A pipeline's bubble is (p − 1)/(vm + p − 1); 1F1B has GPipe's bubble and less memory.
# - Tiles exchange halos, forward and backward; without them the seams are silently wrong.
# - ZeRO 1 and 2 save memory without sending more; ZeRO 3 sends 50 % more.
# - Every split gave the undivided model.
# - Tensor inside a server, pipeline between servers, data with the rest.
#
# **Next.** [Lab 12](../labs/12_model_parallelism/lab.ipynb), [13 fault tolerance](13_fault_tolerance.ipynb).
#
# **Sources.**
# - Pipelines: [Huang et al. (2019)](https://arxiv.org/abs/1811.06965),
#   [Narayanan et al. (2021)](https://arxiv.org/abs/2104.04473), [Qi et al. (2024)](https://arxiv.org/abs/2401.10241).
# - Tensors and sequences: [Shoeybi et al. (2019)](https://arxiv.org/abs/1909.08053),
#   [Korthikanti et al. (2022)](https://arxiv.org/abs/2205.05198), [Liu et al.
# (2023)](https://arxiv.org/abs/2310.01889).
# - States: [Rajbhandari et al. (2020)](https://arxiv.org/abs/1910.02054), [Ren et al.
#   (2021)](https://arxiv.org/abs/2101.06840), [Rajbhandari et al. (2021)](https://arxiv.org/abs/2104.07857).
# - Models and experts: [Chowdhery et al. (2022)](https://arxiv.org/abs/2204.02311),
#   [Lepikhin et al. (2020)](https://arxiv.org/abs/2006.16668), [Fedus et al. (2021)](https://arxiv.org/abs/2101.03961).
# - TensorFlow, [*DTensor concepts*](https://www.tensorflow.org/guide/dtensor_overview).
