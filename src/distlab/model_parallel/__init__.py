"""Networks that are split among ranks: layers by pipeline stages, optimizer states by ZeRO's shards.

`pipelines` holds schedules, their formulas with sources, and a rank program that takes their times on the virtual
cluster. `sharded_optimizers` holds ZeRO as a rank program, which runs there and over MPI, and its formulas; it shards
the small NumPy network of `layered_network`. It may import runtime, simulate and collectives. Begin with `pipelines`.
"""

from distlab.model_parallel import layered_network, pipelines, sharded_optimizers

__all__ = ["layered_network", "pipelines", "sharded_optimizers"]
