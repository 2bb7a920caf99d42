"""Workers that are started by hand, one in each terminal, may be given different options: said before they train.

Otherwise the strategy would wait for a step that one worker never takes, or train on batches of two sizes.
"""

import zlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import tensorflow as tf


def check_same_options(strategy: "tf.distribute.Strategy", **options: object) -> None:
    """Compare these options of all workers; every worker of the strategy must call it with the same names.

    Each sends one number for each option, in one all-reduce. Where options differ every worker ends with one sentence.
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
