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
# **Time.** 50 minutes to read, two minutes to run.
#
# **Before this.** [02 single-device baseline](02_single_device_baseline.ipynb) for measuring, [06
# collectives](06_collectives_and_ring_all_reduce.ipynb) for $\alpha$ and $\beta$, [09 Horovod](09_horovod.ipynb) for
# ranks and launching.
#
# **Questions.**
# - How many images has a run truly processed?
# - Which published efficiencies survive a recount?
# - What is the difference between weak and strong scaling, and what does Amdahl's law say about each?
# - With 1, 2, 4 and 8 ranks on this machine: what does the model predict, and why does the measurement differ?
# - How well do the same formulas predict published clusters?
# - Which tensor waits for what, how many bytes does MPI move, which operations take the time?
#
# **Hardware.** Two processor cores; with fewer the scaling over cores cannot be seen. A C compiler for one section.

# %% tags=["parameters"]
dataset = "digits"  # digits, mnist or fashion_mnist; 5,000 images of it are trained on
epochs = 3  # of the profiled training; the first one is the warm-up
workers = 8  # the most ranks that are measured, 2 to 8

# %% jupyter={"source_hidden": true}
import distlab  # first, as in every chapter; TensorFlow itself runs in child processes here

import re
import tempfile
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import display

from distlab import costs, data, devices, draw, launch, metrics, profiling, programs, quizzes

launch.require_horovod()
draw.apply_style()
epochs = max(2, epochs)  # one to warm up, and one to look at
PROGRAMS = Path("programs/11_scaling_and_profiling")
scratch = tempfile.TemporaryDirectory()
folder = Path(scratch.name)
print(data.describe(dataset))

# %% [markdown] tags=["slide-picture"]
# ## 1. What was processed, in which time
#
# **Throughput** is images per second. **Speed-up** on $p$ ranks is $S = T_1 / T_p$, and **efficiency** $S / p$. Below
# the same three batches are worked on by one device and by two that share each batch. The speed-up is less than two,
# since both also take part in an all-reduce.
#
# ![Three batches on one of two devices take longer than on both, but not twice as
# long: between two batches there is an all-reduce](../figures/11_busy_devices.svg)

# %% [markdown]
# There are two ways to compare:
#
# - **Strong scaling:** the total work is fixed, so each of $p$ ranks gets $1/p$ of the batch. Ideal: $T_p = T_1 / p$.
# - **Weak scaling:** the work per rank is fixed, so the batch grows with $p$. Ideal: $T_p = T_1$. Then efficiency is
#   $T_1 / T_p$.
#
# What is a good efficiency? As a yardstick we take **90 %** in weak scaling. Horovod's benchmarks report that for
# Inception V3 and ResNet-101 on 512 GPUs, and 68 % for VGG-16, whose gradient is several times larger.
#
# Throughput needs a numerator: **how many images?** Batches may be smaller, a tail dropped. The only safe way is
# to count in the step. Below, `update_state` belongs to a Keras metric that counts
# the images of each batch; the other three methods belong to a callback that reads the metric and the clock.

# %%
programs.show(PROGRAMS / "throughput.py", "update_state", "on_epoch_begin", "on_train_batch_end", "on_epoch_end")

# %% [markdown] tags=["slide-predict"]
# `train.py` trains the course's CNN with Horovod's Keras interface, as in section 9 of [notebook 09](09_horovod.ipynb),
# and with this callback. It runs once, with every instrument of this chapter switched on; the sections below read one
# recording after the other.
#
# - `HOROVOD_TIMELINE` makes rank 0 write a timeline (section 6).
# - A library that counts MPI calls is compiled and loaded with `LD_PRELOAD` (section 7).
# - `--trace` runs one more epoch under TensorFlow's profiler (section 8).
#
# A data set with fewer than 5,000 training images, such as digits, is repeated up to that number.
#
# **Predict.** 5,000 images, 2 ranks, batches of 256. How many images does an epoch process?

# %%
ranks = 2
instruments = {"HOROVOD_TIMELINE": str(folder / "timeline.json"), "MPI_PROFILE": str(folder / "profile")}
# Without Horovod's memory of what the ranks agreed on in earlier steps the timeline shows who was ready when.
instruments["HOROVOD_CACHE_CAPACITY"] = "0"
try:
    library, problem = profiling.mpi_profile.build(PROGRAMS / "mpi_profile.c", folder), None
    instruments["LD_PRELOAD"] = str(library)
except profiling.mpi_profile.NoCompiler as error:
    problem = str(error)
print(problem or "The library that counts MPI calls is built.")

# %% tags=["varies"]
arguments = ["--dataset", dataset, "--epochs", epochs, "--images", 5000, "--trace", folder / "trace"]
limits = {"result": True, "start_seconds": 300, "echo": False}
print("$ HOROVOD_TIMELINE=timeline.json HOROVOD_CACHE_CAPACITY=0 MPI_PROFILE=profile LD_PRELOAD=libmpi_profile.so \\")
print(f"  mpirun -np {ranks} python train.py --dataset {dataset} --epochs {epochs} --images 5000 --trace trace")
trained = launch.mpirun(PROGRAMS / "train.py", *arguments, ranks=ranks, environment=instruments, **limits).result

