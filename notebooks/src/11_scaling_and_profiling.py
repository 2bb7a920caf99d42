# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown] tags=["needs-horovod"]
# # 11 Scaling and profiling
#
# **Goal.** Measure how training scales without fooling yourself, predict it, and find where the missing time goes.
#
# **Time.** 40 minutes to read, about a minute to run.
#
# **Before this.** [02 single-device baseline](02_single_device_baseline.ipynb) for measuring, [06
# collectives](06_collectives_and_ring_all_reduce.ipynb) for $\alpha$, $\beta$ and buckets, [09
# Horovod](09_horovod.ipynb) for ranks and launching.
#
# **Questions.**
# - How many images did a run really process?
# - Which published efficiencies survive a recount?
# - What does a checkpoint by rank 0 cost all ranks?
# - How do weak and strong scaling differ, and can both be predicted?
# - At which batch size can each kind of parallelism hide its communication?
# - Where does the missing time go, and in which order do you search?
#
# **Hardware.** Two CPU cores, and a C compiler for section 7.

# %% tags=["parameters"]
dataset = "digits"  # digits, mnist or fashion_mnist; section 6 trains on 5,000 images of it
epochs = 3  # of the profiled training; the first one is the warm-up
workers = 4  # the most ranks that are measured, 2 to 8

# %% jupyter={"source_hidden": true}
import distlab  # first, as in every chapter; TensorFlow itself runs in child processes here

import re
import tempfile
import textwrap
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from distlab import costs, data, draw, launch, metrics, profiling, programs, quizzes

launch.require_horovod()
draw.apply_style()
epochs = max(2, epochs)  # one to warm up, and one to look at
PROGRAMS = Path("programs/11_scaling_and_profiling")
scratch = tempfile.TemporaryDirectory()
folder = Path(scratch.name)
limits = {"start_seconds": 300, "echo": False}
print(data.describe(dataset))
problem, counting = None, {"MPI_PROFILE": str(folder / "whole")}  # for section 7
try:
    library = profiling.mpi_profile.build(PROGRAMS / "mpi_profile.c", folder)
    counting["LD_PRELOAD"] = str(library)
except profiling.mpi_profile.NoCompiler as error:
    problem = str(error)

# %% [markdown]
# ## 1. What was processed, in which time
#
# Twice the GPUs cost twice as much per hour. Do you get twice as much? **Throughput** is images per second.
# **Speed-up** on $p$ ranks is throughput divided by that of one rank, and **efficiency** is speed-up divided by $p$.
# Devices that share batches also take part in an all-reduce:
#
# ![Three batches on one of two devices take longer than on both, but not twice as
# long: between two batches there is an all-reduce](../figures/11_busy_devices.svg)

# %% [markdown]
# Throughput needs two numbers. The *time* of the first epoch includes tracing. The *images* are not the size of the
# data set: batches may be smaller, a tail may be dropped. So this program counts the images in the step with a metric,
# and times epochs with a callback.

# %%
programs.show(PROGRAMS / "minimal.py")

# %% [markdown] tags=["slide-predict"]
# **Predict.** 5,000 images, 2 ranks, batches of 256 on each. How many images does an epoch process?

# %% tags=["varies"]
outputs = {}
for ranks in (1, 2):
    print(f"$ mpirun -np {ranks} python minimal.py")
    run = launch.mpirun(PROGRAMS / "minimal.py", ranks=ranks, environment=counting, **limits)
    outputs[ranks] = [run.output[f"rank {rank}"] for rank in range(ranks)]
    print(*(text.splitlines()[0] for text in outputs[ranks]), sep="\n")

# %% tags=["slide-output"]
images = {}
for ranks, texts in outputs.items():
    of_ranks = [re.search(r"\[(.*?)\]", text)[1].split() for text in texts]
    images[ranks] = np.array(of_ranks, int).sum(axis=0)  # by epoch
    for epoch, counted in enumerate(images[ranks][:2]):
        more = f"5,000 would be {5000 / counted - 1:.0%} too many"
        print(f"{ranks} rank{'s' * (ranks > 1)}, epoch {epoch}: {counted:,} images; {more}")

# %% [markdown] tags=["slide-takeaway"]
# **4,608**: each of two ranks has 2,500 images, 9 full batches and one of 196. The program takes
# `5000 // 2 // 256` = 9 steps, but the 196 are not dropped: the data set repeats, so they are the first batch of the
# second epoch. Neither "images in the data set" nor, where a batch may be smaller, "steps × batch" is right. With the
# wrong number more ranks look better, because their epochs process fewer images.

