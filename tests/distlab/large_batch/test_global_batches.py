"""Which images are in which step: every image once an epoch, the same for any number of ranks."""

import numpy as np
import pytest

from distlab.large_batch import global_batches


@pytest.mark.parametrize(("images", "batch"), [(100, 12), (7, 7)])
def test_an_epoch_has_no_image_twice_and_leaves_out_fewer_than_a_batch(images: int, batch: int) -> None:
    steps = global_batches.steps_per_epoch(images, batch)
    seen = np.concatenate([global_batches.numbers(step, images, batch, 3) for step in range(steps)])
    assert len(set(seen.tolist())) == len(seen) == steps * batch > images - batch
    assert set(seen.tolist()) <= set(range(images))


def test_every_epoch_and_every_seed_has_its_own_order() -> None:
    first, again, of_next_epoch, of_other_seed = (
        global_batches.numbers(step, 1000, 50, seed).tolist() for step, seed in ((0, 0), (0, 0), (20, 0), (0, 1))
    )
    assert first == again and first not in (of_next_epoch, of_other_seed)


def test_the_shares_of_all_ranks_are_the_global_batch_and_what_does_not_fit_is_refused() -> None:
    batch = global_batches.numbers(5, 500, 48, 1)
    shares = [global_batches.share(batch, rank, 3) for rank in range(3)]
    assert np.array_equal(np.concatenate(shares), batch) and {len(share) for share in shares} == {16}
    with pytest.raises(global_batches.BatchDoesNotFit, match="choose 1 to 100"):
        global_batches.numbers(0, 100, 101, 0)
    with pytest.raises(global_batches.BatchDoesNotFit, match="evenly among 5"):
        global_batches.share(np.arange(48), 0, 5)
