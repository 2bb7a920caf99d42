"""The gradient noise scale from the ranks' own gradients: an exercise of lab 10 and its judge."""

import math
from collections.abc import Mapping

import numpy as np
from lab_10.hints import Lab10Hint
from numpy.typing import NDArray

from distlab.labs.answer import Answer
from distlab.labs.number_judge import Expected, Mistakes, NumberJudge
from distlab.labs.verdict import Verdict
from distlab.large_batch import noise_scale as large_batch

Array = NDArray[np.float64]
NUMBERS = ("squared gradient", "variance", "noise scale")
EXAMPLE = (np.array([[[4.0, 1.0, 1.0], [2.0, -1.0, 1.0]], [[0.0, 3.0, 3.0], [2.0, 1.0, 3.0]]]), 8)
"""Two steps, two ranks, three parameters; a batch of 8 on each rank."""


def noise_scale(gradients: Array, batch: int) -> dict[str, float]:
    """|G|², tr Σ and their ratio, by the course's own estimator, from gradients (steps, ranks, parameters)."""
    ranks = gradients.shape[1]
    squares_of_ranks, squares_of_means = _squares(gradients)
    estimate = large_batch.estimate(batch, ranks * batch, squares_of_ranks.ravel().tolist(), squares_of_means.tolist())
    return dict(zip(NUMBERS, (estimate.squared_gradient, estimate.variance, estimate.batch), strict=True))


def _squares(gradients: Array) -> tuple[Array, Array]:
    """|g|² of every rank and step, (steps, ranks), and of the mean over the ranks, (steps,)."""
    return np.sum(gradients**2, axis=2), np.sum(gradients.mean(axis=1) ** 2, axis=1)


def _drawn(generator: np.random.Generator) -> tuple[Array, int, float]:
    """Gradients, the batch of a rank, and the true noise scale; the true gradient turns from step to step."""
    steps, ranks, parameters = (int(generator.integers(*range_)) for range_ in ((5, 8), (3, 7), (40, 80)))
    batch = int(generator.integers(10, 40))
    true = generator.normal(size=(steps, 1, parameters))
    true *= generator.uniform(1, 2) / np.linalg.norm(true, axis=2, keepdims=True)
    squared = float(np.sum(true[0] ** 2))
    scale = float(generator.uniform(0.4, 0.8)) * ranks * batch
    noise = generator.normal(size=(steps, ranks, parameters)) * np.sqrt(scale * squared / parameters / batch)
    return true + noise, batch, scale


def judge_noise_scale(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A third of the points for each number."""
    judge = NumberJudge("noise_scale", NUMBERS)
    gradients, batch, scale = _drawn(generator)
    more_gradients, second_batch, _ = _drawn(generator)
    noise_alone = more_gradients - more_gradients.mean(axis=1, keepdims=True)
    small = 0.05  # estimates just above and just below 0
    cases = [EXAMPLE, (gradients, batch), (small * more_gradients, second_batch), (small * noise_alone, second_batch)]
    for case in cases:
        if problem := judge.compare(answer.call("noise_scale", *case), _expected(*case), _described(*case)):
            return problem
    estimate = noise_scale(gradients, batch)["noise scale"]
    return judge.verdict(f"For gradients made with a noise scale of {scale:.0f} images the estimate is {estimate:.0f}.")


def _expected(gradients: Array, batch: int) -> dict[str, Expected]:
    numbers, mistakes = noise_scale(gradients, batch), _mistakes(gradients, batch)
    return {
        name: Expected(value, mistakes[name], Lab10Hint.NOISE_SCALE_OTHERWISE)
        if math.isfinite(value)
        else Expected(value, [], Lab10Hint.NO_ESTIMATE)
        for name, value in numbers.items()
    }


def _described(gradients: Array, batch: int) -> str:
    steps, ranks, parameters = gradients.shape
    return f"{steps} steps, {ranks} ranks, {parameters} parameters, batches of {batch}"


def _mistakes(gradients: Array, batch: int) -> Mapping[str, Mistakes]:
    steps, ranks, parameters = gradients.shape
    squared, variance, scale = noise_scale(gradients, batch).values()
    small, big = (float(squares.mean()) for squares in _squares(gradients))
    of_sums = (ranks * ranks**2 * big - small) / (ranks - 1)
    early = noise_scale(gradients.mean(axis=0, keepdims=True), batch)
    ratios = [noise_scale(gradients[step : step + 1], batch)["noise scale"] for step in range(steps)]
    return {
        "squared gradient": [
            (0.0 if squared < 0 else None, Lab10Hint.ESTIMATE_CUT),
            (big, Lab10Hint.GRADIENT_IS_NOISY),
            (small, Lab10Hint.SQUARE_OF_ONE_RANK),
            (of_sums, Lab10Hint.GRADIENTS_SUMMED),
            (early["squared gradient"], Lab10Hint.STEPS_AVERAGED_FIRST),
            (math.sqrt(max(squared, 0)), Lab10Hint.NORM_NOT_SQUARED),
            (squared / parameters, Lab10Hint.SQUARE_AVERAGED),
            ((ranks * small - big) / (ranks - 1), Lab10Hint.SQUARES_EXCHANGED),
        ],
        "variance": [
            (small - big, Lab10Hint.DENOMINATOR_MISSING),
            (variance / batch, Lab10Hint.VARIANCE_OF_A_RANK),
            (variance * ranks, Lab10Hint.GLOBAL_BATCH_FOR_RANK),
            (variance * (ranks - 1) / ranks, Lab10Hint.GRADIENT_IS_NOISY),
            (batch * small, Lab10Hint.SQUARE_IS_NO_NOISE),
            (variance / parameters, Lab10Hint.TRACE_AVERAGED),
            (-variance, Lab10Hint.NEGATIVE_VARIANCE),
            (early["variance"], Lab10Hint.STEPS_AVERAGED_FIRST),
            ((small - ranks**2 * big) / (1 / batch - 1 / (ranks * batch)), Lab10Hint.GRADIENTS_SUMMED),
        ],
        "noise scale": [
            (1 / scale, Lab10Hint.SCALE_INVERTED),
            (float(np.mean(ratios)), Lab10Hint.MEAN_OF_RATIOS),
            (float(np.median(ratios)), Lab10Hint.MEDIAN_OF_RATIOS),
            (variance / big, Lab10Hint.GRADIENT_IS_NOISY),
            (scale / batch, Lab10Hint.IN_RANK_BATCHES),
            (scale / (ranks * batch), Lab10Hint.IN_GLOBAL_BATCHES),
            (scale * ranks, Lab10Hint.GLOBAL_BATCH_FOR_RANK),
            (early["noise scale"], Lab10Hint.STEPS_AVERAGED_FIRST),
            (math.sqrt(scale), Lab10Hint.ROOT_OF_SCALE),
        ],
    }
