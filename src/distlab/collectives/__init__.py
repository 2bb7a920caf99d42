"""The collectives of the course, each a program that every rank runs: on the virtual cluster or over MPI.

    run = World(size=4).run(ring_all_reduce, inputs)

Rows are cut into chunks as by `numpy.array_split`. In the costs p is the number of ranks, n the bytes of the array on
one rank, α the seconds per message, β the seconds per byte sent and γ the seconds per byte reduced.
Imports only `simulate`. Begin with `ring`.
"""

from distlab.collectives.all_reduce import (
    halving_doubling_all_reduce,
    hierarchical_all_reduce,
    naive_all_reduce,
    recursive_doubling_all_reduce,
    tree_all_reduce,
)
from distlab.collectives.parameter_server import Training, Update, parameter_server
from distlab.collectives.partition import GroupRank, chunks_of
from distlab.collectives.ring import all_gather, all_to_all, reduce_scatter, ring_all_reduce
from distlab.collectives.tree import broadcast, gather, reduce, scatter

# Those that need nothing but the array; `hierarchical_all_reduce` must also know the ranks per host.
ALL_REDUCE = {
    "naive": naive_all_reduce,
    "tree": tree_all_reduce,
    "ring": ring_all_reduce,
    "recursive_doubling": recursive_doubling_all_reduce,
    "halving_doubling": halving_doubling_all_reduce,
}

__all__ = [
    "ALL_REDUCE",
    "GroupRank",
    "Training",
    "Update",
    "all_gather",
    "all_to_all",
    "broadcast",
    "chunks_of",
    "gather",
    "halving_doubling_all_reduce",
    "hierarchical_all_reduce",
    "naive_all_reduce",
    "parameter_server",
    "recursive_doubling_all_reduce",
    "reduce",
    "reduce_scatter",
    "ring_all_reduce",
    "scatter",
    "tree_all_reduce",
]
