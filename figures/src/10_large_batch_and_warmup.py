"""The picture of notebook 10: three ways to begin with a large learning rate, and a decay after the warm-up.

The schedules are those of `distlab.large_batch.schedules`, from Goyal et al., arXiv:1706.02677, section 2.2, and
Keras's `CosineDecay`.
Run it from anywhere: python figures/src/10_large_batch_and_warmup.py
"""

import math
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import distlab  # noqa: F401  (selects the course's Keras before anything can import TensorFlow)
from distlab import draw, large_batch

FOLDER = Path(__file__).parents[1]
RATE = 0.1  # for the reference batch of 256
TIMES = 32  # k: the batch is 32 · 256 = 8,192 images, and the linear scaling rule asks for 32 times the rate
WARM_UP = 5.0  # epochs
EPOCHS = 10.0


def warm_up_schedule(folder: Path) -> None:
    """The learning rate over the first ten epochs."""
    figure, axes = plt.subplots(figsize=(7.2, 3.2))
    # Two points at the jump, so that its line is vertical.
    epochs = np.sort(np.append(np.linspace(0, EPOCHS, 41), WARM_UP - 1e-6))
    scaled = large_batch.schedules.linear_rule(RATE, TIMES)

    def cosine_decay(epoch: float) -> float:
        share = (epoch - WARM_UP) / (EPOCHS - WARM_UP)
        return scaled * (1 + math.cos(math.pi * share)) / 2 if share >= 0 else math.nan

    for name, rate_at in {
        "gradual warm-up": large_batch.schedules.gradual_warm_up(RATE, scaled, WARM_UP),
        "constant warm-up": large_batch.schedules.constant_warm_up(RATE, scaled, WARM_UP),
        "no warm-up": large_batch.schedules.without_warm_up(scaled),
        "gradual, then cosine": cosine_decay,
    }.items():
        axes.plot(epochs, [rate_at(epoch) for epoch in epochs], label=name, markevery=4)
    axes.set_yticks([RATE, scaled / 4, scaled / 2, 3 * scaled / 4, scaled])
    axes.set_yticklabels([f"{RATE:g}", *(f"{share * scaled:.1f}" for share in (0.25, 0.5, 0.75, 1))])
    axes.set_ylim(-0.04 * scaled, 1.12 * scaled)
    axes.set_xlim(-0.1, EPOCHS + 0.1)
    axes.set_xticks(range(0, int(EPOCHS) + 1))
    axes.set_xlabel("epoch")
    axes.set_ylabel("learning rate")
    axes.grid(axis="y")
    figure.legend(loc="outside upper center", ncols=2)
    axes.annotate(f"{RATE:g} · $k$, $k$ = {TIMES}", (EPOCHS, scaled), (0, 5), textcoords="offset points", ha="right")
    draw.save(
        figure,
        folder / "10_warm_up_schedule.svg",
        f"Learning rate over the first {EPOCHS:g} epochs for a batch {TIMES} times the reference, four lines. "
        f"Without warm-up it is {scaled:g} from the start. With constant warm-up it is {RATE:g} for {WARM_UP:g} "
        f"epochs and then jumps to {scaled:g}. With gradual warm-up it rises in a straight line from {RATE:g} to "
        f"{scaled:g} at epoch {WARM_UP:g} and stays there, or falls along a cosine to 0.",
    )


def main(folder: Path = FOLDER) -> None:
    """Draw it into a folder."""
    draw.apply_style()
    warm_up_schedule(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