# %% tags=["slide-output"]
size, steps = trained["batch"], trained["steps_per_epoch"]
print(f"{trained['images']} images: {steps} steps of {ranks} × {size} at most")
for epoch in range(epochs):
    counted = sum(trained["epochs"][rank][epoch][0] for rank in range(ranks))
    print(
        f"epoch {epoch}: {counted} images; {trained['images']} would be {trained['images'] / counted - 1:.1%} too many"
    )

# %% [markdown] tags=["slide-takeaway"]
# Two effects. Each rank has 2,500 images, so 9 full batches and one of 196. The program makes 9 steps an epoch
# (`images // ranks // batch`) and drops the rest. But the data set repeats: the batch of 196 is the first of the second
# epoch. Neither "images in the data set" nor "steps × batch" is right.
#
# Divide the wrong number by the epoch's time, and more ranks look better, since they drop more.

# %% [markdown]
# ## 2. A published table, audited
#
# A lab of NVIDIA and OpenHackathons trains on 60,000 images with 1, 2, 4 and 8 GPUs. Its callback divides 60,000 by the
# epoch's time, while its scripts make `60000 // (batch * size)` steps. Its own output shows the mistake: for 8 GPUs it
# shows `3/3` steps and, for the last epoch, `Epoch time : 0.1232…`.

# %%
epoch_seconds, printed = 0.12322497367858887, 486914.29
print(f"60,000 / {epoch_seconds:.4f} s = {60_000 / epoch_seconds:,.0f} images/s, as printed: {printed:,.0f}")
print(f"truly: 3 × 8 × 2048 = {3 * 8 * 2048:,} images, {3 * 8 * 2048 / epoch_seconds:,.0f} images/s")

# %% [markdown] tags=["slide-text", "slide-predict"]
# The efficiency that it claims is (60,000 / $T_p$) / ($p$ · 60,000 / $T_1$). The true one follows without its times:
# multiply by the share of the images that $p$ GPUs processed, and divide by the share that one GPU processed.
#
# **Predict.** Batch 8192 on an A100. Which efficiency is left with 8 GPUs?

# %% tags=["slide-output"]
claims = {("V100", 2048): {2: 0.88, 4: 0.88, 8: 0.86}, ("A100", 8192): {2: 0.77, 4: 0.60, 8: 0.86}}


def images_in(batch, gpus):
    """Images that an epoch of that lab's scripts processes."""
    return 60_000 // (batch * gpus) * batch * gpus


print("GPUs            steps    images   claimed      true")
for (gpu, batch), claimed in claims.items():
    for gpus, efficiency in claimed.items():
        true = efficiency * images_in(batch, gpus) / images_in(batch, 1)
        steps_made, corrected = 60_000 // (batch * gpus), f"{true:.0%}" if true else "undefined"
        row = f"{gpus} {gpu}, {batch}  {steps_made:6}    {images_in(batch, gpus):6,}"
        print(f"{row}      {efficiency:.0%} {corrected:>9}")
slower = 43_244 / 65_063
print(f"its CIFAR-10 run: 8 A100 reach {slower:.2f} times the images/s of one, so {slower / 8:.0%} efficiency")
print(f"a lecture: 213,891 images/s on 8 V100, 67,000 on one, so {213_891 / (8 * 67_000):.0%} efficiency")

# %% [markdown] tags=["slide-takeaway"]
# With 8 A100 an epoch has **no step at all**. The measured time is that of an empty loop; "about 86 %" means
# nothing. The claims are rounded, so each result is good to about one percentage point.
#
# The last line compares *different programs*: `MirroredStrategy` on 8 GPUs, Horovod on one. No count makes that an
# efficiency.
#
# **Question.** A run makes `steps_per_epoch = images // (batch * size)` steps. When is dividing the data set's size by
# the epoch time harmless?
#
# 1. Always, the tail is only a few images.
# 2. If the tail is put back by padding.
# 3. If the global batch divides the data set, for every number of ranks that is compared
#
# <details>
# <summary>Answer</summary>
#
# 1. The tail is up to a global batch less one, and that grows with the ranks.
# 2. Then the epoch works on more images than the set has: wrong the other way.
# 3. **Right.** Counting is easier.
# </details>

# %% [markdown] tags=["slide-text", "slide-predict"]
# ## 3. Amdahl's law, applied to four published times
#
# Let a part of the work take $s$ seconds whatever the number of ranks, and the rest $w$ seconds divided by it. Amdahl
# (1967):
#
# $$T_p = s + \frac{w}{p}, \qquad S_p = \frac{s + w}{s + w/p} < \frac{s + w}{s}$$
#
# Argonne's Horovod tutorial trains a CNN with the same total work on 1, 2, 4 and 8 processes in 30.43, 24.19, 19.81 and
# 17.90 s. The **serial share** $s / (s + w)$ comes from a fit, or from each time alone. Karp and Flatt (1990) check
# whether it grows with $p$: a fixed part does not grow, but the cost of communication does.
#
# **Predict.** Two processes are far from halving the time. What is the serial share, and what could it be made of?

