"""The picture of notebook 11: one busy device and two busy devices, from runs on the virtual cluster.

Run it from anywhere: python figures/src/11_scaling_and_profiling.py
"""

import sys
from pathlib import Path

import numpy as np

import distlab  # noqa: F401  (selects the course's Keras before anything can import TensorFlow)
from distlab import collectives, draw
from distlab.simulate import Network, Rank, Run, World

FOLDER = Path(__file__).parents[1]
DEVICES = 2
BATCH, STEPS = 64, 3
SECONDS_PER_IMAGE = 0.5e-3
PARAMETERS = 1_000_000
NETWORK = Network(latency=1e-4, seconds_per_byte=1e-9)


def training(devices: int) -> Run:
    """Train on the first `devices` devices, which share each batch and add up their gradients."""

    async def program(rank: Rank) -> None:
        if rank.index < devices:
            for _ in range(STEPS):
                await rank.compute(BATCH / devices * SECONDS_PER_IMAGE)
                if devices > 1:
                    await collectives.ring_all_reduce(rank, np.zeros(PARAMETERS, np.float32))

    return World(DEVICES, NETWORK).run(program)


def intervals(run: Run) -> list[list[draw.Interval]]:
    """When each device computed, and when it took part in an all-reduce."""
    kinds = {"compute": "computing gradients", "receive": "all-reduce"}
    rows: list[list[draw.Interval]] = [[] for _ in range(DEVICES)]
    for event in run.events:
        if event.kind in kinds:
            rows[event.rank].append(draw.Interval(event.start, event.end, kinds[event.kind]))
    return [sorted(row) for row in rows]


def utilisation(run: Run) -> list[float]:
    """The share of the time in which each device computed."""
    computing = [0.0] * DEVICES
    for event in run.events:
        if event.kind == "compute":
            computing[event.rank] += event.end - event.start
    return [seconds / run.elapsed for seconds in computing]


def busy_devices(folder: Path) -> None:
    """The same batches on one device, and shared by two."""
    runs = {devices: training(devices) for devices in (1, 2)}
    titles, described = {}, []
    for devices, run in runs.items():
        shares = " and ".join(f"{100 * share:.0f} %" for share in utilisation(run))
        who = "one device" if devices == 1 else "two devices, half a batch each"
        titles[f"{who}: busy {shares} of the time, {1000 * run.elapsed:.0f} ms"] = intervals(run)
        described.append(
            f"With {who} they take {1000 * run.elapsed:.0f} ms, and the devices compute {shares} of the time"
        )
    figure = draw.busy(titles, [f"device {number}" for number in range(DEVICES)])
    for axes, rows in zip(figure.axes, titles.values(), strict=True):
        for device, row in enumerate(rows):
            if not row:
                axes.text(1, device, "idle", va="center", fontsize=9)
    draw.save(
        figure,
        folder / "11_busy_devices.svg",
        f"Utilisation of two devices in {STEPS} steps with batches of {BATCH} images, over time. "
        f"{'. '.join(described)}; in between both take part in an all-reduce.",
    )


def main(folder: Path = FOLDER) -> None:
    """Draw it into a folder."""
    draw.apply_style()
    busy_devices(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
