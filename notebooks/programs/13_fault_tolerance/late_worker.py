"""A job one of whose workers comes late or never, to see what the others do.

On a laptop, with the course's launcher, which ends the job after 20 s of waiting and says who is missing:

    distlab launch --workers 2 --start-seconds 20 late_worker.py -- --late-worker 1

By hand, in one terminal (each address is a free port of this machine), and the same with `"index": 1` in another one,
or not at all:

    export TF_CONFIG='{"cluster": {"worker": ["localhost:23456", "localhost:23457"]},
                       "task": {"type": "worker", "index": 0}}'
    python late_worker.py --late-worker 1

Under Slurm, in a batch script:

    srun --nodes=2 --ntasks-per-node=1 python late_worker.py --slurm --late-worker 1

The late worker sleeps before it does anything else, as if it were held up by its data, a queue or a firewall. After
some seconds every worker writes to its standard error where in the program it is.
"""

import argparse
import faulthandler
import json
import os
import time

from distlab import cluster_spec


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="A job one of whose workers comes late or never.")
    parser.add_argument("--late-worker", type=int, default=1)
    parser.add_argument("--late-seconds", type=float, default=3600)
    parser.add_argument("--dump-after", type=float, default=5, help="seconds until the stacks are written (default: 5)")
    parser.add_argument("--slurm", action="store_true", help="find the other workers by Slurm's variables")
    return parser.parse_args()


def main() -> None:
    """Make a strategy; it needs every worker."""
    options = parse()
    if options.slurm:
        os.environ["TF_CONFIG"] = cluster_spec.from_slurm()
    faulthandler.dump_traceback_later(options.dump_after)
    task = json.loads(os.environ["TF_CONFIG"])["task"]
    if task["index"] == options.late_worker:
        time.sleep(options.late_seconds)

    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    faulthandler.cancel_dump_traceback_later()
    print(f"all {strategy.num_replicas_in_sync} are here", flush=True)


if __name__ == "__main__":
    main()