# %% tags=["slide-output"]
processes, tutorial = np.array([1, 2, 4, 8]), np.array([30.43, 24.19, 19.81, 17.90])
fitted = costs.fit_amdahl(processes, tutorial)
print(f"s = {fitted.serial_seconds:.1f} s, w = {fitted.parallel_seconds:.1f} s, serial share {fitted.serial_share:.0%}")
for p, seconds in zip(processes, tutorial, strict=True):
    speedup = metrics.speedup(tutorial[0], seconds)
    alone = f", serial share by this one {costs.serial_share(speedup, p):.0%}" if p > 1 else ""
    print(f"p = {p}: {seconds:.2f} s, fit {fitted.seconds(p):.2f} s, speed-up {speedup:.2f}", end=", ")
    print(f"efficiency {speedup / p:.0%}{alone}")
print(f"the fit misses a time by at most {np.max(np.abs(fitted.seconds(processes) / tutorial - 1)):.1%}")
print(f"largest speed-up with any number of processes: {fitted.largest_speedup:.2f}")

# %% [markdown] tags=["slide-takeaway"]
# Two numbers describe four times well. The share does not grow, so communication is not the problem. Half of
# the time of one process is *fixed*: work that every process does in full. Candidates are the start of Python and
# TensorFlow, loading the data, building and tracing the model, the first step. They are serial in Amdahl's sense, but
# not a part of the training: in an hour's run nobody would notice them. In our own run the first epoch includes the
# tracing, which usually takes longer than all the steps of such a short epoch:

# %% tags=["varies"]
first, *others = (max(trained["epochs"][rank][epoch][1] for rank in range(ranks)) for epoch in range(epochs))
print(f"first epoch, with tracing: {first:.1f} s, {first / np.mean(others):.1f} times as long as each of the others")

# %% [markdown]
# Hence three rules. Measure steps, not programs; leave a **warm-up** out; give the **median** of several blocks, since
# one disturbance moves a mean.
#
# **Question.** A job with a serial share of 10 % of one rank's time runs on 64 ranks. Speed-up?
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
# ## 4. Scaling on this machine
#
# `scaling.py` measures a training step with 64 images per rank (weak) and with 64 images in all (strong). The
# network has two dense layers of 1,024 units: many weights, and little work for each, so the all-reduce cannot hide.
# Each rank runs on one core, bound by `sched_setaffinity`, and TensorFlow in it has one thread. Otherwise one rank
# would use all cores, and nothing would be left to scale to. When ranks outnumber cores they share them: the machine is
# **oversubscribed**. The step and its stopwatch:

# %%
programs.show(PROGRAMS / "scaling.py", "step", "block")

# %% [markdown] tags=["slide-predict"]
# Starting TensorFlow takes longer than measuring, so one launch measures all world sizes: Horovod is initialised again
# for the first $p$ processes, while the others sleep. Weak and strong steps take turns, and each number is the median
# of several blocks.
#
# **Predict.** This machine has two cores or a few more. What are the efficiencies of weak scaling with 2, 4 and 8
# ranks? And the times of strong scaling?

# %% tags=["varies"]
largest = 2 ** int(np.log2(max(2, workers)))
counting = {} if problem else {"LD_PRELOAD": str(library), "MPI_PROFILE": str(folder / "scaling")}
arguments = ["--blocks", 6, "--steps", 3]
print(f"$ mpirun -np {largest} --oversubscribe --bind-to none python scaling.py --blocks 6 --steps 3")
several = launch.mpirun(PROGRAMS / "scaling.py", *arguments, ranks=largest, environment=counting, **limits).result

# %%
measured = {int(ranks): of_size for ranks, of_size in several["sizes"].items()}
cores, batch = several["cores"], several["batch"]
gradient_bytes = {network: 4 * parameters for network, parameters in several["parameters"].items()}
sizes = np.array(sorted(measured))
medians = {kind: np.array([np.median(measured[p][kind]) for p in sizes]) for kind in ("weak", "strong")}
serial = medians["weak"][0]
print(f"bytes of gradient: {gradient_bytes['dense']:,} (dense), {gradient_bytes['cnn']:,} (CNN)")

# %% [markdown]
# The prediction has three parts, all known before anything was trained on two ranks:
#
# - **Computing.** One rank takes $T_1$ for 64 images. With $p$ ranks on $c$ cores, each core has the work of
#   $\max(1, p/c)$ ranks.
# - **All-reduce.** Horovod was timed on arrays from 1 KiB to 16 MiB with two ranks. `costs.fit` gives $\alpha$ and
#   $\beta$ for the ring formula $2(p-1)\alpha + 2\frac{p-1}{p}n\beta$.
# - Nothing overlaps, and nothing else costs.

