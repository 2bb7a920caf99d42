"""The fake PyTorch computes what PyTorch does, whatever the order of forward and backward passes."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from lab_14.fake_torch import SGD, DistributedDataParallel, LinearNetwork, Process, cross_entropy

from distlab import frameworks
from distlab.labs.fake_job import FakeJob, run_ranks
from tests.distlab.labs.known_wrong import written_solution

problem = frameworks.problem("torch")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(problem is not None, reason=str(problem))]
SECONDS = 900
RATE, MOMENTUM = 0.1, 0.9

# Passes of three batches in order: F and B are forward and backward outside `no_sync`, f and b inside; S is one
# backward pass for all.
ORDERS = (
    "F0 B0 F1 B1 F2 B2",
    "f0 b0 f1 b1 F2 B2",
    "F2 f0 b0 f1 b1 B2",
    "F0 F1 F2 B0 B1 B2",
    "F0 F1 F2 B2 B1 B0",
    "F0 b0 F1 b1 F2 b2",
    "f0 f1 f2 B0 B1 B2",
    "f0 f1 F2 B0 B1 B2",
    "F0 B0 f1 b1 f2 b2",
    "f0 b0 f1 b1 F2 b2",
    "F0 F1 B0 F2 B1 B2",
    "f0 f1 F2 S",
)
PASSES = """
from contextlib import nullcontext

def in_order(order, model, batches, cross_entropy):
    losses = {}
    for text in order.split():
        with model.no_sync() if text.islower() else nullcontext():
            if text == "S":
                sum(losses.values()).backward()
            elif text[0] in "Ff":
                images, labels = batches[int(text[1])]
                losses[text[1]] = cross_entropy(model(images), labels)
            else:
                losses[text[1]].backward()
"""
BOTH = (
    PASSES
    + """import json, sys, tempfile
import numpy as np, torch, torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

def accumulate(model, optimizer, batches):
    optimizer.zero_grad()
    with model.no_sync():
        for images, labels in batches[:-1]:
            (cross_entropy(model(images), labels) / len(batches)).backward()
    images, labels = batches[-1]
    (cross_entropy(model(images), labels) / len(batches)).backward()
    optimizer.step()

def rank(number, file, given, results):
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=number, world_size=3)
    torch.set_default_dtype(torch.float64)
    *arrays, orders = given
    weight, images, labels = (torch.tensor(array) for array in arrays)
    def wrapped():
        network = torch.nn.Linear(5, 4, bias=False)
        network.weight.data = (weight.T + number).contiguous()  # DDP sends those of rank 0
        return network, DistributedDataParallel(network)
    batches = [list(zip(images[step, number], labels[step, number])) for step in range(2)]
    network, model = wrapped()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for step in range(2):
        accumulate(model, optimizer, batches[step])
    gradients = []
    for order in orders:
        other, model = wrapped()
        in_order(order, model, batches[0], cross_entropy)
        gradients.append(other.weight.grad.T.tolist())
    results.put((number, network.weight.data.T.tolist(), gradients))
    dist.barrier()

if __name__ == "__main__":
    import torch.multiprocessing as mp
    context = mp.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        results, given = context.Queue(), json.load(sys.stdin)
        ranks = [context.Process(target=rank, args=(n, folder + "/meet", given, results)) for n in range(3)]
        [process.start() for process in ranks]
        print(json.dumps([of_rank[1:] for of_rank in sorted(results.get(timeout=600) for _ in ranks)]))
        [process.join() for process in ranks]
"""
)


@pytest.mark.long
def test_the_fake_computes_what_pytorch_does(tmp_path: Path) -> None:
    generator = np.random.default_rng(5)
    weight, images = generator.normal(size=(5, 4)), generator.normal(size=(2, 3, 3, 4, 5))
    labels = generator.integers(0, 4, (2, 3, 3, 4))
    program = tmp_path / "both.py"
    program.write_text(BOTH)
    command = [str(frameworks.python("torch")), str(program)]
    given = json.dumps([*(array.tolist() for array in (weight, images, labels)), ORDERS])
    run = subprocess.run(command, input=given, capture_output=True, text=True, timeout=SECONDS, check=True)
    solution = written_solution("14", "accumulate")
    solution.__globals__["cross_entropy"] = cross_entropy
    names: dict = {}
    exec(PASSES, names)
    jobs = FakeJob(3, 3)

    def trained(rank: int) -> tuple[np.ndarray, list[np.ndarray]]:
        process = Process(jobs, rank, is_initialised=True)
        batches = [list(zip(images[step, rank], labels[step, rank], strict=True)) for step in range(2)]
        network = LinearNetwork(weight + rank)
        model = DistributedDataParallel(process, network)
        optimizer = SGD(model.parameters(), RATE, MOMENTUM)
        for step in range(2):
            solution(model, optimizer, batches[step])
        gradients = []
        for order in ORDERS:
            other = LinearNetwork(weight + rank)
            names["in_order"](order, DistributedDataParallel(process, other), batches[0], cross_entropy)
            gradients.append(other.weight.grad)
        return network.weight.data, gradients

    faked = [outcome.value for outcome in run_ranks(jobs, trained)]
    for (weights, gradients), (true_weights, true_gradients) in zip(faked, json.loads(run.stdout), strict=True):
        assert np.allclose(weights, true_weights, atol=1e-12)
        for order, gradient, true_gradient in zip(ORDERS, gradients, true_gradients, strict=True):
            assert np.allclose(gradient, true_gradient, atol=1e-12), order
