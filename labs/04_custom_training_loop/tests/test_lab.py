"""Lab 04: the judge's own numbers against TensorFlow's functions and calculations by hand."""

import numpy as np
import pytest
from lab_04 import accumulation, factors, lab, masked_losses, penalty, replica_losses
from lab_04.hints import Lab04Hint
from lab_04_tests.answers_04 import AGAIN

from tests.distlab.labs.known_wrong import SEEDS, WrongAnswer, assert_not_done, assert_wrong, verdict_on

LAB = lab.LAB
LOSSES = [np.array([0.5, 2.0, 1.25]), np.array([3.0]), np.array([])]


def test_names_without_numbers_are_not_done_yet() -> None:
    assert_not_done(LAB, "factors", {"factors": lambda *loop: dict.fromkeys(factors.NAMES)})


@pytest.mark.parametrize("loop", [factors.EXAMPLE, factors.SECOND])
def test_the_factors_are_those_of_loops_that_are_carried_out(loop: factors.Loop) -> None:
    replicas, images, micro_batches = loop
    gradients = np.random.default_rng(3).normal(size=(micro_batches, replicas, images)) + 1
    first = gradients[0]
    expected = {
        "means, summed": first.mean(axis=1).sum() / first.mean(),
        "means, averaged": first.mean(axis=1).mean() / first.mean(),
        "sums, summed": first.sum(axis=1).sum() / first.mean(),
        "sums, averaged": first.sum(axis=1).mean() / first.mean(),
        "global means, averaged": (first.sum(axis=1) / first.size).mean() / first.mean(),
        "micro-batches, summed": (gradients.sum(axis=2) / first.size).sum() / gradients.mean(),
    }
    assert factors.factors(*loop) == pytest.approx(expected)


def test_the_losses_are_those_of_compute_average_loss() -> None:
    tf = pytest.importorskip("tensorflow")
    expected = [float(tf.nn.compute_average_loss(tf.constant(own), global_batch_size=4)) for own in LOSSES]
    assert replica_losses.replica_losses(LOSSES) == pytest.approx(expected)
    assert sum(expected) == pytest.approx(np.concatenate(LOSSES).mean())


def test_with_a_penalty_they_add_up_to_the_mean_and_one_penalty() -> None:
    assert sum(penalty.with_penalty(LOSSES, 0.3)) == pytest.approx(np.concatenate(LOSSES).mean() + 0.3)


def test_the_accumulated_gradient_is_that_of_all_images_at_once() -> None:
    generator, counts = np.random.default_rng(4), np.array([[3, 1, 2], [2, 0, 5]])
    images = [[generator.normal(size=(count, 4)) for count in of_rank] for of_rank in counts]
    means = np.array([[one.mean(axis=0) if len(one) else np.full(4, np.nan) for one in of_rank] for of_rank in images])
    expected = np.concatenate([one for of_rank in images for one in of_rank]).mean(axis=0)
    assert accumulation.accumulated(means, counts) == pytest.approx(expected)


def test_the_masked_losses_add_up_to_the_mean_over_all_words() -> None:
    _, losses, masks = masked_losses.EXAMPLE
    words = np.concatenate([own[mask == 1] for own, mask in zip(losses, masks, strict=True)])
    assert sum(masked_losses.masked_losses(losses, masks)) == pytest.approx(words.mean())


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("factors", ["2", "1", "6", "3", "0.5", "7"]),
        ("replica_losses", ["2.25", "1.75"]),  # (1 + 2 + 6) / 4, 7 / 4
        ("with_penalty", ["2.5", "2.0"]),
        ("accumulated", ["3.0"]),  # (3 · 1 + 5 + 2 + 8) / 6
        ("masked_losses", ["2.25", "1.25"]),  # (2 + 4 + 3) / 4, 5 / 4
    ],
)
def test_the_targets_are_what_a_calculation_by_hand_gives(name: str, numbers: list[str]) -> None:
    text = LAB.target(name).rpartition("micro_batches=7)\n" if name == "factors" else ")\n")[2]
    shown = [line.split()[-1] for line in text.splitlines()] if name == "factors" else []
    assert (shown or text[text.index("[") + 1 : text.index("]")].split(", ")) == numbers


@pytest.mark.parametrize(("exercise", "answer"), AGAIN.all_wrong(), ids=lambda part: getattr(part, "title", None))
@pytest.mark.parametrize("seed", SEEDS)
def test_another_way_to_a_known_mistake_gets_its_hints(exercise: str, answer: WrongAnswer, seed: int) -> None:
    assert_wrong(verdict_on(LAB, exercise, answer.namespace, seed), answer)


def test_a_penalty_that_needs_exercise_2_says_so_only_while_that_is_not_written() -> None:
    def on_exercise_2(losses: list[np.ndarray], amount: float) -> list[float]:
        return [loss + amount / len(losses) for loss in None]  # type: ignore[union-attr]

    def own_losses(losses: list[np.ndarray]) -> list[float]:
        return replica_losses.replica_losses(losses)

    empty = verdict_on(LAB, "with_penalty", {"with_penalty": on_exercise_2, "replica_losses": lambda losses: None})
    written = verdict_on(LAB, "with_penalty", {"with_penalty": on_exercise_2, "replica_losses": own_losses})
    assert set(empty.hints) == {Lab04Hint.EXERCISE_2_FIRST}
    assert not written.hints and "TypeError" in written.text


@pytest.mark.parametrize("seed", SEEDS)
def test_an_empty_replica_or_micro_batch_is_never_the_first_or_the_last(seed: int) -> None:
    calls: list[list[int]] = []

    def losses_asked(losses: list[np.ndarray]) -> list[float]:
        calls.append([len(own) for own in losses])
        return replica_losses.replica_losses(losses)

    def gradients_asked(gradients: np.ndarray, counts: np.ndarray) -> np.ndarray:
        calls.extend([*counts.tolist(), *counts.T.tolist()] if not counts.all() else [])
        return accumulation.accumulated(gradients, counts)

    assert verdict_on(LAB, "replica_losses", {"replica_losses": losses_asked}, seed).is_right
    assert verdict_on(LAB, "accumulated", {"accumulated": gradients_asked}, seed).is_right
    assert sum(0 in counts for counts in calls) == 3
    assert all(counts[0] and counts[-1] for counts in calls)


def test_the_lab_needs_no_tensorflow() -> None:
    assert not LAB.tensorflow
