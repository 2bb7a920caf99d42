# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 01 Why distribute
#
# **Goal.** Know from arithmetic when one device is not enough, how to use several, and what limits the gain.
#
# **Time.** 40 minutes to read, under a minute to run.
#
# **Before this.** [00 start here](00_start_here.ipynb)
#
# **Questions.**
# - How much memory and time does the training of a given model need?
# - What do data parallelism and model parallelism divide, and what do they move?
# - When does a step take longer to communicate than to compute?
# - What does a slow worker cost, and what does a stale gradient cost?
# - How much faster can training become at best, and which strategy fits which case?
#
# **Hardware.** Any computer.

# %% tags=["parameters"]
dataset = "digits"  # images for the check of model parallelism: digits, mnist, fashion_mnist
epochs = 1  # not used: this chapter trains nothing
workers = 2  # among how many devices the units of a layer are divided

# %%
from distlab import checks, data, devices, draw, metrics, quizzes

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Markdown

draw.apply_style()
rng = np.random.default_rng(1)
print(data.describe(dataset))

# %% [markdown]
# ## 1. Why several devices?
#
# **A single core no longer gets much faster.** The power of a chip grows with its clock rate and with the square of its
# voltage. Around 2005 the voltage stopped falling, and clocks have stayed at a few GHz since. So machines have many
# slow cores instead of a few fast ones. Frontier, the first machine above $10^{18}$ floating-point operations per
# second (FLOP/s) in the TOP500 list, has 9,408 nodes with one CPU and four GPUs each.
#
# **Predict.** By which factor is one of its GPUs faster than one core of its CPU? And its clock?

# %%
# Multiply-adds per clock cycle (32-bit numbers), clock in GHz; from data sheets.
PROCESSORS = {
    "one core of the CPU": (16, 2.0),
    "the CPU, 64 cores": (64 * 16, 2.0),
    "one GPU (MI250X)": (14_080, 1.7),
    "all 37,632 GPUs": (37_632 * 14_080, 1.7),
}
for processor, (units, gigahertz) in PROCESSORS.items():
    teraflops = 2 * units * gigahertz / 1e3
    print(f"{processor:<19} {units:>11,} units at {gigahertz} GHz {teraflops:>14,.2f} TFLOP/s")

# %% [markdown] tags=["slide-text", "slide-table"]
# One GPU is about 750 times as fast as one core. Its clock is slower; it has 880 times as many units.
#
# **From weeks to minutes.** Published times for ResNet-50, 90 epochs of ImageNet:
#
# | devices | time | source |
# |---|---|---|
# | 1 GPU (M40) | 14 days | [You and others 2017](https://arxiv.org/abs/1709.05011) |
# | 256 GPUs (P100) | 1 hour | [Goyal and others 2017](https://arxiv.org/abs/1706.02677) |
# | 2,048 processors (Xeon Phi) | 20 minutes | You and others 2017 |
#
# The devices differ, so these are not speed-ups. But an answer after an hour changes which questions people ask, and
# scale improves what a model can do: on a quarter of 150 BIG-bench tasks, Google's language model PaLM, with 540
# billion parameters, beat the trend of its smaller versions by more than 10 points ([Chowdhery and others
# 2022](https://arxiv.org/abs/2204.02311)).

# %% [markdown] tags=["slide-text", "slide-predict"]
# ## 2. Too large: memory
#
# A **parameter**, or weight, is one number that training adjusts. To train it, a device also keeps its gradient and
# what the optimizer remembers: Adam two moving averages, the first and second moment. Together they are the **training
# state**.
#
# **Mixed precision** computes with 16-bit numbers. Weights and gradients then take 2 bytes each instead of 4. Updates
# can be too small for 16 bits, so a 32-bit copy of the weights is kept as well. (Keras's policy `mixed_float16` keeps
# only the 32-bit weights and converts them in every step.)
#
# **Predict.** Adam in 32 bits needs some number of bytes per parameter. By how much does mixed precision shrink it?

# %% tags=["slide-output"]
BYTES_PER_PARAMETER = {
    "SGD, 32 bit": 4 + 4,  # weight, gradient
    "Adam, 32 bit": 4 + 4 + (4 + 4),  # weight, gradient, two moments
    "Adam, mixed precision": 2 + 2 + (4 + 4 + 4),  # also a 32-bit copy of the weight
}
for optimizer, count in BYTES_PER_PARAMETER.items():
    print(f"{optimizer:<22} {count:>2} bytes per parameter")

