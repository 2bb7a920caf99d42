"""Lab 03: other right answers, and NumPy's gradient."""

import numpy as np
from lab_03.judge import LAB, NUMBERS

from distlab.labs import reference_mlp
from tests.distlab.labs.known_wrong import right_answers
from tests.distlab.labs.slopes import assert_are_slopes


def by_counting(images, per_replica, replicas, epochs):
    batches, left = [], images
    while left > 0:
        batches.append(min(left, per_replica * replicas))
        left -= batches[-1]
    values = (per_replica * replicas, len(batches), sum(1 for _ in range(epochs) for _ in batches), batches[-1])
    return dict(zip(NUMBERS, values, strict=True))


def by_selection(run):
    replicas, per_replica, after = run["replicas"], run["images_per_replica"], np.array(run["after"])
    first = sum(run["parts"][0])
    questions = {
        "scope": any(count != replicas for count in run["copies"].values()),
        "batch": first > per_replica * replicas or (len(run["parts"]) > 1 and first < per_replica * replicas),
        "rest": sum(sum(step) for step in run["parts"]) != run["images"],
        "apart": not all(np.allclose(copy, after[0], atol=1e-5) for copy in after),
        "step": not np.allclose(after, run["serial"], atol=1e-5),
    }
    return np.select(list(questions.values()), list(questions), "none")


test_another_right_answer_gets_full_marks = right_answers(LAB, ("numbers", by_counting), ("diagnose", by_selection))


def test_the_gradient_is_the_slope_of_the_loss():
    generator = np.random.default_rng(3)
    weights = [array.astype(np.float64) for array in reference_mlp.drawn_weights(generator)]
    images, labels = reference_mlp.drawn_batch(generator, 5)

    def loss(moved):
        return 5 * reference_mlp.cross_entropy(reference_mlp.softmax(reference_mlp.logits(moved, images)), labels)

    assert_are_slopes(reference_mlp.gradient(weights, images, labels), loss, weights)