# %% [markdown] tags=["slide-text", "slide-predict"]
# ## 2. A published table, audited
#
# A lab of NVIDIA and OpenHackathons trains on 60,000 images with 1, 2, 4 and 8 GPUs. Its callback divides 60,000 by the
# time of an epoch, while its script takes `60000 // (batch * size)` steps of full batches (it repeats the images before
# it cuts them). So its images/s are too high; multiply them by the share of the images that were processed, for $p$
# GPUs and for one.
#
# **Predict.** The batch of each A100 is 8192. What is left of the 86 % claimed for 8 A100?

# %% tags=["slide-output"]
lab_table = {  # GPU and its batch, images/s of one; for 2, 4, 8: images/s and efficiency
    ("V100", 2048, 71_149): {2: (125_206, 0.88), 4: (253_439, 0.88), 8: (489_929, 0.86)},
    ("A100", 8192, 109_642): {2: (168_561, 0.77), 4: (262_557, 0.60), 8: (None, 0.86)},
}


def images_in(batch, gpus):
    """Images that an epoch of that lab's script processes."""
    return 60_000 // (batch * gpus) * batch * gpus


print("GPUs          steps  images  images/s  claimed       true")
for (gpu, batch, one), of_gpus in lab_table.items():
    for gpus, (rate, claimed) in of_gpus.items():
        counted, true = images_in(batch, gpus), "undefined"
        if rate:
            true = f"{rate / gpus / one * counted / images_in(batch, 1):.0%}"
        row = f"{gpus} {gpu}, {batch} {60_000 // (batch * gpus):5} {counted:7}"
        print(f"{row} {rate or '-':>9} {claimed:8.0%} {true:>10}")
print("MirroredStrategy on 8 V100: 213,891 images/s; Horovod on one: 67,000")
print(f"their quotient by GPU: {213_891 / (8 * 67_000):.0%}")

# %% [markdown] tags=["slide-takeaway"]
# With 8 A100 an epoch has **no step at all**. Keras' `fit` raises an error then, and "~86 %" was never measured. The
# last line divides rates of *different programs*, so no count makes it an efficiency.
#
# **Question.** A run takes `steps_per_epoch = images // (batch * size)` steps. When may you divide the size of the data
# set by the time of an epoch?
#
# 1. Always: the tail is only a few images.
# 2. If the tail is filled up by padding.
# 3. If the global batch divides the data set, for every number of ranks that is compared
#
# <details>
# <summary>Answer</summary>
#
# 1. The tail can be almost a global batch, which grows with the ranks.
# 2. Then the epoch works on more images than the set has: wrong the other way.
# 3. **Right.** Counting is easier.
# </details>

# %% [markdown]
# ## 3. Amdahl's law, and a checkpoint in every epoch
#
# Let a part of the work take $s$ seconds whatever the number of ranks, and let the rest, $w$ seconds, be divided
# (Amdahl, 1967):
#
# $$T_p = s + \frac{w}{p}, \qquad S_p = \frac{s + w}{s + w/p} < \frac{s + w}{s}$$
#
# Argonne's Horovod tutorial trains a CNN on MNIST with 1, 2, 4 and 8 GPUs, with `60000 // size // 512` steps per epoch,
# in 30.43, 24.19, 19.81 and 17.90 s. The **serial share** $s / (s + w)$ comes from a fit, or from each time alone. Karp
# and Flatt (1990) look at how it changes with $p$: a fixed part keeps its share.

# %% tags=["slide-output"]
gpus, tutorial = np.array([1, 2, 4, 8]), np.array([30.43, 24.19, 19.81, 17.90])
law = costs.fit_amdahl(gpus, tutorial)
for p, seconds in zip(gpus, tutorial, strict=True):
    speedup = metrics.speedup(tutorial[0], seconds)
    row = f"p = {p}: {seconds:.2f} s, fit {law.seconds(p):.2f} s, speed-up {speedup:.2f}"
    print(row + (f", serial share {costs.serial_share(speedup, p):.0%}" if p > 1 else ""))
fixed, divided = law.serial_seconds, law.parallel_seconds
print(f"fit: s = {fixed:.1f} s, w = {divided:.1f} s, serial share {law.serial_share:.0%}")
print(f"largest speed-up with any number of GPUs: {law.largest_speedup:.2f}")
for timed in (31, 49):
    row = f"if {timed} epochs were timed: {fixed / timed:.2f} s fixed in each"
    print(f"{row}, {divided / timed:.2f} s divided")

