"""ZeRO as a rank program: weights of one device, bytes held and sent as by the formulas, and the published figures."""

import numpy as np
import pytest

from distlab.model_parallel import layered_network
from distlab.model_parallel.sharded_optimizers import (
    Adam,
    BytesPerParameter,
    bytes_sent,
    model_state_bytes,
    train,
    train_serially,
    whole_layers,
)
from distlab.simulate import Run, World

# Every layer has a multiple of 8 parameters, so that up to eight ranks get equal shards of those powers of two.
SIZES = (7, 16, 8, 8)
LAYERS = layered_network.random_layers(SIZES, seed=1)
PARAMETERS = sum(layer.size for layer in LAYERS)
NUMBERS = np.random.default_rng(0)
BATCHES = [(NUMBERS.normal(size=(24, SIZES[0])), NUMBERS.integers(0, SIZES[-1], 24)) for _ in range(4)]
LEARNING_RATE = 0.01
STAGES = range(4)


def trained(ranks: int, stage: int, layers: list[np.ndarray] = LAYERS) -> Run:
    batches = [(inputs.astype(layers[0].dtype), labels) for inputs, labels in BATCHES]
    return World(ranks).run(lambda rank: train(rank, layers, batches, stage, LEARNING_RATE))


def weights(run: Run, stage: int) -> list[np.ndarray]:
    return whole_layers(run.results, [layer.shape for layer in LAYERS], stage)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("ranks", [1, 3, 8])
def test_every_stage_trains_to_the_weights_of_one_device(ranks: int, stage: int) -> None:
    run = trained(ranks, stage)
    serial = train_serially(LAYERS, BATCHES, LEARNING_RATE)
    for trained_layer, serial_layer, start in zip(weights(run, stage), serial, LAYERS, strict=True):
        np.testing.assert_allclose(trained_layer, serial_layer, rtol=0, atol=1e-13)
        assert np.abs(serial_layer - start).max() > 0.01
    if stage < 3:
        for result in run.results[1:]:
            for layer, first_layer in zip(result.parameters, run.results[0].parameters, strict=True):
                np.testing.assert_array_equal(layer, first_layer)
    if ranks != 3:  # where every rank gets equal shards
        np.testing.assert_allclose(run.bytes_sent_by_rank, len(BATCHES) * bytes_sent(8 * PARAMETERS, ranks, stage))


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("ranks", [1, 8])
@pytest.mark.parametrize(
    ("dtype", "each"), [(np.float32, BytesPerParameter(4, 4, 8)), (np.float64, BytesPerParameter(8, 8, 16))]
)
def test_bytes_held_are_those_of_the_formula(dtype: type, each: BytesPerParameter, ranks: int, stage: int) -> None:
    run = trained(ranks, stage, [layer.astype(dtype) for layer in LAYERS])
    for result in run.results:
        assert sum(result.bytes_held) == model_state_bytes(PARAMETERS, ranks, stage, each)
    sharded_from = {"optimizer": 1, "gradients": 2, "parameters": 3}
    shares = {name: ranks if stage >= first else 1 for name, first in sharded_from.items()}
    assert run.results[0].bytes_held._asdict() == {
        name: getattr(each, name) * PARAMETERS / share for name, share in shares.items()
    }


def test_shards_that_do_not_divide_add_up_to_the_whole() -> None:
    states = [result.bytes_held for result in trained(3, 3).results]
    for name, size in (("parameters", 8), ("gradients", 8), ("optimizer", 16)):
        assert sum(getattr(each, name) for each in states) == size * PARAMETERS


def test_stage_3_gathers_one_layer_at_a_time() -> None:
    largest = max(layer.nbytes for layer in LAYERS)
    assert [result.gathered_bytes for result in trained(4, 3).results] == [largest] * 4
    assert trained(4, 2).results[0].gathered_bytes == 0


@pytest.mark.slow
def test_adam_equals_keras() -> None:
    import tensorflow as tf  # here, since it takes seconds to start

    variable = tf.Variable([0.5, -1.0, 2.0])
    optimizer = tf.keras.optimizers.Adam(0.01, epsilon=1e-8)
    values = variable.numpy()
    state = Adam(values, 0.01)
    for step in range(1, 6):
        gradient = np.array([0.1 * step, -0.3, 1.0 / step], np.float32)
        optimizer.apply_gradients([(tf.constant(gradient), variable)])
        state.update(values, gradient)
    np.testing.assert_allclose(values, variable.numpy(), atol=2e-6)


def test_stage_3_sends_half_as_much_again() -> None:
    assert bytes_sent(1e9, 64, 3) == 1.5 * bytes_sent(1e9, 64, 0)
    assert bytes_sent(1e9, 64, 1) == bytes_sent(1e9, 64, 2) == bytes_sent(1e9, 64, 0)
    with pytest.raises(ValueError, match="stages 1, 2 and 3"):
        model_state_bytes(1e9, 4, 4)