# %%
array_bytes = np.array(several["all_reduce_bytes"])
fit = costs.fit(array_bytes, measured[2]["all_reduce"], partial(costs.all_reduce, "ring", 2))
sharing = np.maximum(1, sizes / cores)
exchange = np.where(sizes > 1, fit.seconds(costs.all_reduce("ring", sizes, gradient_bytes["dense"])), 0)
predicted = {"weak": serial * sharing + exchange, "strong": serial * sharing / sizes + exchange}

# %% tags=["varies"]
print(f"Horovod on two ranks: α = {1e6 * fit.latency:.0f} µs, 1/β = {fit.bandwidth / 1e9:.2f} GB/s; {cores} cores")
for kind in ("weak", "strong"):
    print(f"\n{kind:6} ranks  ms a step  (least – most)   predicted  images/s  speed-up  efficiency")
    for p, seconds, expected in zip(sizes, medians[kind], predicted[kind], strict=True):
        blocks, images = 1e3 * np.array(measured[p][kind]), batch * (p if kind == "weak" else 1)
        speedup = images / batch * serial / seconds
        print(f"{p:12} {1e3 * seconds:10.1f} {blocks.min():7.1f} –{blocks.max():6.1f} {1e3 * expected:11.1f}", end="")
        print(f"{metrics.throughput(images, seconds):10,.0f} {speedup:9.2f} {speedup / p:11.0%}")

# %% tags=["varies", "slide-output"]
figure, panels = plt.subplots(1, 2, figsize=(7.2, 3.2))
for axes, kind in zip(panels, ("weak", "strong"), strict=True):
    for number, (name, values) in enumerate({"measured": medians[kind], "predicted": predicted[kind]}.items()):
        look = {"color": draw.RANK_COLOURS[number], "marker": draw.MARKERS[number], "linestyle": draw.DASHES[number]}
        axes.plot(np.log2(sizes), 1e3 * values, label=name, **look)
    axes.axvline(np.log2(cores), color="grey", linewidth=0.8, linestyle=":", marker="")
    axes.set_xticks(np.log2(sizes), sizes)
    axes.set(title=f"{kind} scaling", xlabel="ranks (dotted: cores)", ylabel="ms a step", ylim=(0, None))
figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
draw.show(figure, "Time of a step by ranks, measured and predicted, for weak and for strong scaling.")

# %% [markdown]
# What follows from the table depends on the machine, so the code prints it. A serial share above 100 % means that the
# ranks together are slower than one rank alone; the fit stops at 100 %. With one rank weak and strong are the same
# step, measured twice: their difference is the noise of the rest. If a rank had much less than its whole core, other
# programs used it too, or there is only one core: measure again before you draw conclusions.

# %% tags=["varies"]
noise = abs(medians["strong"][0] / serial - 1)
weak, strong = serial / medians["weak"], serial / (sizes * medians["strong"])
print(f"noise: one rank measured twice differs by {noise:.0%}")
print("a rank's smallest share of its core:", ", ".join(f"{measured[p]['core_share']:.0%} (p = {p})" for p in (1, 2)))
print(f"2 ranks: efficiency {weak[1]:.0%} in weak scaling, {strong[1]:.0%} in strong scaling")
for size, efficiency in zip(sizes[2:], weak[2:], strict=True):
    allowed = min(1, cores / size)
    print(f"{size} ranks on {cores} cores: efficiency {efficiency:.0%} in weak scaling; sharing allows {allowed:.0%}")
law = costs.fit_amdahl(sizes, medians["strong"])
by_size = [costs.serial_share(serial / medians["strong"][i], sizes[i]) for i in range(1, len(sizes))]
print(f"serial share by Amdahl's law: fit {law.serial_share:.0%}; by each size", ", ".join(f"{s:.0%}" for s in by_size))

# %% [markdown]
# The reasons:
#
# - **Weak** scaling pays one all-reduce per step, however large the batch. **Strong** scaling pays the same, but has
#   only $1/p$ of the computing to set against it.
# - **Beyond the cores** there is nothing more to share: on a quiet machine efficiency is at most cores / ranks.
# - **Amdahl's law** assumes a fixed serial part. If the shares by each size grow, it is the wrong model: the cores end,
# the all-reduce grows.
#
# Where many ranks take longer than predicted, there are usually two causes. An all-reduce needs *all* ranks, and each
# must first get its turn on a core, whereas $\alpha$ was fitted with a core for each rank. And MPI polls (it
# busy-waits). With `mpi_yield_when_idle` a waiting rank offers its core to others, but it still gets turns in which it
# only polls.

# %% [markdown] tags=["slide-text", "slide-predict"]
# ### Why not 100 %?
#
# On two ranks there are two suspects, and one measurement separates them: both ranks do the same step **without** the
# all-reduce. If they are slower than one rank alone, they compete for something that they share (memory, cache, the
# processor's clock rate). The rest is the all-reduce. All three take turns, block by block, and each difference is the
# median of those between neighbours. We do it for two networks that were chosen for similar computing times and very
# different gradients.
#
# **Predict.** For which network is the all-reduce the larger part of what is lost?