# %% [markdown] tags=["slide-takeaway"]
# Not at all: the 32-bit copy takes back what the 16-bit weights and gradients had saved. Mixed precision saves time,
# and memory for activations. The rule of thumb, **16 bytes per parameter**, is the count of Rajbhandari and others
# (2019). They state 24 GB for GPT-2's 1.5 billion parameters, and that plain training on devices of 32 GB failed above
# 1.4 billion.

# %%
PARAMETERS = {  # MLP: multi-layer perceptron
    "MLP (lecture)": 784 * 128 + 128 + 128 * 10 + 10,
    "ResNet-50": 25.6e6,
    "BERT-large": 340e6,
    "GPT-2": 1.5e9,
    "GPT-3": 175e9,
    "PaLM": 540e9,
}
state = {model: 16 * count for model, count in PARAMETERS.items()}
print(f"Parameters whose state fills 32 GB: {32e9 / 16 / 1e9:.1f} billion")
MEMORY = {"V100 (32 GB)": 32e9, "H100 (80 GB)": 80e9, "H200 (141 GB)": 141e9}
for model in ("GPT-3", "PaLM"):
    needed = [f"{np.ceil(state[model] / size):.0f} × {name}" for name, size in MEMORY.items()]
    print(f"{model} fills", ", ".join(needed))

# %% [markdown]
# The paper's limit is below our 2.0 billion, because the state is not everything. The **activations**, the outputs of
# every layer that the backward pass needs again, grow with the batch.

# %% jupyter={"source_hidden": true} tags=["slide-output"]
figure, axes = plt.subplots(figsize=(7.2, 3.0))
for model, size in reversed(state.items()):
    digits = 0 if size > 1e11 else 3
    name = f"{model}: {size / 1e9:,.{digits}f} GB"
    axes.barh(name, size / 1e9, height=0.6, color=draw.tint(draw.RANK_COLOURS[0], 0.5))
for dash, (device, size) in enumerate(MEMORY.items(), start=1):
    line = {"linestyle": draw.DASHES[dash], "linewidth": 1, "marker": "", "zorder": 3}
    axes.axvline(size / 1e9, label=device, color=draw.RANK_COLOURS[3], **line)
axes.set_xscale("log")
axes.set_xlim(1e-3, 1e5)
axes.set_xlabel("training state in GB, logarithmic; the lines are one device's memory")
figure.legend(loc="outside upper right", ncols=3)
draw.show(
    figure,
    "Bars of the training state of six models on a logarithmic axis, from 0.002 GB for the "
    "lecture's MLP to 8,640 GB for PaLM. Lines mark devices of 32, 80 and 141 GB: GPT-2 stays "
    "below all three, GPT-3 and PaLM exceed them all.",
)

# %% [markdown]
# **Question.** GPT-3 does not fit into one device. You have 64 devices of 80 GB and copy the whole model to each (data
# parallelism). What happens?
#
# 1. It fits: 64 devices have 5,120 GB together.
# 2. It fits if the batch is made smaller.
# 3. It fails on each of the 64 devices.
#
# <details>
# <summary>Answer</summary>
#
# **3.** Data parallelism copies the model. Answer 1 treats the memories as one pool; only model parallelism, or a
# sharded state, does that. Answer 2 shrinks the activations, not the state.
# </details>

# %% [markdown]
# ## 3. Too slow: time
#
# One parameter takes part in about one multiplication and one addition per token in the forward pass, and twice that in
# the backward pass. So training $N$ parameters on $D$ **tokens** (pieces of text) takes about
#
# $$C = 6 N D$$
#
# floating-point operations, FLOPs for short (Kaplan and others 2020).

# %%
RUNS = {  # parameters N as counted there, tokens D, the FLOPs that the paper prints
    "BERT-large": (355e6, 250e9, 5.33e20),
    "GPT-3": (174.6e9, 300e9, 3.14e23),
    "Chinchilla": (70e9, 1.4e12, 5.76e23),
    "PaLM": (540e9, 780e9, 2.5272e24),
}
for model, (N, D, published) in RUNS.items():
    ratio = 6 * N * D / published
    print(f"{model:<11} 6ND = {6 * N * D:.3g}, published {published:.3g}, ratio {ratio:.3f}")

