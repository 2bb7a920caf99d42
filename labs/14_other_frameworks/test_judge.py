"""Lab 14: other right answers, no wrong place of a card is accepted, the rules are PyTorch's, and the fake is too."""

import json
from pathlib import Path

import numpy as np
import pytest
from lab_14 import given, judge, sampler
from lab_14.fake_torch import DistributedDataParallel, cross_entropy
from lab_14.judge import LAB
from lab_14.puzzle import PROGRAM, put, without

from distlab import frameworks, programs
from distlab.labs.fake_job import FakeJob, run_ranks
from tests.distlab.labs.judged_apart import printed_json
from tests.distlab.labs.known_wrong import right_answers, verdict_on

PROGRAMS = programs.FOLDER / "14_other_frameworks"
problem = frameworks.problem("torch")
needs_pytorch = pytest.mark.skipif(problem is not None, reason=str(problem))


def a_generator(images, ranks, rank, epoch, seed, drop_last):
    order = np.random.default_rng(epoch + seed).permutation(images).tolist()
    count = images // ranks if drop_last else (images + ranks - 1) // ranks
    return (order[(rank + ranks * place) % images] for place in range(count))


def by_signs(log, images):
    if {len(set(share)) for share in log[1]} == {images}:
        return "no sampler"
    times = np.bincount([image for epochs in log for image in epochs[0]], minlength=images)
    if times.min() == 0 and times.max() > 1:
        return "a seed per rank"
    if log[1][0] != log[1][1]:
        return "nothing"
    if log[1][-1] != log[1][0]:
        return "set_epoch too late"
    return "no shuffling" if log[0][1][:3] == [0, len(log), 2 * len(log)] else "no set_epoch"


def by_pytorch_s_flag(model, optimizer, batches):
    model.train()
    model.zero_grad()
    for place, (images, labels) in enumerate(batches, start=1):
        model.require_backward_grad_sync = place == len(batches)
        (-cross_entropy(model(images), labels)).div(-len(batches)).backward()
    optimizer.step()


test_another_right_answer_gets_full_marks = right_answers(
    LAB,
    ("program", put("init", "read options")),
    ("program", put("wrap", "optimizer")),
    ("samples", a_generator),
    ("diagnose", by_signs),
    ("accumulate", by_pytorch_s_flag),
)


BETWEEN = {
    "init": ("", "rate by size"),
    "pin by local rank": ("", "network"),
    "rate by size": ("read options", "optimizer"),
    "wrap": ("model", "epochs"),
    "shard": ("sampler", "loader"),
    "set epoch": ("epochs", "batches"),
    "only rank 0": ("update", "save"),
}
"""Of each card that is needed: the line that must come before it, and the one before which it must come."""


@pytest.mark.parametrize("card", given.CARDS)
def test_a_card_is_right_exactly_between_the_lines_that_it_needs_and_that_need_it(card):
    rest = without(card)
    layouts = [[*rest[:place], card, *rest[place:]] for place in range(len(rest) + 1)]
    verdicts = [verdict_on(LAB, "program", {"program": layout}) for layout in layouts]
    assert not any(verdict.fault for verdict in verdicts)
    between = ["", *rest, ""]
    first, last = (between.index(line) for line in BETWEEN.get(card, ("", "")))
    assert [verdict.is_right for verdict in verdicts] == [first <= place < last for place in range(len(layouts))]


SAMPLERS = """
import json, sys
import numpy as np, torch
from torch.utils.data import DistributedSampler

# The same rule, with NumPy's permutation instead of PyTorch's.
torch.randperm = lambda count, generator: torch.from_numpy(
    np.random.default_rng(generator.initial_seed()).permutation(count))

def of(images, ranks, rank, epoch, seed, drop_last):
    sampler = DistributedSampler(range(images), ranks, rank, seed=seed, drop_last=drop_last)
    sampler.set_epoch(epoch)
    return list(sampler)

print(json.dumps([of(*job) for job in json.loads(sys.argv[1])]))
"""


@pytest.mark.slow
@needs_pytorch
def test_the_rule_is_that_of_pytorch():
    jobs = [
        (images, ranks, rank, epoch, seed, drop_last)
        for images, ranks in ((12, 4), (13, 4), (15, 4), (2, 7), (7, 3))
        for rank in range(ranks)
        for epoch, seed in ((0, 0), (3, 0), (2, 40))
        for drop_last in (False, True)
        if images >= ranks or not drop_last
    ]
    command = [str(frameworks.python("torch")), "-c", SAMPLERS, json.dumps(jobs)]
    assert printed_json(command) == [sampler.samples(*job) for job in jobs]


