"""A training that begins replaces nothing that is saved."""

from pathlib import Path

import pytest

from distlab import saved_states


def test_of_saved_states_that_with_the_highest_number_is_named_to_who_would_replace_it(tmp_path: Path) -> None:
    saved_states.check_unused(tmp_path)
    for name, newest in (("1.weights.h5", "1.weights.h5"), ("ckpt-9.index", "ckpt-9"), ("ckpt-10.index", "ckpt-10")):
        (tmp_path / name).touch()
        with pytest.raises(SystemExit, match=rf"holds checkpoints, the newest is {newest}: add --resume"):
            saved_states.check_unused(tmp_path)