# %% [markdown]
# The papers of GPT-3 (which counts BERT-large, too) and PaLM use the same formula, so these rows check only our
# arithmetic. Chinchilla's number is its budget, not a count. A measured speed is a real test.
#
# **Model FLOPs utilisation** (MFU) is the share of the devices' peak speed that goes into those $6ND$ operations.
# PaLM's authors report 238.3 thousand tokens per second on 6,144 TPU v4 chips with a peak of 275 TFLOP/s each, and an
# MFU of 45.7 %, or 46.2 % with attention, which $6ND$ leaves out.

# %%
peak = 6144 * 275e12
without_attention = 238.3e3 * 6 * 540e9 / peak
# Attention adds 12 · layers · heads · head size · sequence length FLOPs per token.
with_attention = 238.3e3 * (6 * 540e9 + 12 * 118 * 48 * 256 * 2048) / peak
print(f"MFU {without_attention:.1%}, with attention {with_attention:.1%}")
days = 6 * 540e9 * 780e9 / (peak * without_attention) / 86_400
print(f"780 billion tokens at that speed: {days:.0f} days")
ratio = (6144 * 1200 + 3072 * 336) / (6144 * 24 * days)
print(f"chip-hours of the whole run, published against computed: {ratio:.2f}")

# %% [markdown] tags=["slide-text", "slide-predict"]
# Both utilisations agree with the paper's. The whole run took about 50 % more chip-hours than this speed needs: the
# published hours include downtime and repeated steps, and the run began with smaller, slower batches.
#
# One NVIDIA A100 has a peak of 312 TFLOP/s for 16-bit numbers. For language models we assume 40 % of it. Convolutional
# networks reach less: NVIDIA [published](https://github.com/NVIDIA/DeepLearningExamples) 2,470 images per second for
# ResNet-50.
#
# **Predict.** How long would one A100 take for PaLM, and how long the computer in front of you?

# %% tags=["varies"]
matrix = rng.standard_normal((1024, 1024)).astype(np.float32)
# A product of n × n matrices takes 2n³ operations; the shortest of ten is the least disturbed.
seconds = min(metrics.median_seconds(lambda: matrix @ matrix, repeats=1) for _ in range(10))
here = 2 * 1024**3 / seconds
print(f"Matrices on {devices.cores()} cores of this machine: {here / 1e9:,.0f} GFLOP/s")


def duration(seconds: float) -> str:
    """A length of time in a fitting unit."""
    units = {"years": 365.25 * 86_400, "days": 86_400, "hours": 3600, "minutes": 60}
    for unit, size in units.items():
        if seconds >= size:
            return f"{float(f'{seconds / size:.2g}'):,.10g} {unit}"
    return f"{seconds:.2g} seconds"


# %% tags=["varies", "slide-output"]
A100, ASSUMED = 312e12, 0.4
# A convolution uses a weight many times: count the 3.8e9 multiply-adds (He et al. 2015).
per_image = 6 * 3.8e9
work = {  # FLOPs, utilisation of the A100
    "MLP, 5 epochs of MNIST*": (6 * PARAMETERS["MLP (lecture)"] * 5 * 60_000, ASSUMED),
    "ResNet-50, 90 epochs of ImageNet": (per_image * 90 * 1.28e6, 2470 * per_image / A100),
}
work |= {model: (6 * N * D, ASSUMED) for model, (N, D, _) in RUNS.items()}
table = "| training | FLOPs | utilisation | one A100 | this machine at full speed |\n"
table += "|---|---|---|---|---|\n"
for name, (flops, utilisation) in work.items():
    on_a100, on_this = duration(flops / (utilisation * A100)), duration(flops / here)
    table += f"| {name} | {flops:.1e} | {utilisation:.0%} | {on_a100} | {on_this} |\n"
Markdown(table)

# %%
for model in ("GPT-3", "PaLM"):
    N, D, _ = RUNS[model]
    for_a_month = 6 * N * D / (ASSUMED * A100) / (30 * 86_400)
    print(f"{model}: {16 * N / 80e9:,.0f} devices of 80 GB for its state,", end=" ")
    print(f"{for_a_month:,.0f} A100 to finish in 30 days")