# %% tags=["varies", "slide-output"]
for network, blocks in measured[2]["turns"].items():
    single, apart, together = 1e3 * np.array(blocks)  # ms: one rank, two without all-reduce, two with it
    sharing_costs, all_reduce_costs = np.median(apart - single), np.median(together - apart)
    alone_in_theory = 1e3 * fit.seconds(costs.all_reduce("ring", 2, gradient_bytes[network]))
    efficiency = np.median(single / together)
    verdict = "reaches" if efficiency >= 0.9 else "misses"
    print(
        f"{network}: one rank {np.median(single):.1f} ms, two {np.median(together):.1f} ms, efficiency {efficiency:.0%}"
    )
    print(f"    {verdict} the yardstick of 90 %")
    print(f"    lost by what they share {sharing_costs:+.1f} ms, by the all-reduce {all_reduce_costs:+.1f} ms")
    print(f"    an all-reduce of {gradient_bytes[network]:,} bytes in one piece, by the fit: {alone_in_theory:.1f} ms")

# %% [markdown] tags=["slide-takeaway", "slide-text", "slide-predict"]
# The dense network has the larger gradient, so the all-reduce usually costs it more. What counts is computing time per
# byte of gradient. The loss by the all-reduce may be smaller than an all-reduce alone, because gradients that are ready
# early travel while others are computed. It may be larger: the gradient comes in several pieces, and each waits for its
# turn (section 6). It may come out below zero, when the blocks differ by more than the all-reduce takes. Larger batches
# dilute the cost: computing grows with them, and the gradient does not.
#
# ### Which cores
#
# The same step of two ranks with other rights to cores. A cluster's launcher binds processes (`mpirun --bind-to core`,
# `srun --cpu-bind=cores`); here the program does it, with `distlab.devices.hold_cores`.
#
# **Predict.** Both ranks on one core: what happens to the time of a step?

# %%
programs.show(devices.__file__, "core_of", "hold_cores")

# %% tags=["varies", "slide-output"]
placements = {name: 1e3 * np.median(blocks) for name, blocks in measured[2].get("placements", {}).items()}
if placements:
    draw.show(
        draw.bars(placements, "ms a step, two ranks", "{:.1f}"),
        "Milliseconds a step by placement: " + ", ".join(f"{name} {ms:.1f}" for name, ms in placements.items()),
    )
else:
    print("This machine has one core, so there is nothing to choose.")

# %% [markdown] tags=["slide-takeaway"]
# On one core two ranks share its speed: that is what every oversubscribed run above pays. "Any
# core" can cost little, because the system spreads two busy processes by itself. It costs more when they are moved
# while they run, above all on machines with several sockets, where a process leaves its memory behind. Compare its bar
# with the two bars of "a core each". The last bar repeats the first: their difference is the noise.
#
# **Question.** 4 ranks on 4 cores, TensorFlow with its default of one thread per core in each rank. What happens?
#
# 1. 16 threads do four times the work.
# 2. 16 threads take turns on 4 cores; caches are refilled, ranks wait for late ones
# 3. Nothing, TensorFlow sees the other ranks.
#
# <details>
# <summary>Answer</summary>
#
# 1. There are still 4 cores.
# 2. **Right.** Oversubscription by threads. One thread per rank, or cores / ranks.
# 3. It does not know of them.
# </details>

# %% [markdown]
# ## 5. Bus bandwidth, and published clusters
#
# **Algorithm bandwidth** is $n/t$: what a user sees. It falls with more ranks although no link is slower. NCCL's tests
# therefore report the **bus bandwidth**, for an all-reduce
#
# $$\frac{n}{t} \cdot \frac{2(p-1)}{p}$$
#
# which for a perfect ring and a large array is the speed of a link, whatever $p$. With a small array, it shows the
# latency instead. The factor is 1 for 2 ranks, 1.5 for 4 and 1.75 for 8.

# %% tags=["varies"]
bus = costs.bus_bandwidth("all_reduce", 2, array_bytes, measured[2]["all_reduce"])
for size, bandwidth in zip(array_bytes[::2], bus[::2], strict=True):
    print(f"{size:>10,} bytes: {bandwidth / 1e9:6.3f} GB/s")
print(f"The highest bus bandwidth is {bus.max() / 1e9:.2f} GB/s, at {array_bytes[np.argmax(bus)]:,} bytes.")

# %% [markdown]
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
# With published $\alpha$, $\beta$ and computing times the same formulas predict other people's clusters, with one set
# of assumptions. (Efficiency is relative to one GPU or, where the table says 4→ or 8→, to one host.) Rows marked
# **blind** were computed after every assumption had been fixed.
#
# **Predict.** VGG-16 has 138 million parameters, Inception V3 24 million. Which scales worse on 25 Gbit/s?

