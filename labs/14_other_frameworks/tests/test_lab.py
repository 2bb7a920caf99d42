"""Lab 14: the fake trains what one process would, the rule is PyTorch's, and no wrong place of a card is accepted."""

import json
import re
import subprocess
import threading
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from lab_14 import averages, given, lab, program_run, sampler_logs, sampling
from lab_14.fake_torch import DistributedDataParallel, LinearNetwork, Process, cross_entropy
from lab_14.hints import Lab14Hint
from lab_14.hints import Lab14PuzzleHint as Puzzle
from lab_14.program_run import PER_HOST, RANKS, ProgramJob, RankRecord
from lab_14_tests.answers_14 import ALSO_WRONG, SOLUTION, by_signs

from distlab import frameworks, programs
from distlab.labs import fake_job
from distlab.labs.answer import OwnAnswer
from distlab.labs.fake_job import FakeJob, run_ranks
from tests.distlab.labs.known_wrong import SEEDS, assert_right, verdict_on, written_solution

LAB = lab.LAB
ROOT = Path(__file__).parents[3]
PROGRAMS = ROOT / "notebooks/programs/14_other_frameworks"
SECONDS = 900
problem = frameworks.problem("torch")
needs_pytorch = pytest.mark.skipif(problem is not None, reason=str(problem))


@cache
def job() -> ProgramJob:
    return program_run.drawn_job(np.random.default_rng(14))


def serial_weights(records: list[RankRecord]) -> np.ndarray:
    """What one process trains from rank 0's first weights, with the ranks' batches of each step together."""
    weights, momentum = records[0].first.copy(), 0.0
    for epoch in records[0].seen:
        for batches in zip(*(record.seen[epoch] for record in records), strict=True):
            together = np.concatenate(batches)
            momentum = 0.9 * momentum + averages.gradient(weights, job().images[together], job().labels[together])
            weights = weights - RANKS * job().rate * momentum
    return weights


def trains_as_one_process(layout: list[str]) -> bool:
    """Whether it ends, steps are those of one process, no image comes twice in an epoch, epochs differ, one saves."""
    try:
        records = program_run.run(layout, job())
    except SyntaxError:  # a guard of a line that others belong to
        return False
    if isinstance(records, program_run.ProgramFault):
        return False
    expected = serial_weights(records)
    epochs = [np.concatenate([np.ravel(record.seen[epoch]) for record in records]).tolist() for epoch in range(3)]
    count = len(job().images) // (RANKS * job().batch) * RANKS * job().batch
    return (
        all(np.allclose(record.last, expected) for record in records)
        and all(np.array_equal(record.first, records[0].first) for record in records)
        and all(len(set(images)) == len(images) == count for images in epochs)
        and epochs[0] != epochs[1] != epochs[2] != epochs[0]
        and [record.device for record in records] == [rank % PER_HOST for rank in range(RANKS)]
        and [bool(record.saves) for record in records] == [True] + [False] * (RANKS - 1)
        and all(record.models_wrapped == 1 for record in records)
    )


def moved(card: str) -> list[list[str]]:
    """The solution with a card at every place."""
    rest = [name for name in SOLUTION if name != card]
    return [[*rest[:place], card, *rest[place:]] for place in range(len(rest) + 1)]


@pytest.mark.slow
@pytest.mark.parametrize("card", [name for name in SOLUTION if name in given.CARDS])
def test_a_program_is_right_exactly_where_it_trains_as_one_process(card: str) -> None:
    verdicts = [verdict_on(LAB, "program", {"program": layout}).is_right for layout in moved(card)]
    assert verdicts == [trains_as_one_process(layout) for layout in moved(card)]
    assert any(verdicts) and not all(verdicts)


@pytest.mark.slow
@pytest.mark.parametrize("card", [name for name in given.CARDS if name not in SOLUTION])
def test_no_place_is_right_for_a_wrong_card(card: str) -> None:
    for layout in moved(card):
        verdict = verdict_on(LAB, "program", {"program": layout})
        assert not verdict.is_right and verdict.fault is None


@pytest.mark.parametrize("card", [name for name in SOLUTION if name in given.CARDS])
def test_no_card_can_be_left_out(card: str) -> None:
    layout = [name for name in SOLUTION if name != card]
    assert not verdict_on(LAB, "program", {"program": layout}).is_right
    assert not trains_as_one_process(layout)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_every_layout_has_a_verdict_without_a_fault(seed: int) -> None:
    generator = np.random.default_rng(seed)
    layout = list(given.LINES)
    for card in generator.permutation(list(given.CARDS))[: int(generator.integers(1, 14))]:
        layout.insert(int(generator.integers(len(layout) + 1)), str(card))
    verdict = verdict_on(LAB, "program", {"program": layout})
    assert verdict.fault is None and "could not cope" not in verdict.text