# %% [markdown]
# So:
#
# - The largest models need thousands of devices to finish in time; for their state alone a hundred would do.
# - The lecture's MLP needs no second device. The course uses it because the same rules hold for thousands. (* No A100
#   is that fast: a step of 32 images would take less time than starting one operation. [Chapter
#   02](02_single_device_baseline.ipynb) measures steps.)

# %% [markdown]
# ## 4. The words
#
# | word | meaning |
# |---|---|
# | host, node | one computer with its devices (**accelerators**: GPUs or TPUs) |
# | worker | one process of the training; some texts call the whole machine a worker |
# | rank, world size | a worker's number, from 0; the number of ranks |
# | replica | one copy of the model; usually one per device |
# | per-replica, global batch size | images per step of one replica, or of all |
# | all-reduce | every rank contributes an array and gets the sum of all |
#
# **Question.** You double the replicas and keep the per-replica batch size. What else changes?
#
# 1. Nothing but the speed.
# 2. The global batch doubles, and an epoch has half as many updates.
# 3. Each replica sees every image twice as often.
#
# <details>
# <summary>Answer</summary>
#
# **2.** That is another training, and often needs another learning rate ([chapter
# 10](10_large_batch_and_warmup.ipynb)). Answer 1 is a common mistake. In answer 3, the replicas share each epoch's
# images.
# </details>

# %% [markdown] tags=["slide-picture"]
# ## 5. Data parallelism
#
# ![Data parallelism: shards of one batch, whole replicas, one mean gradient](../figures/01_data_parallelism.svg)
#
# Every replica has all the weights. A batch is cut into **shards**, and each replica adds the gradients of its shard.
# An all-reduce gives every replica the sum of all; divided by the batch size, it is the mean. This works because the
# gradient of a mean is the mean of the gradients:
#
# $$\nabla \frac{1}{B} \sum_{i=1}^{B} \ell_i(w) = \frac{1}{B} \sum_{k=1}^{p} \sum_{i \in S_k} \nabla \ell_i(w)$$
#
# with $p$ shards $S_k$ of a batch of $B$ images. (The mean of the shards' means is the same only for equal shards.)
#
# It works for every model that fits into one device, if each $\ell_i$ depends on image $i$ alone. (Batch normalisation
# mixes the images of a shard: [chapter 10](10_large_batch_and_warmup.ipynb).)

# %% [markdown] tags=["slide-picture"]
# ## 6. Model parallelism
#
# Model parallelism divides the work on each example: every device takes part in the whole batch. **By layers:** each
# device holds some layers and hands activations to the next. The others wait, unless micro-batches follow each other
# through a **pipeline**.
#
# ![By layers: activations go forward, gradients back](../figures/01_model_parallelism_by_layers.svg)
#
# **Inside a layer** (tensor parallelism): each device holds some units of a layer, in the picture five of ten. The next
# layer sums over all units, so partial sums must be added up: an all-reduce inside the model.
#
# ![Inside a layer: five of ten units per device](../figures/01_model_parallelism_inside_a_layer.svg)
#
# **By parts of the input**: an image that is too large is cut into tiles; every device has all the weights ([chapter
# 12](12_model_parallelism.ipynb)).

# %%
batch = data.load(dataset).train.images[:64].reshape(64, 784)
W1, W2 = rng.standard_normal((784, 10)) / 28, rng.standard_normal((10, 10))
whole = np.maximum(batch @ W1, 0) @ W2

# By layers: device 0 holds W1, device 1 holds W2; only the place changes.
activations = np.maximum(batch @ W1, 0)
by_layers = activations @ W2
# Inside the layer: each device holds some of the ten units; partial outputs are all-reduced.
parts = np.array_split(np.arange(10), workers)
inside = sum(np.maximum(batch @ W1[:, units], 0) @ W2[units] for units in parts)
checks.assert_equal([by_layers, inside], [whole] * 2, "outputs")


# %%
def megabytes(count: float) -> str:
    return f"{4 * count / 1e6:>10,.2f} MB"


print("what one device sends per step, 32-bit numbers")
for replicas in (2, 8):
    sent = 2 * (replicas - 1) / replicas * PARAMETERS["MLP (lecture)"]  # ring all-reduce
    print(f"data parallel, {replicas} replicas, any batch size:      {megabytes(sent)}")
