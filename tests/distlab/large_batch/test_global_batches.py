"""Which images are in which step: every image once an epoch, the same for any number of ranks."""

import numpy as np
import pytest

from distlab.large_batch import global_batches


@pytest.mark.parametrize(("images", "batch"), [(96, 12), (100, 12), (7, 7), (5, 1)])
def test_an_epoch_has_no_image_twice_and_leaves_out_fewer_than_a_batch(images: int, batch: int) -> None:
    steps = global_batches.steps_per_epoch(images, batch)
    seen = np.concatenate([global_batches.numbers(step, images, batch, 3) for step in range(steps)])
    assert len(set(seen.tolist())) == len(seen) == steps * batch > images - batch
    assert set(seen.tolist()) <= set(range(images))


def test_every_epoch_and_every_seed_has_its_own_order() -> None:
    first = global_batches.numbers(0, 1000, 50, 0).tolist()
    assert first != global_batches.numbers(20, 1000, 50, 0).tolist()
    assert first != global_batches.numbers(0, 1000, 50, 1).tolist()
    assert first == global_batches.numbers(0, 1000, 50, 0).tolist()


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_the_shares_of_all_ranks_are_the_global_batch(size: int) -> None:
    batch = global_batches.numbers(5, 500, 48, 1)
    shares = [global_batches.share(batch, rank, size) for rank in range(size)]
    assert np.array_equal(np.concatenate(shares), batch)
    assert {len(share) for share in shares} == {48 // size}


def test_what_does_not_fit_is_refused_with_the_fix() -> None:
    with pytest.raises(global_batches.BatchDoesNotFit, match="choose 1 to 100"):
        global_batches.numbers(0, 100, 101, 0)
    with pytest.raises(global_batches.BatchDoesNotFit, match="evenly among 5"):
        global_batches.share(np.arange(48), 0, 5)