# %%
comparisons = costs.efficiencies.compare()
listed = [comparison for comparison in comparisons if comparison.published.blind_test < 2]
print(costs.efficiencies.table(listed) + "\n\n" + costs.efficiencies.summary(comparisons))
print("\nassumptions\n" + costs.efficiencies.describe_assumptions())

# %% [markdown]
# The first four rows, those most often quoted, come within 5 points. That is no proof: some assumptions were chosen
# with them in view. The first blind test is further off; the second, of whole tables, is closer but easier: most rows
# are of one host. The model knows no slow framework, no reading of images and no shared network; `distlab predict
# --published` lists all rows and reasons. Horovod's 68 % for VGG-16 is for 512 GPUs.
#
# ## 6. The timeline of Horovod
#
# The recording of section 1 is a stream of trace events, with one row per tensor. Each tensor of each step is
#
# 1. **negotiated**: rank 0 waits until all ranks have it (`NEGOTIATE_ALLREDUCE`);
# 2. **queued**, until its turn comes;
# 3. **copied** with others into a buffer (tensor fusion), and **communicated** (`MPI_ALLREDUCE`).

# %%
timeline = profiling.horovod_timeline.read(folder / "timeline.json")
reduced = {}
for operation in timeline.operations:
    if match := re.search(r"HorovodAllreduce_grads_(\d+)", operation.tensor):
        reduced.setdefault(trained["variables"][int(match[1])], []).append(operation)
reduced = dict(sorted(reduced.items(), key=lambda pair: -trained["variables"].index(pair[0])))
for name, operations in reduced.items():
    print(f"{name:15} {operations[0].nbytes:>9,} bytes, all-reduced {len(operations)} times")
together = sum(operations[0].nbytes for operations in reduced.values())
# TensorFlow's profiler recorded one more epoch.
print(f"{together:,} bytes together in each of {steps * (epochs + 1)} steps; gradient: {gradient_bytes['cnn']:,} bytes")

# %% tags=["varies", "slide-output"]
# The first epoch has the tracing in it; after the last one comes the epoch with TensorFlow's profiler.
usual = {name: operations[steps : steps * epochs] for name, operations in reduced.items()}
rows = {}
for name, operations in usual.items():
    waits = [draw.Interval(operation.start, operation.negotiated, "negotiating") for operation in operations[:3]]
    spans = [operation.communication for operation in operations[:3] if operation.communication]
    rows[name] = waits + [draw.Interval(span.start, span.end, "communicating") for span in spans]
figure = draw.busy({"three steps, as rank 0 saw them": list(rows.values())}, list(rows))
figure.axes[-1].set_xlabel("milliseconds since the first gradient was announced")
draw.show(figure, "Timeline with a row for each tensor: when it was negotiated and when its bytes travelled.")

# %% [markdown] tags=["slide-takeaway"]
# The backward pass computes gradients from the last layer to the first. TensorFlow may hand them over in another order,
# for its scheduler starts whatever is ready: the cell below prints the order in which they came. A gradient that is
# ready early waits, or travels, while the backward pass goes on; that is *overlap* and no loss. What counts is the end:
# nothing hides the exchange of the last gradients. Horovod sends in one call what is ready in the same cycle.
#
# Where does the time go? We add up the times of all tensors; time in which several tensors wait counts once for each.
# *Finishing* is the rest, until the operation has returned its result.

# %% tags=["varies"]
every = [operation for operations in usual.values() for operation in operations]
parts = [operation.parts() for operation in every]
totals = {part: sum(of_one[part] for of_one in parts) for part in profiling.horovod_timeline.PARTS}
for part, seconds in totals.items():
    if seconds:
        print(f"{part:14} {1e3 * seconds:9.1f} ms, {seconds / sum(totals.values()):6.1%}")
late = [operation.last_rank for operation in every]
print("how often each rank was the last to be ready:", {rank: late.count(rank) for rank in range(ranks)})
starts = np.array([[operation.start for operation in operations] for operations in usual.values()])
place = dict(zip(usual, starts.argsort(axis=0).argsort(axis=0).mean(axis=1), strict=True))  # in a step, on average
print("the order in which rank 0 first heard of them:", ", ".join(sorted(place, key=place.get)))
begin, end = min(operation.start for operation in every), max(operation.end for operation in every)
calls = sum(begin <= call.start <= end for call in timeline.collectives())
print(f"calls of MPI_Allreduce: {calls} for {len(every)} tensors, {calls / (steps * (epochs - 1)):.1f} in a step")

# %% [markdown]
# Long negotiating is waiting: for the backward pass of this rank, or for a slower one. So it says *who* is late, not
# that the negotiation is expensive. A rank that is the last in nearly all cases is a straggler (notebook 13).
#
# **In Perfetto.** Copy `timeline.json` to your machine, open `ui.perfetto.dev` in a browser and drop the file there
# (nothing is uploaded), or use `chrome://tracing`. The timeline of a killed job ends in the middle; both viewers and
# `horovod_timeline.read` can still read it.

