"""LARS and LAMB against NumPy, written from the papers' algorithms without a look at the optimizers."""

import subprocess
import sys

import numpy as np
import pytest

from distlab.large_batch import LAMB, LARS

# isort: split
import tensorflow as tf

STEPS = 6
SHAPES = [(5, 4), (4,), (3, 3, 2, 4), (4, 3), (3,)]
Arrays = list[np.ndarray]


def problem(seed: int = 0) -> tuple[Arrays, list[Arrays]]:
    """First weights, biases at zero and a layer at zero among them, and the gradients of every step."""
    generator = np.random.default_rng(seed)
    weights = [generator.normal(size=shape) if len(shape) > 1 else np.zeros(shape) for shape in SHAPES]
    weights[3][:] = 0
    gradients = [
        [generator.normal(size=shape) * 10.0**place for place, shape in enumerate(SHAPES)] for _ in range(STEPS)
    ]
    return weights, gradients


def lars_in_numpy(
    weights: Arrays, gradients: list[Arrays], rate: float, momentum: float, trust: float, decay: float
) -> Arrays:
    """You et al., arXiv:1708.03888, algorithm 1; one-dimensional variables by momentum alone."""
    weights, velocities = [layer.copy() for layer in weights], [0 * layer for layer in weights]
    for of_step in gradients:
        for layer, gradient in enumerate(of_step):
            w = weights[layer]
            local = 1.0
            if w.ndim > 1:
                if np.linalg.norm(w) > 0 and np.linalg.norm(gradient) > 0:
                    local = trust * np.linalg.norm(w) / (np.linalg.norm(gradient) + decay * np.linalg.norm(w))
                gradient = gradient + decay * w
            velocities[layer] = momentum * velocities[layer] + rate * local * gradient
            weights[layer] = w - velocities[layer]
    return weights


def lamb_in_numpy(
    weights: Arrays, gradients: list[Arrays], rate: float, beta_1: float, beta_2: float, epsilon: float, decay: float
) -> Arrays:
    """You et al., arXiv:1904.00962, algorithm 2; one-dimensional variables by Adam's step."""
    weights = [layer.copy() for layer in weights]
    m, v = [0 * layer for layer in weights], [0 * layer for layer in weights]
    for t, of_step in enumerate(gradients, 1):
        for layer, gradient in enumerate(of_step):
            m[layer] = beta_1 * m[layer] + (1 - beta_1) * gradient
            v[layer] = beta_2 * v[layer] + (1 - beta_2) * gradient**2
            r = (m[layer] / (1 - beta_1**t)) / (np.sqrt(v[layer] / (1 - beta_2**t)) + epsilon)
            if weights[layer].ndim > 1:
                r = r + decay * weights[layer]
                norms = np.linalg.norm(weights[layer]), np.linalg.norm(r)
                if min(norms) > 0:
                    r = r * norms[0] / norms[1]
            weights[layer] = weights[layer] - rate * r
    return weights


def trained(optimizer: tf.keras.optimizers.Optimizer, as_function: bool = False) -> Arrays:
    """The weights after the problem's steps by a Keras optimizer."""
    weights, gradients = problem()
    variables = [tf.Variable(layer.astype(np.float32)) for layer in weights]
    optimizer.build(variables)

    def step(of_step: list[tf.Tensor]) -> None:
        optimizer.apply_gradients(zip(of_step, variables, strict=True))

    step = tf.function(step) if as_function else step
    for of_step in gradients:
        step([tf.constant(gradient.astype(np.float32)) for gradient in of_step])
    return [variable.numpy() for variable in variables]


def differ(first: Arrays, second: Arrays) -> bool:
    return any(not np.allclose(a, b, rtol=2e-4, atol=1e-6) for a, b in zip(first, second, strict=True))


LARS_NUMBERS = {"momentum": 0.9, "trust": 0.02, "decay": 0.05}
LAMB_NUMBERS = {"beta_1": 0.8, "beta_2": 0.95, "epsilon": 1e-6, "decay": 0.05}


@pytest.mark.parametrize("as_function", [False, True])
@pytest.mark.parametrize("decay", [0.0, 0.05])
def test_lars_is_the_paper_s_algorithm(decay: float, as_function: bool) -> None:
    numbers = LARS_NUMBERS | {"decay": decay}
    assert not differ(trained(LARS(0.3, **numbers), as_function), lars_in_numpy(*problem(), 0.3, **numbers))


@pytest.mark.slow
@pytest.mark.parametrize("as_function", [False, True])
@pytest.mark.parametrize("decay", [0.0, 0.05])
def test_lamb_is_the_paper_s_algorithm(decay: float, as_function: bool) -> None:
    numbers = LAMB_NUMBERS | {"decay": decay}
    assert not differ(trained(LAMB(0.02, **numbers), as_function), lamb_in_numpy(*problem(), 0.02, **numbers))


def test_a_step_of_lars_and_lamb_has_the_size_of_the_weights_whatever_the_gradient() -> None:
    for optimizer_class in (LARS, LAMB):
        steps = []
        for size in (1e-3, 1.0, 1e3):
            weights = tf.Variable(np.full((4, 4), 0.5, np.float32))
            optimizer = optimizer_class(0.1)
            optimizer.build([weights])
            optimizer.apply_gradients([(tf.constant(size, shape=(4, 4)), weights)])
            steps.append(float(tf.norm(weights - 0.5)))
        assert steps == pytest.approx([steps[0]] * 3, rel=0.01) and steps[0] > 0


@pytest.mark.parametrize("optimizer", [LARS(0.3, 0.8, 0.02, 0.1), LAMB(0.3, 0.8, 0.9, 1e-5, 0.1)])
def test_the_configuration_makes_the_same_optimizer_as_horovod_s_wrapper_does(
    optimizer: tf.keras.optimizers.Optimizer,
) -> None:
    again = type(optimizer).from_config(optimizer.get_config())
    assert again.get_config() == optimizer.get_config()
    assert not differ(trained(again), trained(optimizer))


def test_importing_the_package_does_not_import_tensorflow_or_widgets() -> None:
    program = "import sys; from distlab import large_batch; print({'tensorflow', 'ipywidgets'} & set(sys.modules))"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout == "set()\n"
