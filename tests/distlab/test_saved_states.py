"""A damaged or foreign state is named and an older one takes its place; without any the program ends in a sentence."""

import re
from pathlib import Path

import pytest

# isort: split
import tensorflow as tf

from distlab import saved_states

pytestmark = [pytest.mark.slow]


def saved(folder: Path, *values: float) -> tf.train.Checkpoint:
    """A checkpoint object, saved in the folder with each of these values in turn."""
    state = tf.train.Checkpoint(value=tf.Variable(tf.zeros(1000)))
    for value in values:
        state.value.assign(tf.fill([1000], value))
        state.save(str(folder / "checkpoint"))
    return state


def test_the_newest_whole_checkpoint_is_taken_and_newer_ones_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = saved(tmp_path, *map(float, range(1, 12)))
    newest = tf.train.latest_checkpoint(tmp_path)
    assert saved_states.checkpoint(newest, tmp_path, state) == newest == str(tmp_path / "checkpoint-11")
    assert capsys.readouterr().out == ""
    (tmp_path / "checkpoint-11.data-00000-of-00001").write_bytes(b"half")
    (tmp_path / "checkpoint-10.index").write_bytes(b"")
    assert saved_states.checkpoint(newest, tmp_path, state) == str(tmp_path / "checkpoint-9")
    assert float(state.value[0]) == 9
    said = r"checkpoint-11 \(\w+\), checkpoint-10 \(\w+\) cannot be used: going on from checkpoint-9\.\n"
    assert re.fullmatch(said, capsys.readouterr().out)


def test_states_of_another_program_end_the_program_in_a_sentence(tmp_path: Path) -> None:
    saved(tmp_path, 1.0)
    for other in (tf.train.Checkpoint(other=tf.Variable(1.0)), tf.train.Checkpoint(value=tf.Variable(tf.zeros(7)))):
        with pytest.raises(SystemExit, match=r"can be used: checkpoint-1 \(\w+\)\. Choose another folder"):
            saved_states.checkpoint(tf.train.latest_checkpoint(tmp_path), tmp_path, other)
    with pytest.raises(SystemExit, match=r"There is nothing saved in .*empty to go on from"):
        saved_states.checkpoint(None, tmp_path / "empty", tf.train.Checkpoint())


def test_the_newest_whole_weights_of_keras_are_loaded(tmp_path: Path) -> None:
    model = tf.keras.Sequential([tf.keras.layers.Input((3,)), tf.keras.layers.Dense(2)])
    model.set_weights([tf.fill([3, 2], 1.0), tf.zeros(2)])
    model.save_weights(tmp_path / "0001.weights.h5")
    model.set_weights([tf.zeros([3, 2]), tf.zeros(2)])
    (damaged := tmp_path / "0002.weights.h5").touch()
    assert saved_states.weights(damaged, tmp_path, model) == tmp_path / "0001.weights.h5"
    assert float(model.get_weights()[0][0, 0]) == 1


def test_a_data_set_that_a_training_cannot_go_on_with_is_refused(tmp_path: Path) -> None:
    saved_states.of_dataset(tmp_path, "digits", resume=True)
    saved_states.of_dataset(tmp_path, "mnist", resume=True)  # nothing is saved there
    saved(tmp_path, 1.0)
    saved_states.of_dataset(tmp_path, "mnist", resume=True)
    with pytest.raises(SystemExit, match=r"was trained on mnist, not on digits: go on with --dataset mnist, or"):
        saved_states.of_dataset(tmp_path, "digits", resume=True)
    assert (tmp_path / saved_states.NOTE).read_text() == "mnist\n"


def test_of_saved_states_that_with_the_highest_number_is_the_newest(tmp_path: Path) -> None:
    assert saved_states.newest(tmp_path) is None
    for name, newest in (("1.weights.h5", "1.weights.h5"), ("ckpt-9.index", "ckpt-9"), ("ckpt-10.index", "ckpt-10")):
        (tmp_path / name).touch()
        assert saved_states.newest(tmp_path) == newest