@pytest.mark.slow
@needs_pytorch
@pytest.mark.parametrize("layout", [PROGRAM, without("wrap", "set epoch")])
def test_the_program_runs_on_two_processes_of_pytorch(tmp_path: Path, layout):
    given.write(layout, tmp_path / "program.py")
    report = programs.module(PROGRAMS / "two_processes.py").report(tmp_path / "program.py")
    assert "480 of 480 different ones" in report and "written by rank 0" in report
    is_whole = layout == PROGRAM
    assert ("which had 3 orders" in report, "weights differ by 0\n" in report) == (is_whole, is_whole)


ORDERS = (
    "F0 B0 F1 B1 F2 B2",
    "f0 b0 f1 b1 F2 B2",
    "F2 f0 b0 f1 b1 B2",
    "F0 F1 F2 B2 B1 B0",
    "F0 b0 F1 b1 F2 b2",
    "f0 f1 F2 B0 B1 B2",
    "F0 B0 f1 b1 f2 b2",
    "F0 F1 B0 F2 B1 B2",
    "f0 f1 F2 A",
)
"""Passes of three batches: F and B are forward and backward outside `no_sync`, f and b inside; A is one for all."""
REAL = """
import json, sys, tempfile
from contextlib import nullcontext
import torch, torch.distributed as dist, torch.multiprocessing as mp
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

def rank(number, file, given, results):
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=number, world_size=3)
    torch.set_default_dtype(torch.float64)
    *arrays, orders = given
    weight, images, labels = (torch.tensor(array) for array in arrays)
    gradients = []
    for order in orders:
        network = torch.nn.Linear(5, 4, bias=False)
        network.weight.data = (weight.T + number).contiguous()  # DDP sends those of rank 0
        model, losses = DistributedDataParallel(network), {}
        for call in order.split():
            with model.no_sync() if call.islower() else nullcontext():
                if call == "A":
                    sum(losses.values()).backward()
                elif call[0] in "Ff":
                    own = images[number, int(call[1])], labels[number, int(call[1])]
                    losses[call[1]] = cross_entropy(model(own[0]), own[1]) / 3
                else:
                    losses[call[1]].backward()
        gradients.append(network.weight.grad.T.tolist())
    results.put((number, gradients))
    dist.barrier()

if __name__ == "__main__":
    context = mp.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        results, given = context.Queue(), json.load(sys.stdin)
        ranks = [context.Process(target=rank, args=(n, folder + "/meet", given, results)) for n in range(3)]
        [process.start() for process in ranks]
        print(json.dumps([of_rank[1] for of_rank in sorted(results.get(timeout=600) for _ in ranks)]))
        [process.join() for process in ranks]
"""


@pytest.mark.slow
@needs_pytorch
def test_the_fake_computes_what_pytorch_does_in_any_order_of_passes(tmp_path: Path):
    generator = np.random.default_rng(5)
    weight, images = generator.normal(size=(5, 4)), generator.normal(size=(3, 3, 4, 5))
    labels = generator.integers(0, 4, (3, 3, 4))
    program = tmp_path / "real.py"
    program.write_text(REAL)
    inputs = json.dumps([*(array.tolist() for array in (weight, images, labels)), ORDERS])
    by_pytorch = printed_json([str(frameworks.python("torch")), str(program)], input=inputs)

    class NoStep:
        def step(self):
            """The gradients are compared."""

    def faked(rank):
        gradients = []
        for order in ORDERS:
            model = DistributedDataParallel(job, rank, weight + rank)
            batches = list(zip(images[rank], labels[rank], strict=True))
            judge.playing(lambda pairs, order=order: order)(model, NoStep(), batches)
            gradients.append(model.weight.grad)
        return gradients

    job = FakeJob(3, 3)
    for value, of_rank in zip(run_ranks(job, faked).values, by_pytorch, strict=True):
        for order, gradient, true_gradient in zip(ORDERS, value, of_rank, strict=True):
            assert np.allclose(gradient, true_gradient, atol=1e-12), order