# %% [markdown]
# ## 7. What MPI was asked to do
#
# Each MPI function has a second name, `PMPI_…`. A library that defines `MPI_Allreduce`, counts, and calls
# `PMPI_Allreduce` sees every call, without a change to Horovod. `mpi_profile.c` does that for ten routines. With
# `MPI_Pcontrol` a program controls what is counted: `train.py` counts the broadcast and `fit`.
#
# **Predict.** With the defaults `fit` made 27 steps. How many bytes of gradient does a rank pass to `MPI_Allreduce`?

# %% tags=["varies"]
display(programs.show(PROGRAMS / "train.py", "counted_by_mpi_profile"))
profile = {} if problem else profiling.mpi_profile.read(folder / "profile")
print("routine          type              calls       bytes  µs a call" if profile else problem)
for row in profile.get(0, []):
    print(f"{row.routine:16} {row.type:14} {row.calls:8,} {row.bytes:>11,} {1e6 * row.seconds / row.calls:10.1f}")

# %%
nbytes = gradient_bytes["cnn"]
gradients = steps * epochs * nbytes
for rank, rows in profile.items():
    floats = profiling.mpi_profile.total(rows, lambda row: row.routine == "MPI_Allreduce" and row.type == "MPI_FLOAT")
    print(f"rank {rank}: {floats.bytes:,} bytes all-reduced, {steps * epochs} steps × {nbytes:,} = {gradients:,}")
    broadcast = profiling.mpi_profile.total(rows, lambda row: row.routine == "MPI_Bcast" and row.type == "MPI_FLOAT")
    print(f"    and {broadcast.bytes / nbytes:.1f} times the gradient's size broadcast in {broadcast.calls} calls")
if problem:
    print(problem)

# %% [markdown]
# To the byte. The other rows:
#
# - `MPI_Bcast` of floats hands out rank 0's weights once, and the optimizer's momentum variables, which have the same
#   size. Keras creates them even when the momentum is 0, as here.
# - `MPI_Gather` and `MPI_Bcast` of a few bytes are the negotiation, once per cycle, whether there is something to do or
#   not. A cycle takes at least a millisecond (5 ms before Horovod 0.21, as assumed in section 5), and longer when one
#   rank lets the other wait.
# - Their seconds are mostly waiting for the other rank: **time in MPI is not time on the network**.
#
# Usually Horovod remembers what was agreed on, and one `MPI_Allreduce` of a few bytes per cycle replaces the
# negotiation. (Section 1 switched that off for the timeline.) Section 4 ran with it, and counted a stretch of steps:

# %% tags=["varies"]
if not problem:
    rows = profiling.mpi_profile.read(folder / "scaling")[0]
    steps_counted = several["steps"] * (1 + len(measured[2]["counted"]))
    for row in (row for row in rows if row.routine == "MPI_Allreduce"):
        size, milliseconds = row.bytes / row.calls, 1e3 * row.seconds / steps_counted
        print(f"{row.type:18} {row.calls:6,} calls of {size:12,.0f} bytes on average, {milliseconds:6.2f} ms in a step")
    step_seconds = 1e3 * np.median(measured[2]["counted"])
    print(f"{steps_counted} steps of {step_seconds:.1f} ms each")

# %% [markdown]
# This explains a table in Argonne's Horovod tutorial. There a rank spent 12.8 of 13.9 seconds in `MPI_Allreduce`, in
# 12,150 calls of **8 bytes**, as if it did nothing but communicate. But that is one call per 1.1 ms: Horovod's cycle.
# Its background thread asks what is ready everywhere and waits for the other ranks while the GPU computes. The
# gradients are not in the table at all.
#
# They went through NCCL, and **an MPI profile does not show NCCL calls**. The tools that do:
#
# - `NCCL_DEBUG=INFO` prints which rings, trees and network NCCL chose;
# - nccl-tests (`all_reduce_perf -b 8 -e 128M -f 2 -g 8`) measures the bus bandwidth;
# - Nsight Systems (`nsys profile --trace=cuda,nvtx,mpi python train.py`) shows the NCCL kernels on the GPU's timeline,
#   next to those that compute.

# %% [markdown]
# This profile does not show what travels inside `MPI_Allreduce`. It does when the algorithm is our own: the course's
# ring over MPI ([06](06_collectives_and_ring_all_reduce.ipynb)) on 4 ranks, ten times, with an array of the gradient's
# size.

# %% tags=["varies"]
ring_ranks, repeats = 4, 10
if not problem:
    measure = PROGRAMS.parent / "06_collectives_and_ring_all_reduce" / "measure_all_reduce.py"
    arguments = ["--modes", "mpi", "ring", "--sizes", nbytes, "--repeats", repeats, "--warm-up", 0]
    counting = {"LD_PRELOAD": str(library), "MPI_PROFILE": str(folder / "ring")}
    launch.mpirun(measure, *arguments, ranks=ring_ranks, environment=counting, prepared=False, **limits)
    print(
        f"$ LD_PRELOAD=libmpi_profile.so MPI_PROFILE=ring mpirun -np {ring_ranks} python measure_all_reduce.py \\\n"
        f"    --modes mpi ring --sizes {nbytes} --repeats {repeats} --warm-up 0"
    )

