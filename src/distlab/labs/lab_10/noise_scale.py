"""The gradient noise scale from the ranks' own gradients: an exercise of lab 10 and its judge."""

from collections.abc import Mapping

import numpy as np

from distlab.labs.answer import Answer
from distlab.labs.comparisons import Mistakes, hint_of, is_near, number
from distlab.labs.verdict import Verdict, not_done, parts, right, wrong
from distlab.large_batch import noise_scale as large_batch

NUMBERS = ("squared gradient", "variance", "noise scale")
EXAMPLE = (np.array([[[4.0, 1.0, 1.0], [2.0, -1.0, 1.0]]]), 8)
"""One step, two ranks, three parameters; a batch of 8 on each rank."""


def noise_scale(gradients: np.ndarray, batch: int) -> dict[str, float]:
    """|G|², tr Σ and their ratio, by the course's own estimator, from gradients (steps, ranks, parameters)."""
    ranks = gradients.shape[1]
    found = large_batch.estimate(batch, ranks * batch, *_squares(gradients))
    return dict(zip(NUMBERS, (found.squared_gradient, found.variance, found.batch), strict=True))


def _squares(gradients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """|g|² of every rank and step, (steps, ranks), and of the mean over the ranks, (steps,)."""
    return np.sum(gradients**2, axis=2), np.sum(gradients.mean(axis=1) ** 2, axis=1)


def _drawn(generator: np.random.Generator) -> tuple[np.ndarray, int, float]:
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
    hints: dict[str, Verdict] = {}
    gradients, batch, scale = _drawn(generator)
    again, other_batch, _ = _drawn(generator)
    cases = [
        EXAMPLE,
        (gradients, batch),
        (again, other_batch),
        (again - again.mean(axis=1, keepdims=True), other_batch),
    ]
    for case in cases:
        given = answer.call("noise_scale", *case)
        if not isinstance(given, dict) or not set(NUMBERS) <= set(given):
            return wrong(f"`noise_scale` gives a dictionary with the names {', '.join(NUMBERS)}.")
        for name, true in noise_scale(*case).items():
            found = number(given[name])
            if name in hints or is_near(found, true):
                continue
            if given[name] is None or given[name] is ...:
                hints[name] = not_done("`noise_scale` gives None")
            elif found is None:
                hints[name] = wrong("a number is wanted.")
            elif np.isinf(true):
                hints[name] = wrong(
                    f"{found:.4g}, though the estimate of |G|² is not above 0: the noise hides the gradient. "
                    "How large a batch would be needed?"
                )
            else:
                hint = hint_of(found, _mistaken(*case)[name]) or "not right. Try the example by hand."
                hints[name] = wrong(f"{found:.4g} for {_described(*case)}: {hint}")
    found = noise_scale(gradients, batch)["noise scale"]
    praise = right(f"For gradients made with a noise scale of {scale:.0f} images the estimate is {found:.0f}.")
    verdict = parts({name: hints.get(name, right()) for name in NUMBERS})
    return praise if verdict.is_right else verdict


def _described(gradients: np.ndarray, batch: int) -> str:
    steps, ranks, parameters = gradients.shape
    return f"{steps} steps, {ranks} ranks, {parameters} parameters, batches of {batch}"


def _mistaken(gradients: np.ndarray, batch: int) -> Mapping[str, Mistakes]:
    steps, ranks, parameters = gradients.shape
    true = noise_scale(gradients, batch)
    squared, variance, scale = true.values()
    small, big = (one.mean() for one in _squares(gradients))
    of_sums = (ranks * ranks**2 * big - small) / (ranks - 1)
    early = noise_scale(gradients.mean(axis=0, keepdims=True), batch)
    each = [noise_scale(gradients[step : step + 1], batch)["noise scale"] for step in range(steps)]
    step_first = "the gradients of all steps are averaged first, but the true gradient changes from step to step."
    biased = "the mean over the ranks is taken for the true gradient, but it is noisy itself."
    summed = "the ranks' gradients are added up, and the large batch's gradient is their mean."
    return {
        "squared gradient": [
            (big, biased),
            (small, "that is what one rank has, noise and all."),
            (of_sums, summed),
            (early["squared gradient"], step_first),
            (np.sqrt(max(squared, 0)), "a squared norm is asked for, not a norm."),
            (squared / parameters, "a squared norm is a sum over the parameters, not a mean."),
            ((ranks * small - big) / (ranks - 1), "the two squares have changed places: which is of the larger batch?"),
        ],
        "variance": [
            (variance / batch, "that is the variance of a rank's gradient. A single image's differs by its batch."),
            (variance * ranks, "the global batch is taken for that of a rank."),
            (variance * (ranks - 1) / ranks, biased),
            (batch * small, "the square of the gradient itself is counted as noise."),
            (variance / parameters, "a trace is a sum over the parameters, not a mean."),
            (-variance, "a variance is not negative: which of the two squares is larger?"),
            (early["variance"], step_first),
            ((small - ranks**2 * big) / (1 / batch - 1 / (ranks * batch)), summed),
        ],
        "noise scale": [
            (1 / scale, "turned round: noise by gradient."),
            (float(np.mean(each)), "a mean of the steps' ratios: one small denominator decides. Average first."),
            (float(np.median(each)), "a median of the steps' ratios; the ratio of the averages is asked for."),
            (variance / big, biased),
            (scale / batch, "in batches of a rank; images are asked for."),
            (scale / (ranks * batch), "in global batches; images are asked for."),
            (scale * ranks, "the global batch is taken for that of a rank."),
            (early["noise scale"], step_first),
            (np.sqrt(scale), "without a root: both numbers are squares."),
        ],
    }