for batch_size in (64, 4096):
    sent = megabytes(128 * batch_size)
    print(f"by layers, 128 activations per image, batch {batch_size:>4}: {sent}")

# %% [markdown]
# Both ways compute the same sums. Gradients are as large as the weights, whatever the batch; activations grow with the
# batch. So data parallelism suits large batches and small models, model parallelism small batches and large models.
# Today's default for billions of parameters is data parallelism whose training state is divided among the replicas
# (**sharding**; FSDP, ZeRO): chapters 12 and 14.
#
# Divide a model yourself: ZeRO 1 shards the optimizer's state, ZeRO 2 also the gradients, and ZeRO 3 also the
# parameters. On how few devices of 80 GB does gpt-175b fit? (Begin with one replica.)

# %%
draw.calculator("memory")

# %% [markdown] tags=["slide-text", "slide-formula"]
# Here on 48, for example 8 devices in every layer times 6 pipeline stages, without ZeRO. (ZeRO 2 and 3 are rarely
# combined with a pipeline: every micro-batch would move the shards again.)
#
# ## 7. Computing against communicating
#
# A step with a global batch of $B$ tokens computes $6 N B$ FLOPs, on $p$ devices with $F$ FLOP/s each. A ring
# all-reduce ([chapter 06](06_collectives_and_ring_all_reduce.ipynb)) of $N$ gradients of 4 bytes sends $2(p-1)/p$ times
# the array from each device, over links of $W$ bytes per second:
#
# $$T_\text{compute} = \frac{6 N B}{p\,F}, \qquad T_\text{all-reduce} = \frac{2 (p - 1)}{p} \cdot \frac{4 N}{W}$$

# %% [markdown] tags=["slide-text", "slide-formula", "slide-continued"]
# At best all sending overlaps with computing, and the slower of the two sets the pace. The link slows no step if
# $T_\text{compute} \ge T_\text{all-reduce}$. $N$ cancels:
#
# $$\frac{B}{p} \ge \frac{4}{3} \cdot \frac{p - 1}{p} \cdot \frac{F}{W}$$
#
# In practice gradients hide only behind the backward pass, two thirds of $T_\text{compute}$. To hide all of them takes
# 1.5 times as many tokens.
#
# **Predict.** Eight A100 GPUs reach 40 % of their peak. How many tokens per device and step are needed over their
# NVLink 3 (300 GB/s), and how many over Ethernet with 1 Gbit/s?

# %%
LINKS = {  # bytes per second in one direction, from data sheets
    "NVLink 3": 300e9,
    "PCIe 4.0": 31.5e9,
    "InfiniBand, 200 Gbit/s": 25e9,
    "Ethernet, 25 Gbit/s": 25e9 / 8,
    "Ethernet, 1 Gbit/s": 1e9 / 8,
}
speed, sends = ASSUMED * A100, 2 * 7 / 8  # FLOP/s of a device; times it sends the gradients
step = 32 / 2470  # seconds for 32 images of ResNet-50 at the published rate
table = "| link | ResNet-50: all-reduce | images per device, at least "
table += "| language model: tokens per device, at least |\n|---|--:|--:|--:|\n"
for link, W in LINKS.items():
    all_reduce = sends * 4 * PARAMETERS["ResNet-50"] / W
    table += f"| {link} | {1e3 * all_reduce:,.1f} ms | {np.ceil(2470 * all_reduce):,.0f} "
    table += f"| {np.ceil(sends * 4 / 6 * speed / W):,.0f} |\n"
print(f"A step of ResNet-50 with 32 images per device computes for {1e3 * step:.0f} ms.")
Markdown(table)

# %% [markdown]
# A convolution uses each weight many times per image, a language model once per token. So on fast links two to twenty
# images are enough, or one to three texts of 2,048 tokens. Over 1 Gbit/s no usual batch is large enough. Gradients of 2
# bytes need half as many. In the **roofline** below, the link limits a device on the slope, and its own arithmetic on
# the flat roof.

# %% jupyter={"source_hidden": true} tags=["slide-output"]
figure, axes = plt.subplots(figsize=(7.2, 3.4))
tokens = np.logspace(1, 7, 200)
for rank, (link, W) in enumerate(LINKS.items()):
    style = {"color": draw.RANK_COLOURS[rank], "linestyle": draw.DASHES[rank], "marker": ""}
    reached = np.minimum(speed, tokens * 6 * W / (4 * sends))
    axes.plot(tokens, reached / 1e12, label=link, **style)
