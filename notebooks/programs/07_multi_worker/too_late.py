"""Make the error "Collective ops must be configured at program startup" by computing first.

On a laptop; one process is enough, since it fails before it looks for others:

    distlab launch --workers 1 too_late.py
    C='{"worker": ["localhost:PORT"]}'
    TF_CONFIG='{"cluster": '$C', "task": {"type": "worker", "index": 0}}' python too_late.py

Under Slurm it is started like any program: `srun --ntasks=1 python too_late.py`.

Its status is 0 when the error came as expected. With `--in-time` the strategy comes first,
and there must be no error.
"""

import argparse
import sys

import distlab  # noqa: F401  selects tf-keras; it must come before TensorFlow

# isort: split
import tensorflow as tf


def main() -> int:
    """Compute and choose the strategy, in one order or the other; the exit status."""
    parser = argparse.ArgumentParser(description="Compute before the strategy is made.")
    parser.add_argument("--in-time", action="store_true", help="make the strategy first")
    options = parser.parse_args()
    if not options.in_time:
        tf.constant(1.0) + 1.0  # any operation: a data set, a model, a print of a tensor
    try:
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    except RuntimeError as error:
        print(f"{type(error).__name__}: {error}")
        return 1 if options.in_time else 0
    print(f"a strategy with {strategy.num_replicas_in_sync} replica")
    return 0 if options.in_time else 1


if __name__ == "__main__":
    sys.exit(main())