# %% [markdown] tags=["slide-takeaway", "slide-text", "slide-predict"]
# The share hardly changes: half of the time is *fixed*. It is hardly the network, since 8 GPUs all-reduce only a
# quarter as often as 2, nor the start of TensorFlow: the published program trains a whole epoch before its clock
# starts. So nearly all of $s$ is a cost *per epoch*, of 31 epochs (the script's default) or 49 (the log).
#
# The suspect is rank 0's callback `ModelCheckpoint`, which saves the whole model after each epoch. (*Not proved:* the
# log's 11 to 30 ms per step leave hardly any room for a save.) So measure it: the second `fit` of `minimal.py`
# ("saving") does the same. The third ("rarer") is our cure: rank 0 saves once in four epochs.
#
# **Predict.** Rank 1 saves nothing. How long are its epochs?

# %% tags=["varies", "slide-output"]
epoch, ways = {}, ("plain", "saving", "rarer")  # seconds of each rank, by ranks and way
for ranks, texts in outputs.items():
    of_ranks = [re.findall(r"([\d.]+) s\b", text) for text in texts]
    epoch[ranks] = dict(zip(ways, np.array(of_ranks, float).T, strict=True))
print("an epoch of       one rank   two: rank 0   rank 1   speed-up")
for way in ways:
    alone, together = epoch[1][way], epoch[2][way]
    speedup = images[2][-1] / together[0] / (images[1][-1] / alone[0])
    row = f"{way:16} {alone[0]:7.2f} s {together[0]:11.2f} s {together[1]:6.2f} s"
    print(f"{row} {speedup:8.2f}")

# %% [markdown] tags=["slide-takeaway"]
# Rank 1's epochs become longer too: it waits in the first all-reduce of the next epoch. A second rank halves the steps,
# but not the saving of rank 0, so the speed-up falls. **A checkpoint by rank 0 in every epoch is Amdahl's serial
# part.**
#
# With a quarter of the saving the speed-up rises again. Saving in the background helps too ([chapter
# 13](13_fault_tolerance.ipynb)). The slider shows what a small serial part costs a large job:

# %%
draw.calculator("amdahl")

# %% [markdown]
# **Question.** A job with a serial share of 10 % of one rank's time runs on 64 ranks. What is its speed-up?
#
# 1. 57.6: 90 % of 64.
# 2. About 8.8
# 3. Exactly 10.
#
# <details>
# <summary>Answer</summary>
#
# 1. That takes the share for an efficiency.
# 2. **Right.** 1 / (0.1 + 0.9/64). No number of ranks gives more than 10.
# 3. That is the limit, not the value at 64.
# </details>

# %% [markdown]
# ## 4. Weak and strong scaling on this machine
#
# - **Strong scaling:** the total work is fixed, so each of $p$ ranks gets $1/p$ of the batch. Ideal: $T_p = T_1 / p$.
# - **Weak scaling:** the work of each rank is fixed, so the batch grows with $p$. Ideal: $T_p = T_1$.
#
# `scaling.py` times this step, with 64 images per rank (weak) and 64 in all (strong). Its network has two dense layers
# of 1,024 units: many weights and little work, so little hides the all-reduce. The program gives each rank one core and
# one thread.

# %%
programs.show(PROGRAMS / "scaling.py", "train")

# %% [markdown] tags=["slide-predict"]
# We predict first. *Computing:* one rank takes $T_1$ for 64 images, and where ranks share a core, their times add up.
# *All-reduce:* `costs.fit` gives $\alpha$ and $\beta$ from Horovod's all-reduces of 1 KiB to 16 MiB on two ranks; the
# ring takes $2(p-1)\alpha + 2\frac{p-1}{p}n\beta$. Overlap is ignored.
#
# **Predict.** Two ranks on two cores. Which has the better efficiency, weak or strong scaling?

# %% tags=["varies"]
most = 2 ** int(np.log2(max(2, workers)))
arguments = ["--blocks", 6, "--steps", 3]
print("$ mpirun --oversubscribe --bind-to none", f"-np {most} python scaling.py", *arguments)
run = launch.mpirun(PROGRAMS / "scaling.py", *arguments, ranks=most, result=True, **limits)
measured = {int(p): times for p, times in run.result["sizes"].items()}
cores, batch = run.result["cores"], run.result["batch"]
gradient = {name: 4 * parameters for name, parameters in run.result["parameters"].items()}
array_bytes = np.array(run.result["all_reduce_bytes"])
ring = costs.all_reduce("ring", 2, array_bytes)
fit = costs.fit(array_bytes, measured[2]["all_reduce"], ring)
print(f"Horovod on two ranks: α = {1e6 * fit.latency:,.0f} µs,", end=" ")
print(f"1/β = {fit.bandwidth / 1e9:.2f} GB/s; {cores} cores")