# %%
for algorithm in costs.ALL_REDUCE:
    sent = repeats * costs.all_reduce(algorithm, ring_ranks, nbytes).largest_bytes_sent
    print(f"{algorithm:18} a rank sends at most {sent:12,.0f} bytes in {repeats} all-reduces")
if not problem:
    rows = profiling.mpi_profile.read(folder / "ring")[0]
    whole = profiling.mpi_profile.total(rows, lambda row: row.routine == "MPI_Allreduce")
    sent = profiling.mpi_profile.total(rows, lambda row: row.routine == "MPI_Isend")
    more = sent.bytes - repeats * costs.all_reduce("ring", ring_ranks, nbytes).largest_bytes_sent
    print(f"\ncounted: {whole.bytes:,} bytes passed to MPI_Allreduce; the ring sent {sent.bytes:,}")
    print(f"in {sent.calls} messages, each with {more / sent.calls:.0f} bytes more than the formula: shape and type")

# %% [markdown] tags=["slide-predict"]
# ## 8. What TensorFlow computed
#
# TensorFlow's own profiler, `tf.profiler`, records each operation with its start and end. `train.py` used it for one
# epoch on rank 0, as `trace_epoch` below shows. With Keras alone, `tf.keras.callbacks.TensorBoard(folder,
# profile_batch=(10, 20))` does the same for steps 10 to 20. TensorBoard with the package `tensorboard-plugin-profile`
# shows the recording; `distlab.profiling.tensorflow_trace` adds it up by kind. Names with `_Mkl` are operations that
# the library oneDNN runs on processors.
#
# **Predict.** The dense layer has most of the weights, the convolution few. Which takes longer?

# %% tags=["varies", "slide-output"]
display(programs.show(PROGRAMS / "train.py", "trace_epoch"))
busiest = {}
for operation in trained["operations"]:
    busiest[operation["kind"]] = busiest.get(operation["kind"], 0) + 1e3 * operation["seconds"] / steps
top = dict(sorted(busiest.items(), key=lambda pair: -pair[1])[:8])
described = ", ".join(f"{kind} {ms:.1f}" for kind, ms in top.items())
draw.show(draw.bars(top, "ms a step, on rank 0", "{:.2f}"), f"The operations that take most time: {described}")

# %% tags=["varies"]
convolution = sum(ms for kind, ms in busiest.items() if "Conv2D" in kind)
dense = sum(ms for kind, ms in busiest.items() if "MatMul" in kind)
parameters = {layer.name: layer.parameters for layer in costs.MODELS["cnn"].layers}
share = parameters["convolution"] / sum(parameters.values())
print(f"convolution: {convolution:.1f} ms a step, {share:.1%} of the parameters")
print(f"dense layers: {dense:.1f} ms a step, {1 - share:.1%} of the parameters")

# %% [markdown] tags=["slide-takeaway"]
# The convolution computes much with few weights, so it usually takes longer than the dense layers, whose weights are
# nearly all of the gradient. **What takes long to compute is not what takes long to send.** That is why VGG-16, with
# its large dense layers, scaled worst in Horovod's own benchmark.
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
# 2. **Right.** Waiting needs other fixes (load balance, pinning to cores) than sending (larger batches, fp16, a better
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
# - Count the images inside the step; the data set's size divided by the epoch's time flatters large jobs.
# - Strong scaling divides the work, weak scaling multiplies it; a fixed part limits the speed-up.
# - A rank needs a core.
# - A step without the all-reduce separates contention from communication. What is lost depends on the computing time
#   per byte of gradient.
# - Bus bandwidths of different numbers of ranks can be compared.
# - Negotiating is waiting; the timeline names who is late.
# - Time in MPI is not time on the network, and an MPI profile does not show NCCL.
# - The layer that computes most need not send most.
#
# **Next.** [Lab 11](../labs/11_scaling_and_profiling/lab.ipynb), [12 model parallelism](12_model_parallelism.ipynb).
#
# **Sources.**
# - Amdahl (1967), [Validity of the single processor approach](https://doi.org/10.1145/1465482.1465560).
# - Karp and Flatt (1990), [Measuring parallel processor performance](https://doi.org/10.1145/78607.78614).
# - OpenHackathons, [Distributed deep learning](https://github.com/openhackathons-org/gpubootcamp), notebook 3.
# - Argonne, [Distributed training with
#   Horovod](https://github.com/argonne-lcf/ai-science-training-series/tree/main/06_distributedTraining).
# - Horovod: [benchmarks](https://horovod.readthedocs.io/en/stable/benchmarks_include.html),
#   [timeline](https://horovod.readthedocs.io/en/stable/timeline_include.html).
# - NVIDIA, [nccl-tests, performance](https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md).
