"""A number that cannot be meant is one sentence, not a rate below 0 or an error from deep inside."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from distlab import large_batch


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda large: large.schedules.by_name("gradual", "0.1", 8, 3), "rate is the text '0.1'; .* write 0.1 without"),
        (lambda large: large.schedules.gradual_warm_up(0.01, 0.08, -1), "epochs is -1; give a number of 0 or more"),
        (lambda large: large.schedules.without_warm_up(abs), "scaled_rate is the function abs, which was not called"),
        (lambda large: large.global_batches.numbers(0, 100, 8 / 2, 0), "global_batch is 4.0; .* divide by //"),
        (lambda large: large.global_batches.numbers(0, np.ones(9), 8, 0), "images is of the type ndarray"),
        (lambda large: large.global_batches.share(np.arange(8), 4, 4), "rank is 4, but the ranks are 0 to 3"),
        (lambda large: large.global_batches.share(np.arange(8), 0, 0), "size is 0"),
        (lambda large: large.global_batches.share(8, 0, 4), "batch is 8; give the numbers of the images"),
        (lambda large: large.noise_scale.estimate(8, 64, None, [1]), "a number of small_squares is None"),
        (lambda large: large.noise_scale.fit_tradeoff([8, 16], [100]), "2 batches and 1 numbers of steps"),
        (lambda large: large.noise_scale.fit_tradeoff([8], [100]), "of at least two sizes"),
        (lambda large: large.noise_scale.fit_tradeoff([8, 0], [100, 50]), "a batch is 0; give a number above 0"),
        (lambda large: large.FourNumbers(60_000, 8, 100 / 2, 0.01, 100), "per_replica_batch is 50.0; .* divide by //"),
        (lambda large: large.FourNumbers.of_global_batch(60_000, 0, 800, 0.01, 100), "replicas is 0"),
        (lambda large: large.quiz.feedback([800]), "answers is of the type list; give a dictionary"),
    ],
)
def test_a_number_that_cannot_be_meant_is_one_sentence(call: Callable[[Any], object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        call(large_batch)