# %% tags=["varies", "slide-output"]
sizes = np.array(sorted(measured))
sharing = np.maximum(1, sizes / cores)
exchange = fit.seconds(costs.all_reduce("ring", sizes, gradient["dense"])) * (sizes > 1)
print("        ranks  ms / step  predicted   images/s  efficiency")
for kind, divided in (("weak", 1), ("strong", sizes)):
    seconds = np.array([np.median(measured[p][kind]) for p in sizes])
    serial = seconds[0]  # sizes are sorted: one rank
    predicted = serial * sharing / divided + exchange
    rate = batch * sizes / divided / seconds
    for place in np.flatnonzero(sizes <= max(2, cores)):
        row = f"{kind:8}{sizes[place]:>5}  {1e3 * seconds[place]:9.1f}"
        row += f" {1e3 * predicted[place]:10.1f}"
        efficiency = rate[place] * serial / batch / sizes[place]
        print(f"{row} {rate[place]:10,.0f} {efficiency:11.0%}")
    if sizes[-1] > cores:
        row = f"{kind} scaling, {sizes[-1]} ranks on {cores} cores: "
        print(f"{row}{seconds[-1] / serial:.1f} times as long a step as one rank alone")

# %% [markdown] tags=["slide-takeaway"]
# **Weak** scaling pays one all-reduce per step, and is faster than predicted where a part of it is hidden. **Strong**
# scaling pays the same, and has only $1/p$ of the computing to set against it. Its step is longer than predicted, since
# not all computing is divided: each rank updates all weights. More ranks than cores share them: the machine is
# **oversubscribed**, with an efficiency of at most cores / ranks.
#
# Why not 100 % on two ranks? We measure again, now in turns, also with the course's CNN: one rank alone, both *apart*
# (without the all-reduce), both together. Two ranks apart that are slower than one compete for memory, cache or clock
# rate.

# %% tags=["varies"]
print("ms / step  one rank  apart  together  efficiency  all-reduce alone  exposed  gradient")
for network, blocks in measured[2]["turns"].items():
    single, apart, together = 1e3 * np.array(blocks)  # ms, by block
    alone = 1e3 * fit.seconds(costs.all_reduce("ring", 2, gradient[network]))
    row = f"{network:10}"
    for milliseconds, width in ((single, 9), (apart, 7), (together, 10)):
        row += f"{np.median(milliseconds):{width}.1f}"
    row += f"{np.median(single / together):12.0%}{alone:18.1f}"
    print(f"{row}{np.median(together - apart):9.1f}  {gradient[network]:,} bytes")

# %% [markdown]
# *Exposed* is what the all-reduce adds to the step. It is less than the all-reduce alone where gradients travel while
# others are computed, and more where the gradient comes in pieces that wait for their turn.
#
# **Question.** 4 ranks on 4 cores; TensorFlow in each rank has its default, one thread per core. What happens?
#
# 1. 16 threads do four times the work.
# 2. 16 threads take turns on 4 cores; caches are refilled, ranks wait for late ones
# 3. Nothing: TensorFlow sees the other ranks.
#
# <details>
# <summary>Answer</summary>
#
# 1. There are still 4 cores.
# 2. **Right.** Oversubscription by threads. Use one thread per rank, or cores / ranks.
# 3. It does not know of them.
# </details>

# %% [markdown] tags=["slide-text", "slide-predict"]
# ## 5. When does communication hide?
#
# A device does $C$ operations per second, and a link moves $W$ bytes per second. For each scheme compare the time of
# the communication with that of the computing that can hide it. Per token a weight takes 2 operations forward, which
# hide FSDP's all-gather, and 4 backward.
#
# Take A100 GPUs ($C$ = 312 TFLOP/s) with 300 GB/s inside a host, and 200 GB/s from each host of 8 GPUs to the others.
# (Gradients are first summed inside a host, so they use all 200 GB/s; the activations of one GPU get an eighth.) The
# layers are GPT-3's, $h$ = 12,288 wide, with 2 bytes per number.
#
# **Predict.** The table has the ratio communication / computing. For which two schemes does a larger batch not change
# it?

