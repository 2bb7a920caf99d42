"""Run the programs of the optional frameworks and record what they give, for those who do not have them.

    python record.py               all of RUNS, into recorded/NAME.json
    python record.py ddp fsdp      these

`make record-frameworks ONLY=ddp` does the same. Frameworks that are missing are named, and their records stay.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from distlab import checks, frameworks, launch, recorded_results, runtime

import layouts
import start

FOLDER = Path(__file__).parent


class Run(NamedTuple):
    """A run to record.

    part: what must be installed beside the course's packages.  packages: those whose versions the record names.
    starter: the function of `distlab.launch` that starts it; with "alone" it is one process, or starts others itself.
    """

    framework: str
    part: str | None
    program: str
    packages: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    starter: str = "torchrun"


STAGES = ("--stages", "0", "1", "2", "3")
RUNS = {
    "horovod": Run("Horovod", None, "train_horovod.py", ("horovod", "tensorflow", "tf-keras"), starter="horovodrun"),
    "ddp": Run("PyTorch", "torch", "train_ddp.py", ("torch", "numpy")),
    "ddp_mixed": Run("PyTorch", "torch", "train_ddp.py", ("torch", "numpy"), ("--mixed-precision",)),
    "fsdp": Run("PyTorch", "torch", "train_fsdp.py", ("torch", "numpy")),
    "deepspeed": Run("DeepSpeed", "deepspeed", "train_deepspeed.py", ("deepspeed", "torch"), STAGES),
    "deepspeed_clipped": Run(
        "DeepSpeed", "deepspeed", "train_deepspeed.py", ("deepspeed", "torch"), ("--stages", "1", "--default-clipping")
    ),
    "ray_horovod": Run(
        "Ray", "ray", "train_ray.py", ("ray", "tensorflow", "horovod"), ("--way", "RayExecutor"), "alone"
    ),
    "ray_tensorflow": Run("Ray", "ray", "train_ray.py", ("ray", "tensorflow"), ("--way", "TensorflowTrainer"), "alone"),
    "jax": Run("JAX", "jax", "train_jax.py", ("jax", "numpy"), starter="alone"),
    "jax_sharded": Run("JAX", "jax", "train_jax.py", ("jax", "numpy"), ("--shard-weights",), "alone"),
    "mxnet": Run("MXNet", "mxnet", "train_mxnet.py", ("mxnet", "numpy"), starter="mxnet"),
    "mxnet_all_reduce": Run(
        "MXNet", "mxnet", "train_mxnet.py", ("mxnet", "numpy"), ("--optimizer-on", "worker"), "mxnet"
    ),
}


def problem(name: str) -> str | None:
    """Why this run cannot be done here, and what fixes it, in one sentence; None when it can."""
    run = RUNS[name]
    missing = frameworks.problem(run.part) if run.part else None
    return missing or (launch.horovod_problem() if "horovod" in run.packages else None)


def measure(name: str, first: Path, serial: list, ranks: int = 2, arguments: Sequence[object] = ()) -> dict[str, Any]:
    """Do a run from the file `first`.

    result: what the program wrote.  differences: by file of weights, how far they are from the serial run's.
    printed: the program's last line about its loss.
    """
    run = RUNS[name]
    # Programs that start their own processes are told how many; JAX has its devices in one process.
    devices = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": f"--xla_force_host_platform_device_count={ranks}"}
    counts = {"Ray": {}, "JAX": {"environment": devices}, "MXNet": {"workers": ranks}}
    count = counts.get(run.framework, {"ranks": ranks})
    workers = ["--workers", ranks] if run.framework == "Ray" else []
    how = {"python": frameworks.python(run.part)} if run.part else {}
    with tempfile.TemporaryDirectory(prefix="distlab-") as folder:
        weights = Path(folder) / f"{name}.npz"
        every = [first, *run.arguments, *workers, *arguments, "--weights", weights]
        start_run = getattr(launch, run.starter)
        done = start_run(FOLDER / run.program, *every, **count, **how, result=True, seconds=1200, start_seconds=900)
        files = sorted(Path(folder).glob("*.npz"))
        differences = {file.stem: checks.largest_difference(serial, layouts.read(file)) for file in files}
    printed = [line for text in done.output.values() for line in text.splitlines() if "last loss" in line]
    return {"result": done.result, "differences": differences, "printed": printed[-1].strip()}


def serial_weights(first: Path) -> list:
    """What TensorFlow trains on one device."""
    weights = first.with_name("serial.npz")
    launch.alone(FOLDER / "train_tensorflow.py", first, "--weights", weights, echo=False)
    return layouts.read(weights)


def main() -> None:
    """Record what is asked for."""
    parser = argparse.ArgumentParser(description="Record the results of the optional frameworks.")
    parser.add_argument("names", nargs="*", help=f"runs to record: {', '.join(RUNS)}; all by default")
    options = parser.parse_args()
    runtime.processes.end_on_signals()
    missing = []
    with tempfile.TemporaryDirectory(prefix="distlab-") as folder:
        first = Path(folder) / "start.npz"
        start.write(first)
        serial = serial_weights(first)
        for name in options.names or RUNS:
            run = RUNS[name]
            if reason := problem(name):
                missing.append(f"{name}: {reason}")
                continue
            result = measure(name, first, serial)
            versions = frameworks.versions(run.part, *run.packages)
            command = f"make record-frameworks ONLY={name}"
            recorded_results.write(name, run.framework, versions, command, run.program, list(run.arguments), result)
    if missing:
        sys.exit("\n".join(["Not recorded:", *missing]))


if __name__ == "__main__":
    main()
