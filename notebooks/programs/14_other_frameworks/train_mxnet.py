r"""Train with Apache MXNet 1.9 and its key-value store: alone, or with workers and servers.

On a laptop, with the interpreter that has MXNet; in one process, and with two workers and a
server:

    .venv-mxnet/bin/python train_mxnet.py start.npz --result result.json
    distlab launch --with mxnet --python .venv-mxnet/bin/python train_mxnet.py -- start.npz

By hand, every process is this program with the same addresses and a role of its own. On
several hosts 127.0.0.1 becomes the address of the scheduler's host:

    export DMLC_PS_ROOT_URI=127.0.0.1 DMLC_PS_ROOT_PORT=PORT
    export DMLC_NUM_WORKER=2 DMLC_NUM_SERVER=1
    for role in scheduler server worker worker; do
        DMLC_ROLE=$role python train_mxnet.py start.npz &
    done

Under Slurm each task takes its role by SLURM_PROCID, and the scheduler is that on the job's
first host. It needs MXNet and NumPy alone. `start.py`, which the course's Python runs, writes
start.npz. No run can be resumed exactly: the momentum lies in the server, and MXNet cannot
fetch it from there.
"""

import argparse
import os

import layouts
import numpy as np

# MXNet's oneDNN sums in another order, which ends ten times farther from other frameworks.
os.environ.setdefault("MXNET_MKLDNN_ENABLED", "0")
os.environ.setdefault("MXNET_STORAGE_FALLBACK_LOG_VERBOSE", "0")
# With the role scheduler or server this line serves until the workers are done, and ends.
import mxnet as mx

STEPS, GLOBAL_BATCH, LEARNING_RATE, MOMENTUM = 20, 48, 0.02, 0.9


def network(weights: list[np.ndarray]) -> tuple[mx.gluon.nn.Sequential, list]:
    """Images float32 (n, 1, 28, 28) to logits float32 (n, 10), and its parameters in order."""
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
    rates = {"learning_rate": LEARNING_RATE, "rescale_grad": 1 / GLOBAL_BATCH}
    optimizer = mx.optimizer.SGD(momentum=MOMENTUM, **rates)
    if options.optimizer_on == "server":
        # Worker 0 sends it; now each sum that arrives is a step.
        store.set_optimizer(optimizer)
    else:
        update = mx.optimizer.get_updater(optimizer)
    for key, parameter in enumerate(parameters):
        store.init(key, parameter.data())  # the store keeps worker 0's
        store.pull(key, out=parameter.data())
    losses_of = mx.gluon.loss.SoftmaxCrossEntropyLoss()

    def losses_on(rows: slice) -> mx.nd.NDArray:
        return losses_of(net(mx.nd.array(images[rows])), mx.nd.array(labels[rows]))

    losses = []
    for first in range(0, STEPS * GLOBAL_BATCH, GLOBAL_BATCH):
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
                # the sum of the gradients: push and pull are an all-reduce
                store.pull(key, out=parameter.grad())
                update(key, parameter.grad(), parameter.data())
    weights = [parameter.data().asnumpy() for parameter in parameters]
    return {"losses": losses, "weights": layouts.to_channels_last(weights)}


def main() -> None:
    """Train; worker 0 says how it went and writes losses and weights."""
    parser = layouts.parser("Train with MXNet's key-value store.")
    parser.add_argument("--optimizer-on", choices=["server", "worker"], default="server")
    options = parser.parse_args()
    store = mx.kvstore.create("dist_sync" if "DMLC_ROLE" in os.environ else "local")
    result = train(options, store)
    if store.rank == 0:
        place, weights = options.optimizer_on, result.pop("weights")
        result |= {"ranks": store.num_workers, "store": store.type, "optimizer on": place}
        who = f"{store.num_workers} workers, store {store.type}, optimizer on the {place}:"
        layouts.report(options, who, result, weights)


if __name__ == "__main__":
    main()