# %% tags=["slide-output"]
machine, width, tokens = costs.HARDWARE["dgx-a100"], 12_288, np.array([1024, 8192])
inside, between = machine.inside.seconds_per_byte, machine.between.seconds_per_byte
print("tokens per GPU           1,024  8,192")
ways = [("inside a host", 8, inside, inside)]
ways += [("between 128 hosts", 128, between, 8 * between)]  # 8 GPUs of 8 hosts
for where, ranks, gradients, activations in ways:
    print(where)
    reduced = costs.all_reduce("ring", ranks, 2).seconds(0, gradients)  # of one weight
    gathered = costs.all_gather_ring(ranks, 2).seconds(0, gradients)
    summed = costs.all_reduce("ring", 8, 2 * width).seconds(0, activations)  # of one token
    schemes = {  # seconds of communication, operations that hide it; a layer has 12 h² weights
        "data parallel": (reduced, 4 * tokens),
        "ZeRO-3, FSDP": (gathered, 2 * tokens),
        "tensor, 8 GPUs": (2 * summed * tokens, 24 * width**2 / 8 * tokens),
        "pipeline, 8 layers": (2 * width * activations * tokens, 8 * 24 * width**2 * tokens),
    }
    for scheme, (seconds, operations) in schemes.items():
        small, large = seconds * machine.matrix_flops / operations
        print(f"    {scheme:20} {small:5.3f} {large:6.3f}")

# %% [markdown] tags=["slide-takeaway", "slide-table"]
# Tensor parallelism and the pipeline. Data parallelism needs enough tokens per GPU, tensor parallelism wide layers and
# the fast links inside a host.
#
# | scheme | hides its communication, of $b$ bytes per number, if | because |
# |---|---|---|
# | data parallel | tokens per GPU and *backward pass* $> bC / 2W$ | sent once per step, beside the last backward pass |
# | ZeRO-3, FSDP | tokens per GPU and *micro-batch* $> bC / 2W$ | weights travel for each micro-batch |
# | tensor, $t$ GPUs | $t - 1 < 6hW / bC$, and it is sent in pieces | the batch cancels; each layer waits for its sum |
# | pipeline, $p$ stages | nearly always | hardly any bytes; for a bubble of 10 % micro-batches $\ge 9(p-1)$ |
#
# $C$ is a peak; at half of it a device hides twice as much.

# %% [markdown]
# Measure $W$ on your cluster. **Algorithm bandwidth** is $n/t$ for an array of $n$ bytes. It falls with more ranks
# although no link is slower. So NCCL's tests report the **bus bandwidth**, $\frac{n}{t} \cdot \frac{2(p-1)}{p}$ for an
# all-reduce. For a perfect ring and a large array it is the speed of a link, whatever $p$.
#
# **Question.** On 2 ranks you measure a bus bandwidth of 8 GB/s, on 8 ranks an algorithm bandwidth of 4 GB/s. Are the
# links slower with 8?
#
# 1. Yes, half as fast.
# 2. No: 4 × 1.75 = 7 GB/s.
# 3. One cannot say; bandwidth depends on the number of ranks.
#
# <details>
# <summary>Answer</summary>
#
# 1. No: that compares a bus bandwidth with an algorithm bandwidth.
# 2. **Right.** Nearly the same links; the rest is latency or a shared cable.
# 3. Algorithm bandwidth does, bus bandwidth does not.
# </details>
#
# With published $\alpha$, $\beta$ and computing times the same formulas predict other clusters: the four rows most
# often quoted (no proof: some assumptions were chosen with them in view), and our two worst, each on another machine
# ("blind": computed after all assumptions were fixed, in two rounds). All are in the [sources](../docs/sources.md).

# %%
results = costs.efficiencies.RESULTS
ranked = sorted(results, key=lambda row: -abs(row.difference))
misses = [ranked[0], next(row for row in ranked if row.hardware != ranked[0].hardware)]
print(costs.efficiencies.table([*results[:4], *misses]))
within = sum(row.is_within for row in results)
print(f"\n{within} of {len(results)} published results are within 5 points. Two misses:")
for row in misses:
    print(textwrap.fill(f"{row.name}: {row.reason}", 95))

