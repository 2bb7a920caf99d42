"""Workers that have been started: they may have different options, and must be ended while they wait."""

import signal
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import tensorflow as tf


@contextmanager
def interruptible() -> Iterator[None]:
    """Make a strategy in this block: then Ctrl-C ends the process also while TensorFlow waits for other workers.

    TensorFlow waits in C++, where Python cannot raise KeyboardInterrupt, so the system has to end the process. SIGTERM
    is different: TensorFlow takes it for the notice of a preemption, and goes on. After the block it does again what
    it did before; while TensorFlow waits, `kill -INT` ends the process, and `kill` does not.
    """
    if threading.current_thread() is not threading.main_thread():  # as in Ray's workers, which end in another way
        yield
        return
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # not where it is ignored, as in the background of a shell script
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
        signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))


def check_same_options(strategy: "tf.distribute.Strategy", **options: object) -> None:
    """Compare these options of all workers; every worker of the strategy must call it with the same names.

    Workers that are started by hand, one in each terminal, may be given different options. The strategy would wait for
    a step that one of them never takes, or train on batches of two sizes. Each sends one number for each option, in one
    all-reduce. Where options differ every worker ends with one sentence.
    """
    import tensorflow as tf

    own = [float(zlib.crc32(repr(value).encode())) for value in options.values()]

    def row_in_its_place() -> tf.Tensor:
        replica = tf.distribute.get_replica_context()
        place = tf.one_hot(replica.replica_id_in_sync_group, strategy.num_replicas_in_sync, dtype=tf.float64)
        row = tf.constant(own, tf.float64)
        return replica.all_reduce(tf.distribute.ReduceOp.SUM, place[:, tf.newaxis] * row[tf.newaxis, :])

    # As a graph: TensorFlow warns of collectives without one.
    rows_of_all = tf.function(lambda: strategy.run(row_in_its_place), autograph=False)
    rows = np.asarray(strategy.experimental_local_results(rows_of_all())[0])
    different = [name for name, column in zip(options, rows.T, strict=True) if len(set(column)) > 1]
    if different:
        here = " ".join(f"--{name.replace('_', '-')} {options[name]}" for name in different)
        raise SystemExit(
            f"The workers were started with different options, this one with {here}: start all with the same."
        )