axes.set(xscale="log", yscale="log", ylim=(0.01, 300))
axes.set(xlabel="tokens per device and step", ylabel="TFLOP/s of one device")
figure.legend(loc="outside right center")
draw.show(
    figure,
    "Roofline, both axes logarithmic: the arithmetic of one device against its tokens per "
    "step, a line for each link. Each line rises until it meets the roof of 125 TFLOP/s: "
    "NVLink at about 490 tokens, Ethernet with 1 Gbit/s at more than a million.",
)

# %% [markdown] tags=["slide-picture"]
# ## 8. Synchronous and asynchronous updates
#
# Synchronous: no worker continues before the all-reduce is done. The run equals a serial one with the same global
# batch. The slowest worker, the **straggler**, sets the pace.
#
# ![Synchronous updates: all workers wait for the slowest](../figures/01_synchronous_updates.svg)

# %% [markdown] tags=["slide-picture"]
# Asynchronous: a parameter server holds the weights. Each worker fetches them, computes a gradient, sends it and
# fetches again. Nobody waits. But meanwhile others change the weights. The number of these updates is the gradient's
# **staleness**.
#
# ![Asynchronous updates: nobody waits, gradients get stale](../figures/01_asynchronous_updates.svg)
#
# For the loss $L(w) = w^2 / 2$, whose gradient is $w$, use the gradient of $\tau$ steps ago. **Predict.** With $\tau =
# 0$ training converges for learning rates below 2. And with $\tau = 1$, and $\tau = 7$?


# %%
def largest_rate(staleness: int, steps: int = 6000) -> float:
    """The largest rate, in steps of 0.005, at which the weights stay bounded."""
    rates = np.arange(0.005, 2.2, 0.005)  # all together, as an array
    history = [np.ones_like(rates)] * (staleness + 1)
    for _ in range(steps):
        weights = history[-1] - rates * history[-1 - staleness]
        history.append(np.clip(weights, -1e6, 1e6))
    return rates[np.max(np.abs(history[-100:]), axis=0) < 10].max()


for staleness in (0, 1, 3, 7):
    print(f"staleness {staleness}: bounded up to {largest_rate(staleness):.3f}", end=", ")
    print(f"by theory {2 * np.sin(np.pi / (4 * staleness + 2)):.3f}")

# %% [markdown] tags=["slide-takeaway"]
# A staleness of 1 halves the largest rate; one of 7, as among eight workers, cuts it to about a tenth. (The theory is
# Levin and May's, 1976: $2 \sin\left(\frac{\pi}{2 (2\tau + 1)}\right)$.) [Chapter 08](08_other_strategies.ipynb) trains
# both ways.
#
# | | synchronous | asynchronous |
# |---|---|---|
# | result | the serial run's | depends on timing |
# | a slow worker | slows all | slows itself |
# | a lost worker | stops all | the rest continue |
#
# Nearly all training today is **synchronous**, also on devices that come and go: the job is started again from its last
# checkpoint ([13](13_fault_tolerance.ipynb)).

# %% [markdown] tags=["slide-text", "slide-formula", "slide-predict"]
# ## 9. How much faster can training become?
#
# The **speed-up** is the serial time divided by the parallel time; divided by the number of devices it is the **scaling
# efficiency**.
#
# **Amdahl's law** (1967) answers: the *same* work on more devices. Take the serial time as 1. A part $1 - f$ cannot be
# divided; the part $f$ takes $f / p$ on $p$ devices:
#
# $$S(p) = \frac{1}{(1 - f) + f / p}$$
#
# **Gustafson's law** (1988) answers: *more* work in the same time. Take the parallel time as 1. One device would need
# $1 - f$ for the undivided part, and $p$ times as long for the divided one:
#
# $$S(p) = (1 - f) + f p$$
#
# **Predict.** 95 % of a program can be divided. How fast is it on 1,024 devices?


# %%
def amdahl(f: float, p: np.ndarray | float) -> np.ndarray | float:
    return 1 / ((1 - f) + f / p)