@pytest.mark.parametrize(
    ("card", "before", "left_out", "hint"),
    [
        ("broadcast", "network", "wrap", Puzzle.BROADCAST_WITHOUT_WRAP),
        ("only local rank 0", "only rank 0", "", Puzzle.SECOND_GUARD),
        ("shard by local rank", "loader", "", Puzzle.SHARDED_PER_HOST),
    ],
)
def test_a_second_card_is_judged_by_what_it_does(card: str, before: str, left_out: str, hint: Puzzle) -> None:
    layout = [name for name in SOLUTION if name != left_out]
    layout.insert(layout.index(before), card)
    assert hint in verdict_on(LAB, "program", {"program": layout}).hints


def test_the_guarded_line_is_indented() -> None:
    assert given.body(["epochs", "only rank 0", "save"]).splitlines()[1:] == [
        "    " + given.CARDS["only rank 0"],
        "        " + given.LINES["save"].lstrip(),
    ]


@pytest.mark.parametrize("letter", given.LOGS)
def test_every_fault_has_one_of_the_logs_and_shows_in_it(letter: str) -> None:
    faults = [sampler_logs.true_fault([*map(list, log)], given.IMAGES) for log in given.LOGS.values()]
    assert sorted(faults) == sorted(given.FAULTS)
    assert by_signs(given.LOGS[letter], given.IMAGES) == faults[list(given.LOGS).index(letter)]
    assert len(given.log_in_words(given.LOGS[letter]).splitlines()) == 8


@pytest.mark.slow
@pytest.mark.parametrize("answer", ALSO_WRONG)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_diagnosis_that_is_right_for_some_jobs_only_is_rejected(answer: object, seed: int) -> None:
    assert not verdict_on(LAB, "diagnose", {"diagnose": answer}, seed).is_right


@pytest.mark.parametrize("seed", SEEDS)
def test_a_diagnosis_that_raises_for_short_logs_only_loses_their_faults(seed: int) -> None:
    def needs_four_epochs(log: list[list[list[int]]], images: int) -> str:
        return by_signs(log, images) if log[0][3] else "nothing"

    verdict = verdict_on(LAB, "diagnose", {"diagnose": needs_four_epochs}, seed)
    assert re.search(r"for a job of \d ranks and 3 epochs: it raised IndexError", verdict.text)
    assert not verdict.hints


def test_a_diagnosis_of_the_shown_logs_alone_is_not_done_for_the_others() -> None:
    shown = [[list(map(list, epochs)) for epochs in log] for log in given.LOGS.values()]
    verdict = verdict_on(LAB, "diagnose", {"diagnose": lambda log, n: by_signs(log, n) if log in shown else None})
    assert verdict.share == 0 and "`diagnose` gives None" in verdict.text and "NotDone" not in verdict.text


@pytest.mark.parametrize("drop_last", [False, True])
def test_ranks_with_their_own_seeds_miss_one_image_more_than_they_must_in_each_epoch(drop_last: bool) -> None:
    job = sampler_logs.with_one_image_too_few(drop_last, np.random.default_rng(5))
    assert [len(set(job.together(epoch))) for epoch in range(3)] == [11 if drop_last else 12] * 3
    assert sampler_logs.true_fault(job.log, job.images) == "a seed per rank"


@pytest.mark.parametrize("seed", range(5))
def test_the_factors_turn_the_average_into_the_mean_over_all_images(seed: int) -> None:
    generator = np.random.default_rng(seed)
    counts = generator.integers(1, 9, 4).tolist()
    images = [generator.normal(size=(count, 5)) for count in counts]
    labels = [generator.integers(0, 4, count) for count in counts]

    def program(rank: int) -> np.ndarray:
        network = LinearNetwork(np.full((5, 4), 0.1))
        model = DistributedDataParallel(Process(jobs, rank, is_initialised=True), network)
        (cross_entropy(model(images[rank]), labels[rank]) * averages.uneven(counts, rank)["factor"]).backward()
        return network.weight.grad

    jobs = FakeJob(4, 4)
    expected = averages.gradient(np.full((5, 4), 0.1), np.concatenate(images), np.concatenate(labels))
    assert all(np.allclose(outcome.value, expected) for outcome in run_ranks(jobs, program))


def test_the_fake_loss_has_the_gradient_of_finite_differences() -> None:
    generator = np.random.default_rng(3)
    images, labels, weight = generator.normal(size=(6, 3)), generator.integers(0, 4, 6), generator.normal(size=(3, 4))
    network = LinearNetwork(weight)
    cross_entropy(network(images), labels).backward()
    step = np.zeros((3, 4))
    step[1, 2] = 1e-6
    above, below = (cross_entropy(LinearNetwork(weight + sign * step)(images), labels).item() for sign in (1, -1))
    assert network.weight.grad[1, 2] == pytest.approx((above - below) / 2e-6, rel=1e-6)


@pytest.mark.parametrize("exercise", ["program", "samples", "diagnose", "uneven"])
def test_the_solution_of_the_text_is_right(exercise: str) -> None:
    solution = written_solution("14", exercise)
    if callable(solution):
        solution.__globals__["np"] = np
    for seed in (0, 7, 8):
        assert_right(verdict_on(LAB, exercise, {exercise: solution}, seed))


