"""Record what the programs of the optional frameworks give, for those who do not have them.

    python record.py               all of RUNS, into recorded/NAME.json
    python record.py ddp fsdp      these

`make record-frameworks ONLY=ddp` does the same. Frameworks that are missing are named, and
their records stay.
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

    part: what must be installed beside the course's packages.  packages: those whose versions
    the record names.  starter: the function of `distlab.launch` that starts it; with "alone"
    it is one process, or starts others itself.
    """

    part: str | None
    program: str
    packages: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    starter: str = "torchrun"

    @property
    def framework(self) -> str:
        """Its name."""
        return frameworks.PARTS[self.part].title if self.part else "Horovod"


TORCH, JAX, MXNET = ((name, "numpy") for name in ("torch", "jax", "mxnet"))
HOROVOD, DEEPSPEED = ("horovod", "tensorflow", "tf-keras"), ("deepspeed", "torch")
RAY, RAY_HOROVOD = ("ray", "tensorflow"), ("ray", "tensorflow", "horovod")
STAGES, CLIPPED = ("--stages", "0", "1", "2", "3"), ("--stages", "1", "--default-clipping")
EXECUTOR, TRAINER = ("--way", "RayExecutor"), ("--way", "TensorflowTrainer")
ON_WORKER = ("--optimizer-on", "worker")
RUNS = {
    "horovod": Run(None, "train_horovod.py", HOROVOD, starter="horovodrun"),
    "ddp": Run("torch", "train_ddp.py", TORCH),
    "ddp_mixed": Run("torch", "train_ddp.py", TORCH, ("--mixed-precision",)),
    "fsdp": Run("torch", "train_fsdp.py", TORCH),
    "deepspeed": Run("deepspeed", "train_deepspeed.py", DEEPSPEED, STAGES),
    "deepspeed_clipped": Run("deepspeed", "train_deepspeed.py", DEEPSPEED, CLIPPED),
    "ray_horovod": Run("ray", "train_ray.py", RAY_HOROVOD, EXECUTOR, "alone"),
    "ray_tensorflow": Run("ray", "train_ray.py", RAY, TRAINER, "alone"),
    "jax": Run("jax", "train_jax.py", JAX, starter="alone"),
    "jax_sharded": Run("jax", "train_jax.py", JAX, ("--shard-weights",), "alone"),
    "mxnet": Run("mxnet", "train_mxnet.py", MXNET, starter="mxnet"),
    "mxnet_all_reduce": Run("mxnet", "train_mxnet.py", MXNET, ON_WORKER, "mxnet"),
}


def problem(name: str) -> str | None:
    """Why this run cannot be done here, and what fixes it; None when it can."""
    run = RUNS[name]
    missing = frameworks.problem(run.part) if run.part else None
    return missing or (launch.horovod_problem() if "horovod" in run.packages else None)


def measure(
    name: str, first: Path, serial: list, ranks: int = 2, arguments: Sequence[object] = ()
) -> dict[str, Any]:
    """Do a run from the file `first`.

    result: what the program wrote.  differences: by file of weights, how far they are from the
    serial run's.  printed: the program's last line about its loss.
    """
    run = RUNS[name]
    how: dict[str, Any] = {"result": True, "seconds": 1200, "start_seconds": 900}
    if run.part:
        how["python"] = frameworks.python(run.part)
    arguments = [first, *run.arguments, *arguments]
    if run.part == "ray":  # which starts its own processes
        arguments += ["--workers", ranks]
    elif run.part == "jax":  # which has its devices in one process
        flags = f"--xla_force_host_platform_device_count={ranks}"
        how["environment"] = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    else:
        how["workers" if run.part == "mxnet" else "ranks"] = ranks
    with tempfile.TemporaryDirectory(prefix="distlab-") as folder:
        arguments += ["--weights", Path(folder) / f"{name}.npz"]
        done = getattr(launch, run.starter)(FOLDER / run.program, *arguments, **how)
        files = sorted(Path(folder).glob("*.npz"))
        trained = {file.stem: layouts.read(file) for file in files}
    far = {stem: checks.largest_difference(serial, found) for stem, found in trained.items()}
    lines = "\n".join(done.output.values()).splitlines()
    printed = [line.strip() for line in lines if "last loss" in line]
    return {"result": done.result, "differences": far, "printed": printed[-1]}


def main() -> None:
    """Record what is asked for."""
    parser = argparse.ArgumentParser(description="Record what the frameworks give.")
    parser.add_argument("names", nargs="*", help=f"{', '.join(RUNS)}; all by default")
    names, missing = parser.parse_args().names or RUNS, []
    runtime.processes.end_on_signals()
    with tempfile.TemporaryDirectory(prefix="distlab-") as folder:
        first, serial = Path(folder) / "start.npz", Path(folder) / "serial.npz"
        start.write(first)
        launch.alone(FOLDER / "train_tensorflow.py", first, "--weights", serial, echo=False)
        for name in names:
            if reason := problem(name):
                missing.append(f"{name}: {reason}")
                continue
            result, run = measure(name, first, layouts.read(serial)), RUNS[name]
            versions = frameworks.versions(run.part, *run.packages)
            what = versions, f"make record-frameworks ONLY={name}", run.program
            recorded_results.write(name, run.framework, *what, list(run.arguments), result)
    if missing:
        sys.exit("\n".join(["Not recorded:", *missing]))


if __name__ == "__main__":
    main()