def gustafson(f: float, p: np.ndarray | float) -> np.ndarray | float:
    return (1 - f) + f * p


# %% jupyter={"source_hidden": true}
figure, panels = plt.subplots(1, 2, figsize=(7.2, 2.2), sharey=True)
runs = {
    "Amdahl: the same work": [(0.2, 0.8), (0.2, 0.2)],
    "Gustafson: more work": [(0.2, 3.2), (0.2, 0.8)],
}
for axes, (title, times) in zip(panels, runs.items(), strict=True):
    for name, (undivided, divided) in zip(("1 device", "4 devices"), times, strict=True):
        style = {"color": draw.RANK_COLOURS[0], "hatch": "//"}
        axes.barh(name, undivided, color=draw.QUIET, label="not divided")
        axes.barh(name, divided, left=undivided, label="divided", **style)
    axes.set(title=title, xlabel="time")
panels[0].invert_yaxis()
handles, labels = panels[0].get_legend_handles_labels()
figure.legend(handles[:2], labels[:2], loc="outside lower center", ncols=2)
draw.show(
    figure,
    "Bars of time on 1 and on 4 devices, with f = 0.8. Left, Amdahl: 0.2 undivided and 0.8 "
    "divided become 0.2 and 0.2, 2.5 times as fast. Right, Gustafson: what takes 0.2 and 0.8 "
    "on four devices would take 0.2 and 3.2 on one, 3.4 times as long.",
)

# %% jupyter={"source_hidden": true} tags=["slide-output"]
p = 2.0 ** np.arange(11)
figure, panels = plt.subplots(1, 2, sharey=True, figsize=(7.2, 3.4))
for axes, law in zip(panels, (amdahl, gustafson), strict=True):
    axes.plot(p, p, color="#767676", marker="", linestyle=":", label="ideal")
    for rank, f in enumerate((0.5, 0.95, 0.99)):
        style = {"color": draw.RANK_COLOURS[rank], "linestyle": draw.DASHES[rank]}
        axes.plot(p, law(f, p), label=f"f = {f:g}", marker=draw.MARKERS[rank], **style)
    axes.set(title=law.__name__.title(), xscale="log", yscale="log", ylim=(0.8, 2000))
    axes.set(xlabel="devices", xticks=[1, 10, 100, 1000])
    axes.minorticks_off()
panels[0].set_ylabel("speed-up")
figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
draw.show(
    figure,
    "Speed-up against devices from 1 to 1,024, both axes logarithmic. Left, Amdahl: the "
    "curves for f = 0.5, 0.95 and 0.99 flatten out towards 2, 20 and 100. Right, Gustafson: "
    "the same parts keep rising, near the ideal.",
)
for f in (0.5, 0.95, 0.99):
    print(f"f = {f:g}, 1,024 devices: {amdahl(f, 1024):,.1f} × by Amdahl,", end=" ")
    print(f"{gustafson(f, 1024):,.0f} × by Gustafson")

# %% [markdown] tags=["slide-takeaway"]
# With 95 % divisible work all 1,024 devices give less than 20, because the undivided 5 % alone take 1/20 of the serial
# time. Gustafson's 973 answers the other question, and its 5 % are a share of the *parallel* time. Of that run's serial
# time they are 0.005 %, with which Amdahl gives 973, too. Nobody buys a thousand devices to do yesterday's work.
#
# ### Which law for which measurement
#
# First say what the *work* is:
#
# - **Strong scaling**: the work is fixed. Examples are the time of a step with a fixed *global* batch, and the time of
#   a fixed number of epochs: the same images, whatever the batch.
# - **Weak scaling**: the work grows with the devices. The usual example is images per second with a fixed *per-replica*
#   batch.

# %% [markdown]
# Read backwards, the laws give the undivided part of a measured run:
#
# | who | what stayed fixed | what was measured | scaling |
# |---|---|---|---|
# | Argonne's tutorial, Horovod | epochs | time of the run | strong: Karp and Flatt (1990) |
# | Horovod's benchmarks, 512 GPUs | batch per GPU | images per second | weak: Gustafson |
# | NVIDIA's lab, 8 GPUs, `MirroredStrategy` | batch per GPU | images per second | weak: Gustafson |


# %%
def undivided_part(speedup: float, p: int) -> float:
    """Amdahl's 1 − f, for fixed work, from a measured speed-up (Karp and Flatt 1990)."""
    return (1 / speedup - 1 / p) / (1 - 1 / p)