def test_the_targets_show_the_numbers() -> None:
    shares = [json.loads(line.partition(")  ")[2]) for line in LAB.target("samples").splitlines()]
    assert sorted({image for share in shares for image in share}) == list(range(7)) and sum(map(len, shares)) == 9
    assert '"weight": 0.25, "factor": 0.666667' in LAB.target("uneven")


def test_the_lab_needs_no_tensorflow() -> None:
    assert not LAB.tensorflow


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
def test_the_rule_is_that_of_pytorch() -> None:
    jobs = [
        (images, ranks, rank, epoch, seed, drop_last)
        for images, ranks in ((12, 4), (13, 4), (15, 4), (2, 7), (7, 3))
        for rank in range(ranks)
        for epoch, seed in ((0, 0), (3, 0), (2, 40))
        for drop_last in (False, True)
        if images >= ranks or not drop_last
    ]
    command = [str(frameworks.python("torch")), "-c", SAMPLERS, json.dumps(jobs)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    assert json.loads(run.stdout) == [sampling.samples(*job) for job in jobs]


@pytest.mark.long
@needs_pytorch
@pytest.mark.parametrize("layout", [SOLUTION, [name for name in SOLUTION if name not in ("wrap", "set epoch")]])
def test_the_program_runs_on_two_processes_of_pytorch(tmp_path: Path, layout: list[str]) -> None:
    given.write(layout, tmp_path / "program.py")
    report = programs.module(PROGRAMS / "two_processes.py").report(tmp_path / "program.py")
    assert "480 of 480 different ones" in report and "written by rank 0" in report
    is_whole = layout == SOLUTION
    assert ("which had 3 orders" in report, "weights differ by 0\n" in report) == (is_whole, is_whole)


LATE = """\
while os.environ["RANK"] == "1" and not (options.folder / "done").exists():
    os.sched_yield()
"""


@pytest.mark.long
@needs_pytorch
def test_a_late_process_trains_from_the_start_too(tmp_path: Path) -> None:
    file, options = tmp_path / "program.py", f"{given.LINES['read options']}\n"
    text = given.body([name for name in SOLUTION if name not in ("wrap", "set epoch")])
    assert options in text
    file.write_text(text.replace(options, options + LATE) + '(options.folder / "done").touch()\n')
    report = programs.module(PROGRAMS / "two_processes.py").report(file)
    assert "480 of 480 different ones" in report


@pytest.mark.slow
@needs_pytorch
@pytest.mark.parametrize(
    ("left_out", "sentence"),
    [("init", "The program ended with ValueError in `rate = "), ("only rank 0 and all cards", "no process group")],
)
def test_a_program_that_fails_on_pytorch_is_one_sentence(tmp_path: Path, left_out: str, sentence: str) -> None:
    layout = [name for name in SOLUTION if name != left_out] if left_out in SOLUTION else list(given.LINES)
    given.write(layout, tmp_path / "program.py")
    report = programs.module(PROGRAMS / "two_processes.py").report(tmp_path / "program.py")
    assert sentence in report and "\n" not in report


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        (list(given.LINES), "No card has been placed"),
        (["set_epoch", *SOLUTION], "'set_epoch' is neither a line nor a card."),
        (None, "is a list of names"),
        (SOLUTION, ""),
    ],
)
def test_a_program_that_cannot_run_is_refused_in_a_sentence(program: object, sentence: str) -> None:
    text = given.problem(program)
    assert sentence in text and bool(text) == bool(sentence)


def test_without_pytorch_one_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frameworks, "PROJECT", tmp_path)
    report = programs.module(PROGRAMS / "two_processes.py").report(tmp_path / "program.py")
    assert report.startswith("Skipped: PyTorch is not installed") and "\n" not in report


@pytest.mark.long
@pytest.mark.parametrize("pause", [0.0, 0.01])
def test_a_rank_that_never_ends_is_stopped(pause: float) -> None:
    def spins(model: object, optimizer: object, batches: list) -> None:
        while True:
            time.sleep(pause) if pause else None

    verdict = LAB["accumulate"].verdict(OwnAnswer({"accumulate": spins}, 10.0), seed=0)
    assert verdict.hints == (Lab14Hint.TOO_SLOW,), verdict
    assert fake_job.ranks_left() == 0


@pytest.mark.slow
def test_a_rank_that_cannot_be_stopped_is_said() -> None:
    over = threading.Event()

    def spins(model: object, optimizer: object, batches: list) -> None:
        while not over.is_set():
            with suppress(BaseException):  # what is to stop it, too
                over.wait(0.01)

    try:
        verdict = LAB["accumulate"].verdict(OwnAnswer({"accumulate": spins}, 10.0), seed=0)
    finally:
        over.set()
    assert verdict.hints == (Lab14Hint.TOO_SLOW, Lab14Hint.STILL_RUNNING), verdict