# %% [markdown]
# ## 6. The timeline: overlap, buckets and the exposed tail
#
# Gradients become ready from the last layer to the first. Horovod collects what is ready in a cycle into a **bucket**
# and all-reduces it while the backward pass goes on. Nothing hides the last bucket: the **exposed tail**.
#
# ![Three timelines: one all-reduce at the end takes longest, one for each gradient is delayed by latency, buckets end
# shortly after the backward pass](../figures/06_overlap.svg)

# %% [markdown]
# With `HOROVOD_TIMELINE` rank 0 records each gradient: **negotiated** until all ranks have it, **queued**, copied into
# the bucket's buffer, **communicated**. `train.py` trains the course's CNN with this instrument and those of sections 7
# and 8.

# %% tags=["varies"]
arguments = ["--epochs", epochs, "--trace", folder / "trace", "--dataset", dataset]
instruments = counting | {"MPI_PROFILE": str(folder / "profile")}
instruments["HOROVOD_TIMELINE"] = str(folder / "timeline.json")
instruments["HOROVOD_CACHE_CAPACITY"] = "0"  # else Horovod remembers negotiations
print("$ export HOROVOD_TIMELINE=timeline.json HOROVOD_CACHE_CAPACITY=0")
print("$ MPI_PROFILE=profile LD_PRELOAD=libmpi_profile.so \\")
print(f"  mpirun -np 2 python train.py --epochs {epochs} --trace trace")
how = {"environment": instruments, "result": True} | limits
trained = launch.mpirun(PROGRAMS / "train.py", *arguments, ranks=2, **how).result
steps = trained["steps_per_epoch"]

# %% tags=["varies"]
timeline = profiling.horovod_timeline.read(folder / "timeline.json")
reduced = [tensor for tensor in timeline.operations if "Allreduce_grads" in tensor.tensor]
after_tracing = range(steps, steps * epochs)  # without epoch 0, and section 8's, the last
every = [reduced[6 * step : 6 * step + 6] for step in after_tracing]
lengths = [max(tensor.end for tensor in step) - step[0].start for step in every]
first, last = every[0][0].start, every[-1][-1].end
calls = sum(first <= call.start <= last for call in timeline.collectives())
print(f"{6 * len(every)} gradients, {calls} all-reduces: {calls / len(every):.1f} per step")

