"""A job one of whose workers comes late or never, to see what the others do.

On a laptop, with the course's launcher, which ends the job after 20 s of waiting and says who
is missing; by hand with a TF_CONFIG for each worker; under Slurm in a batch script:

    distlab launch --workers 2 --start-seconds 20 late_worker.py -- --late-worker 1
    python late_worker.py --late-worker 1
    srun --nodes=2 --ntasks-per-node=1 python late_worker.py --slurm --late-worker 1

The late worker sleeps first, as if it were held up by its data, a queue or a firewall. After
some seconds every worker writes to its standard error where in the program it is.
"""

import argparse
import faulthandler
import json
import os
import time

from distlab import cluster_spec


def main() -> None:
    """Make a strategy; it needs every worker."""
    parser = argparse.ArgumentParser(description="One worker comes late or never.")
    parser.add_argument("--late-worker", type=int, default=1)
    parser.add_argument("--dump-after", type=float, default=5, help="seconds, for the stacks")
    parser.add_argument("--slurm", action="store_true", help="find the workers by Slurm")
    options = parser.parse_args()
    if options.slurm:
        os.environ["TF_CONFIG"] = cluster_spec.from_slurm()
    faulthandler.dump_traceback_later(options.dump_after)
    task = json.loads(os.environ["TF_CONFIG"])["task"]
    if task["index"] == options.late_worker:
        time.sleep(3600)

    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    faulthandler.cancel_dump_traceback_later()
    print(f"all {strategy.num_replicas_in_sync} are here", flush=True)


if __name__ == "__main__":
    main()
