r"""Train the network of this folder with Apache MXNet 1.9 and its key-value store: alone, or with workers and servers.

On a laptop, with the interpreter that has MXNet; in one process, and with two workers and a server:

    .venv-mxnet/bin/python train_mxnet.py start.npz --result result.json
    distlab launch --with mxnet --python .venv-mxnet/bin/python train_mxnet.py -- start.npz --result result.json

By hand, every process is this program with the same addresses and a role of its own. The others find one another
through the scheduler; on several hosts 127.0.0.1 becomes the address of the scheduler's host:

    export DMLC_PS_ROOT_URI=127.0.0.1 DMLC_PS_ROOT_PORT=PORT DMLC_NUM_WORKER=2 DMLC_NUM_SERVER=1
    DMLC_ROLE=scheduler python train_mxnet.py start.npz &
    DMLC_ROLE=server python train_mxnet.py start.npz &
    DMLC_ROLE=worker python train_mxnet.py start.npz &
    DMLC_ROLE=worker python train_mxnet.py start.npz --result result.json

Under Slurm, in a batch script, with DMLC_PS_ROOT_URI the first host of the job, where task 0 runs:

    export roles="scheduler server worker worker"
    srun --ntasks=4 bash -c 'all=($roles); DMLC_ROLE=${all[$SLURM_PROCID]} python train_mxnet.py start.npz'

It needs MXNet and NumPy alone. `start.py`, which the course's Python runs, writes start.npz. Worker 0 alone writes
files. No run can be resumed exactly: the momentum lies in the server, and MXNet cannot fetch it from there.
"""

import argparse
import json
import os
from pathlib import Path

import layouts
import numpy as np

# MXNet's oneDNN sums in another order than the rest: 20 steps with it end ten times farther from the other frameworks.
os.environ.setdefault("MXNET_MKLDNN_ENABLED", "0")
os.environ.setdefault("MXNET_STORAGE_FALLBACK_LOG_VERBOSE", "0")
# With the role scheduler or server this line serves the workers until they are done, and then ends the process.
import mxnet as mx

GLOBAL_BATCH, LEARNING_RATE, MOMENTUM = 48, 0.02, 0.9  # the rate is for the global batch


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Train with MXNet's key-value store.")
    parser.add_argument("start", type=Path, help="the file that start.py wrote")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--optimizer-on", choices=["server", "worker"], default="server")
    parser.add_argument("--weights", type=Path, help=".npz file for the trained weights")
    parser.add_argument("--result", type=Path, help="JSON file that worker 0 writes")
    return parser.parse_args()


def network(weights: list[np.ndarray]) -> tuple[mx.gluon.nn.Sequential, list[mx.gluon.Parameter]]:
    """Images float32 (n, 1, 28, 28) to logits float32 (n, 10), and its parameters in the order of the weights."""
    net = mx.gluon.nn.Sequential()
    net.add(
        mx.gluon.nn.Conv2D(16, 3, activation="relu", in_channels=1),
        mx.gluon.nn.MaxPool2D(),
        mx.gluon.nn.Flatten(),
        mx.gluon.nn.Dense(64, activation="relu", in_units=13 * 13 * 16),
        mx.gluon.nn.Dense(10, in_units=64),
    )
    net.initialize()
    parameters = list(net.collect_params().values())
    for parameter, weight in zip(parameters, layouts.to_channels_first(weights), strict=True):
        parameter.set_data(mx.nd.array(weight))
    return net, parameters


def train(options: argparse.Namespace, store: mx.kvstore.KVStore) -> dict:
    """Train; the losses of the global batches, as worker 0 sees them, and the weights."""
    with np.load(options.start) as arrays:
        images, labels = arrays["images"][:, None], arrays["labels"]
    net, parameters = network(layouts.read(options.start))
    # The store has the sum over all workers of what they push.
    optimizer = mx.optimizer.SGD(learning_rate=LEARNING_RATE, momentum=MOMENTUM, rescale_grad=1 / GLOBAL_BATCH)
    if options.optimizer_on == "server":
        store.set_optimizer(optimizer)  # worker 0 sends it there; from now on each sum that arrives is a step
    else:
        update = mx.optimizer.get_updater(optimizer)
    for key, parameter in enumerate(parameters):
        store.init(key, parameter.data())  # of what the workers bring, the store keeps worker 0's
        store.pull(key, out=parameter.data())
    losses_of = mx.gluon.loss.SoftmaxCrossEntropyLoss()

    def losses_on(rows: slice) -> mx.nd.NDArray:
        return losses_of(net(mx.nd.array(images[rows])), mx.nd.array(labels[rows]))

    losses = []
    for first in range(0, options.steps * GLOBAL_BATCH, GLOBAL_BATCH):
        last = first + GLOBAL_BATCH
        if store.rank == 0:
            losses.append(float(losses_on(slice(first, last)).mean().asscalar()))
        with mx.autograd.record():
            loss = losses_on(slice(first + store.rank, last, store.num_workers)).sum()
        loss.backward()
        for key, parameter in enumerate(parameters):
            store.push(key, parameter.grad())
        for key, parameter in enumerate(parameters):
            if options.optimizer_on == "server":
                store.pull(key, out=parameter.data())  # the new weights
            else:
                store.pull(key, out=parameter.grad())  # the sum of the gradients: push and pull are an all-reduce
                update(key, parameter.grad(), parameter.data())
    weights = layouts.to_channels_last([parameter.data().asnumpy() for parameter in parameters])
    held = {"ranks": store.num_workers, "store": store.type, "optimizer on": options.optimizer_on}
    return held | {"losses": losses, "weights": weights}


def main() -> None:
    """Train; worker 0 says how it went and writes losses and weights."""
    options = parse()
    store = mx.kvstore.create("dist_sync" if "DMLC_ROLE" in os.environ else "local")
    result = train(options, store)
    weights, losses = result.pop("weights"), result["losses"]
    if store.rank == 0:
        workers = f"{result['ranks']} workers, store {store.type}, optimizer on the {options.optimizer_on}"
        print(f"{workers}: {len(losses)} steps, last loss {losses[-1]:.4f}", flush=True)
        if options.weights:
            layouts.write(options.weights, weights)
        if options.result:
            options.result.write_text(json.dumps(result | {"steps": len(losses)}) + "\n")


if __name__ == "__main__":
    main()