# %% jupyter={"source_hidden": true} tags=["varies", "slide-output"]
shown = every[int(np.argsort(lengths)[len(lengths) // 2])]  # of median length
least = 0.012 * max(tensor.end - shown[0].start for tensor in shown)  # or nobody sees the box
rows = {}
for tensor in shown:
    name = trained["variables"][int(re.search(r"grads_(\d+)", tensor.tensor)[1])]
    _, start, end = tensor.communication
    parts = {"negotiating": (tensor.start, tensor.negotiated)}
    parts["queued or copied"] = (tensor.negotiated, start)
    boxes = [draw.Interval(start, max(end, start + least), "communicating")]
    boxes += [draw.Interval(a, b, part) for part, (a, b) in parts.items() if b - a > least]
    rows[f"{name}, {tensor.nbytes:,} bytes"] = boxes
figure = draw.busy({"the gradients of one step": list(rows.values())}, list(rows))
figure.axes[-1].set_xlabel("ms since the first gradient was announced; short boxes widened")
draw.show(figure, "One step, a row for each gradient: negotiated, queued, communicated.")

# %% tags=["varies"]
tensors = [tensor for step in every for tensor in step]
parts = [tensor.parts() for tensor in tensors]
seconds = {part: sum(of_one[part] for of_one in parts) for part in parts[0]}
print("mean times of a gradient (several wait at the same time):")
for part, taken in seconds.items():
    if taken:
        share = taken / sum(seconds.values())
        print(f"{part:14} {1e3 * taken / len(tensors):9.1f} ms per gradient, {share:6.1%}")
tails = []  # since all were known to have the last gradient; since the bucket before
for step in every:
    end, known = (max(getattr(tensor, at) for tensor in step) for at in ("end", "negotiated"))
    before = [tensor.negotiated for tensor in step if tensor.started < known]
    tails.append((end - known, end - max(before, default=step[0].start)))
low, high = 1e3 * np.median(tails, axis=0)
alone = 1e3 * fit.seconds(costs.all_reduce("ring", 2, gradient["cnn"]))
print(f"exposed tail (medians): {low:.1f} to {high:.1f} of {1e3 * np.median(lengths):.1f} ms")
print(f"expected for the whole gradient in one piece (section 4): {alone:.1f} ms")
late = [tensor.last_rank for tensor in tensors]
print(f"last to be ready: rank 0 {late.count(0)} times, rank 1 {late.count(1)} times")

# %% [markdown] tags=["slide-takeaway"]
# Gradients whose boxes end together travel in one bucket, and Horovod's thread hears of others only between two
# buckets. So the last gradient became ready after the bucket before had been negotiated, and before all ranks were
# known to have it: two bounds of the exposed tail. If they are far apart, only section 4's way can tell: the same step
# with and without the all-reduce.
#
# Even hidden communication costs computing time: Horovod's threads share the cores.
#
# Long **negotiating** is waiting: for the backward pass, for a slower rank, or for Horovod's thread while a bucket
# travels. A rank that is nearly always the last is a straggler ([chapter 13](13_fault_tolerance.ipynb)).
#
# To browse it, drop `timeline.json` on `ui.perfetto.dev`.

# %% [markdown] tags=["slide-predict"]
# ## 7. What MPI was asked to do
#
# Each MPI function has a second name, `PMPI_…`. A library that defines `MPI_Allreduce`, counts, and calls
# `PMPI_Allreduce` sees every call. `MPI_Pcontrol` limits the count in `train.py` to the broadcast of the weights and
# `fit`.
#
# **Predict.** With the defaults `fit` took 27 steps. How many bytes of gradient does a rank pass to `MPI_Allreduce`?

# %% tags=["slide-output"]
nbytes, taken = gradient["cnn"], steps * epochs
profile = {} if problem else profiling.mpi_profile.read(folder / "profile")
for rank, rows in profile.items():
    reduces = [row for row in rows if row.routine == "MPI_Allreduce"]
    counted = sum(row.bytes for row in reduces if row.type == "MPI_FLOAT")
    print(f"rank {rank}: {counted:,} bytes; {taken} steps × {nbytes:,} = {taken * nbytes:,}")
if problem:
    print(problem)

# %% [markdown]
# With a compiler: to the byte. Next, the calls of rank 0 in `minimal.py` on two ranks (section 1 ran it with the
# library, too), with Horovod's cache:

# %% tags=["varies", "slide-output"]
whole = {} if problem else profiling.mpi_profile.read(folder / "whole")
print(problem or f"{'routine':16} {'type':20}calls  bytes per call   seconds  ms per call")
for row in whole.get(0, []):
    each = row.bytes / row.calls
    print(f"{row.routine:16} {row.type:17} {row.calls:7,} {each:15,.0f}", end=" ")
    print(f"{row.seconds:9.3f} {1e3 * row.seconds / row.calls:12.2f}")

# %% [markdown] tags=["slide-takeaway"]
# Most calls of `MPI_Allreduce` are of **8 bytes**: in each cycle, of a millisecond or more, Horovod's background thread
# asks whether all ranks have the same tensors ready, and waits for the others. MPI needs microseconds for 8 bytes
# (section 4's $\alpha$ is Horovod's), yet a call takes hundreds of them. So nearly all of it is waiting: **time in MPI
# is not time on the network**.
#
# In a table of Argonne's tutorial a rank spent 12.8 of 13.9 seconds in `MPI_Allreduce`, in 12,150 calls of 8 bytes:
# about a cycle each. The gradients are missing there: they went through NCCL, and **an MPI profile does not show NCCL
# calls**.

# %% [markdown]
# ## 8. What TensorFlow computed
#
# `tf.profiler.experimental.Profile(…)` records each operation, here around one epoch of rank 0.
# `tf.keras.callbacks.TensorBoard(folder, profile_batch=(10, 20))` does it for steps 10 to 20, and TensorBoard with
# `tensorboard-plugin-profile` shows it. The dense layers have nearly all of the weights. Do they also take the time?

# %% tags=["varies", "slide-output"]
PLAIN = {  # parts of TensorFlow's names, the longer first, and what they are
    "Conv2DBackpropFilter": "convolution, backward",
    "Conv2D": "convolution, forward",
    "FusedMatMul": "dense layers, forward",
    "MatMul": "dense layers, backward",
    "MaxPoolGrad": "max-pooling, backward",
    "MaxPool": "max-pooling, forward",
    "ReluGrad": "ReLU, backward",
}
busiest = dict.fromkeys(PLAIN.values(), 0)
for operation in trained["operations"]:
    for part, name in PLAIN.items():
        if part in operation["kind"]:
            busiest[name] += 1e3 * operation["seconds"] / steps
            break
top = dict(sorted(busiest.items(), key=lambda pair: -pair[1]))
described = ", ".join(f"{name} {ms:.1f}" for name, ms in top.items())
draw.show(draw.bars(top, "ms per step, rank 0", "{:.1f}"), f"Time of operations: {described}")
weights = {layer.name: layer.parameters for layer in costs.MODELS["cnn"].layers}
share = weights["convolution"] / sum(weights.values())
print(f"the convolution has {share:.1%} of the parameters, the dense layers {1 - share:.1%}")

# %% [markdown] tags=["slide-takeaway"]
# The convolution computes much with few weights, and usually takes longer than the dense layers. **What takes long to
# compute is not what takes long to send.** So VGG-16, with its large dense layers, scaled worst in Horovod's own
# benchmark.

# %% [markdown] tags=["slide-table"]
# ### In which order to search
#
# On GPUs `nsys profile --trace=cuda,nvtx` shows these patterns. Begin with one device, then look at all:
#
# | | pattern | cause | cure |
# |---|---|---|---|
# | 1 | gaps between steps | input, callbacks | prefetch ([chapter 02](02_single_device_baseline.ipynb)) |
# | 2 | gaps between kernels | small kernels | larger batch, XLA |
# | 3 | no gaps, long kernels | computing | lower precision |
# | 4 | NCCL kernels with nothing beside them | exposed tail | larger batch, fp16 |
# | 5 | NCCL kernels of unequal length | the rank with the *shortest* is late | equal work, binding |
#
# Apply one cure, and measure again: NERSC's tutorial goes from 9.4 to 42.5 samples/s by 1 and 3. `record_gpu.py`
# records speed, idle time and bandwidth of your GPUs. The course has not run on a GPU yet.
#
# **Question.** The profile says that 30 % of the time is spent in `MPI_Allreduce`. What do you do first?
#
# 1. Buy a faster network.
# 2. Look at the timeline: is one rank always the last?
# 3. Use fewer ranks.
#
# <details>
# <summary>Answer</summary>
#
# 1. If the time is waiting, a faster network changes nothing.
# 2. **Right.** Waiting needs other cures (load balance, binding to cores) than sending (larger batches, fp16, a better
#    network).
# 3. That lowers the time in MPI and the speed-up with it.
# </details>

# %% [markdown]
# ## Quiz
#
# Ten questions with instant feedback; `seed=2` gives them other numbers.

# %%
quizzes.ask("11")

# %% [markdown]
# ## Recap
#
# - Count the images inside the step; "data set / time of an epoch" flatters large jobs.
# - What one rank does while the others wait, such as a checkpoint in every epoch, is Amdahl's serial part.
# - Larger batches hide the communication of data parallelism and FSDP, not that of tensor parallelism.
# - Search on one device first, then on all.
# - Time in MPI is not time on the network, and an MPI profile does not show NCCL.
#
# **Next.** [Lab 11](../labs/11_scaling_and_profiling/lab.ipynb), [12 model parallelism](12_model_parallelism.ipynb).
#
# **Sources.**
# - [Amdahl](https://doi.org/10.1145/1465482.1465560) (1967), [Karp and Flatt](https://doi.org/10.1145/78607.78614)
#   (1990).
# - OpenHackathons, [Distributed deep learning](https://github.com/openhackathons-org/gpubootcamp), notebook 1.
# - Argonne,
#   [tutorial](https://github.com/argonne-lcf/ALCF_Hands_on_HPC_Workshop/blob/5b4beb1902b80dfe10a6a6b7a62e768b2814782d/learningFrameworks/distributedDeepLearning/README.md)
#   and
#   [program](https://github.com/argonne-lcf/ALCF_Hands_on_HPC_Workshop/blob/191fca90acaa43b9528f46d25f6b1e1cc0583ccc/learningFrameworks/distributedDeepLearning/Horovod/keras_cnn_concise_hvd.py).
# - Austin et al. (2025), [How to Scale Your Model](https://jax-ml.github.io/scaling-book/training/).
# - Horovod: [benchmarks](https://horovod.readthedocs.io/en/stable/benchmarks_include.html),
#   [timeline](https://horovod.readthedocs.io/en/stable/timeline_include.html).
# - NVIDIA, [bus bandwidth](https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md). Order of search:
#   TensorFlow, [GPU performance](https://www.tensorflow.org/guide/gpu_performance_analysis), and NERSC,
#   [tutorial](https://github.com/NERSC/sc23-dl-tutorial).
