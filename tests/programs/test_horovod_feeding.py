"""The programs of notebook 09 deal every sample to one rank once, and each process sees its own GPU only."""

from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

from distlab import data, launch
from tests.programs.chapter_programs import Chapter

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem())),
]


def fed(chapter_09: Chapter, ranks: int, epoch: int = 0) -> list[np.ndarray]:
    """The numbers of the samples that each rank of train_tape is given in an epoch."""
    tape = chapter_09("train_tape")
    options = tape.parse([])
    of_ranks = []
    for rank in range(ranks):
        with mock.patch.multiple(tape.hvd, size=lambda: ranks, rank=lambda rank=rank: rank):
            batches = tape.batches(options, epoch).take(tape.steps_per_epoch(options))
            of_ranks.append(np.concatenate([numbers for numbers, _, _ in batches.as_numpy_iterator()]))
    return of_ranks


def test_the_shards_cover_every_sample_exactly_once(chapter_09: Chapter) -> None:
    for ranks, epoch in ((1, 0), (2, 0), (2, 1), (4, 0)):
        assert np.array_equal(np.sort(np.concatenate(fed(chapter_09, ranks, epoch))), np.arange(1280))


@pytest.mark.parametrize("name", ["train_keras", "train_keras3"])
def test_keras_is_fed_the_same_partition(chapter_09: Chapter, name: str) -> None:
    keras, images = chapter_09(name), data.load("digits").train.images
    for rank, numbers in enumerate(fed(chapter_09, 2)):
        with mock.patch.multiple(keras.hvd, size=lambda: 2, rank=lambda rank=rank: rank):
            batches = list(keras.batches(keras.parse([]), 0).as_numpy_iterator())
        assert np.array_equal(np.concatenate([batch for batch, _ in batches]), images[numbers])


def test_each_process_sees_the_gpu_of_its_local_rank_only_and_takes_memory_as_it_needs_it(chapter_09: Chapter) -> None:
    module = chapter_09("train_tape")
    for gpus, local_rank, chosen in (("abcd", 2, "c"), ("a", 3, "a"), ("", 1, None)):
        config = mock.Mock()
        config.list_physical_devices.side_effect = lambda kind, gpus=gpus: list(gpus) if kind == "GPU" else ["CPU"]
        ours = mock.patch.object(module.hvd, "local_rank", lambda local_rank=local_rank: local_rank)
        with ours, mock.patch.object(module, "tf", SimpleNamespace(config=config)):
            module.pin_device()
        assert config.set_visible_devices.mock_calls == ([mock.call(chosen, "GPU")] if chosen else [])
        assert config.experimental.set_memory_growth.mock_calls == ([mock.call(chosen, True)] if chosen else [])
