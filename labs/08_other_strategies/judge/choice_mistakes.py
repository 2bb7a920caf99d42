"""The rates that usual mistakes give for a measured cluster of lab 08, and their hints."""

import numpy as np
from lab_08.clusters import ASYNCHRONOUS, BACKUP, SYNCHRONOUS, MeasuredCluster, rates
from lab_08.hints import Lab08Hint
from numpy.typing import NDArray

from distlab.labs.number_judge import Mistakes


def mistakes(cluster: MeasuredCluster) -> dict[str, Mistakes]:
    """By way, what each mistake gives."""
    return {SYNCHRONOUS: _synchronous(cluster), BACKUP: _backup(cluster), ASYNCHRONOUS: _asynchronous(cluster)}


def _synchronous(cluster: MeasuredCluster) -> Mistakes:
    seconds, all_reduce, workers = cluster.seconds, cluster.all_reduce, cluster.workers
    kept, ends = workers - cluster.backups, seconds.max(axis=1)
    last = float(ends.mean())
    by_column = seconds.max(axis=0)
    return [
        (1 / (last + all_reduce), Lab08Hint.STEPS_NOT_GRADIENTS),
        (workers / last, Lab08Hint.ALL_REDUCE_FORGOTTEN),
        (seconds.size / (float(ends.sum()) + all_reduce), Lab08Hint.ALL_REDUCE_ONCE),
        (float(np.mean(workers / (ends + all_reduce))), Lab08Hint.MEAN_OF_STEPS),
        (workers / (float(seconds.mean(axis=0).max()) + all_reduce), Lab08Hint.SLOWEST_ON_AVERAGE),
        (workers / (float(seconds.max()) + all_reduce), Lab08Hint.SLOWEST_ON_AVERAGE),
        (workers / (float(seconds.mean()) + all_reduce), Lab08Hint.MEAN_WORKER),
        (kept / (last + all_reduce), Lab08Hint.SYNCHRONOUS_DROPS),
        (kept / (float(seconds[:, :kept].max(axis=1).mean()) + all_reduce), Lab08Hint.SYNCHRONOUS_DROPS),
        (rates(cluster)[BACKUP], Lab08Hint.SYNCHRONOUS_DROPS),
        (workers / (float(by_column.mean()) + all_reduce), Lab08Hint.ALONG_THE_STEPS),
        (seconds.size / float(np.sum(by_column + all_reduce)), Lab08Hint.ALONG_THE_STEPS),
    ]


def _backup(cluster: MeasuredCluster) -> Mistakes:
    seconds, all_reduce, workers, backups = cluster.seconds, cluster.all_reduce, cluster.workers, cluster.backups
    kept, ends = workers - backups, np.sort(seconds, axis=1)
    last, last_kept = float(ends[:, -1].mean()), float(ends[:, kept - 1].mean())
    columns = np.sort(seconds, axis=0)

    def rate(step: NDArray[np.float64]) -> float:
        return kept / (float(step.mean()) + all_reduce)

    in_columns = len(seconds) - backups  # the gradients of a step for whoever takes the rows for workers
    exchanged = (
        in_columns * workers / float(np.sum(ends[:, in_columns - 1] + all_reduce)) if in_columns <= workers else None
    )
    return [
        (exchanged, Lab08Hint.SHAPE_EXCHANGED),
        (1 / (last_kept + all_reduce), Lab08Hint.STEPS_NOT_GRADIENTS),
        (workers / (last_kept + all_reduce), Lab08Hint.DROPPED_COUNTED),
        (kept / last_kept, Lab08Hint.ALL_REDUCE_FORGOTTEN),
        (kept * len(seconds) / (float(ends[:, kept - 1].sum()) + all_reduce), Lab08Hint.ALL_REDUCE_ONCE),
        (float(np.mean(kept / (ends[:, kept - 1] + all_reduce))), Lab08Hint.MEAN_OF_STEPS),
        (kept / (last + all_reduce), Lab08Hint.NO_BACKUP),
        (rates(cluster)[SYNCHRONOUS], Lab08Hint.NO_BACKUP),
        (backups / (float(ends[:, backups - 1].mean()) + all_reduce), Lab08Hint.BACKUPS_KEPT),
        (rate(seconds[:, :kept].max(axis=1)), Lab08Hint.FIRST_WORKERS),
        (rate(ends[:, :kept]), Lab08Hint.MEAN_WORKER),
        (rate(ends[:, kept - 2]), Lab08Hint.ONE_TOO_EARLY),
        (rate(np.diff(np.sort(seconds.cumsum(axis=0), axis=1)[:, kept - 1], prepend=0)), Lab08Hint.LATE_GOES_ON),
        (rate(columns[:, :kept].max(axis=1)), Lab08Hint.ALONG_THE_STEPS),
        (rate(columns[:, kept - 1]), Lab08Hint.ALONG_THE_STEPS),
    ]


def _asynchronous(cluster: MeasuredCluster) -> Mistakes:
    seconds, server, workers = cluster.seconds, cluster.server, cluster.workers
    means = seconds.mean(axis=0)
    sent = float(np.sum(1 / means))
    return [
        (sent, Lab08Hint.SERVER_FORGOTTEN),
        (float(np.sum(1 / (means + server))), Lab08Hint.SERVER_ADDED),
        (1 / (1 / sent + server), Lab08Hint.SERVER_ADDED),
        (1 / server, Lab08Hint.SERVER_ALONE),
        (float(np.sum(workers / seconds.sum(axis=0))), Lab08Hint.SHAPE_EXCHANGED),
        (1 / (server * workers), Lab08Hint.SERVER_PER_WORKER),
        (float(np.sum(1 / (means + cluster.all_reduce))), Lab08Hint.NO_ALL_REDUCE_HERE),
        (float(np.sum(1 / np.sort(seconds, axis=1).mean(axis=0))), Lab08Hint.SORTED_IN_PLACE),
        (workers / float(seconds.mean()), Lab08Hint.MEAN_OF_ALL),
        (float(np.sum((1 / seconds).mean(axis=0))), Lab08Hint.MEAN_OF_ALL),
        (workers / float(means.max()), Lab08Hint.WAITS_IN_ASYNCHRONOUS),
        (workers / float(seconds.max(axis=1).mean()), Lab08Hint.WAITS_IN_ASYNCHRONOUS),
    ]