def undivided_share(speedup: float, p: int) -> float:
    """Gustafson's 1 − f, for work that grows with p, as a share of the parallel time."""
    return (p - speedup) / (p - 1)


for p, elapsed in {2: 24.19, 4: 19.81, 8: 17.90}.items():
    speedup = 30.43 / elapsed
    part = undivided_part(speedup, p)
    print(f"Argonne, {p} processes: speed-up {speedup:.2f}, undivided {part:.0%}")
for model, efficiency in {"Inception V3": 0.90, "VGG-16": 0.68}.items():
    share = undivided_share(512 * efficiency, 512)
    print(f"{model}, 512 GPUs: efficiency {efficiency:.0%}, {share:.0%} of time not divided")
speedup = 213_891 / 67_000  # images per second on eight GPUs and on one
share = undivided_share(speedup, 8)
print(f"NVIDIA, 8 GPUs: speed-up {speedup:.2f}, {share:.0%} of time not divided")

# %% [markdown]
# More than half of Argonne's small run was not divided: a cost of each epoch, probably of its checkpoint ([chapter
# 11](11_scaling_and_profiling.ipynb) shows why). On the 512 GPUs the share is communication and waiting; VGG-16 has
# more gradients to send. NVIDIA's two numbers may not belong together: chapter 11 audits them.

# %% [markdown] tags=["slide-quiz"]
# **Question.** A program runs 1.9 × faster on 2 devices. What does that promise for 16?
#
# 1. 15.2 ×, as 1.9 / 2 is 95 %.
# 2. 16 ×; the missing 5 % is measurement noise.
# 3. About 9 × by Amdahl, if the undivided part stays what it is.
#
# <details>
# <summary>Answer</summary>
#
# **3.** The undivided part is (1/1.9 − 1/2) / (1 − 1/2), about 5 %. Answer 1 assumes that efficiency stays the same.
# Answer 2 forgets that small losses at 2 devices are large ones at 16.
# </details>

# %% [markdown] tags=["slide-picture"]
# ## 10. Which strategy for which case
#
# ![A decision tree from the size of the model and the number of hosts to a strategy](../figures/01_which_strategy.svg)
#
# Before model parallelism, recompute activations instead of storing them (**activation checkpointing**, not the saved
# checkpoints above), keep a part of the state in the host's memory (**offload**), or shard it (chapters 12 and 14).
#
# Two questions come first. Is the program fast on *one* device? A hundred devices multiply its waste. And is a step
# long enough to hide its all-reduce?

# %% [markdown]
# ## Quiz
#
# Ten questions with instant feedback; `seed=2` gives them other numbers.

# %%
quizzes.ask("01")

# %% [markdown]
# ## Recap
#
# - Training state takes 16 bytes per parameter with Adam; PaLM's fits no device.
# - $6ND$ FLOPs reproduce PaLM's published utilisation.
# - Data parallelism moves gradients, model parallelism activations.
# - The all-reduce is hidden if a device computes long enough per step; how long depends on the link.
# - Synchronous training runs at the straggler's pace; stale gradients lower the largest learning rate.
# - With fixed work the undivided part limits the speed-up; with growing work it does not.
#
# **Next.** [02 single-device baseline](02_single_device_baseline.ipynb).
#
# **Sources.** [Amdahl 1967](https://doi.org/10.1145/1465482.1465560), [Gustafson
# 1988](https://doi.org/10.1145/42411.42415), [Karp and Flatt 1990](https://doi.org/10.1145/78607.78614), [Levin and May
# 1976](https://doi.org/10.1016/0040-5809(76)90043-5); [ResNet](https://arxiv.org/abs/1512.03385),
# [BERT](https://arxiv.org/abs/1810.04805), [GPT-3](https://arxiv.org/abs/2005.14165),
# [Chinchilla](https://arxiv.org/abs/2203.15556), [ZeRO](https://arxiv.org/abs/1910.02054), [scaling
# laws](https://arxiv.org/abs/2001.08361); [measurements](../docs/sources.md) of Horovod, Argonne and NVIDIA;
# [TOP500](https://www.top500.org/lists/top500/2022/06/); data sheets of AMD, NVIDIA and Google.
