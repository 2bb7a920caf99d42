"""Networks that are split among ranks: layers by pipeline stages, optimizer states by ZeRO's shards.

`layered_network` is the small NumPy network that both split and compare with; `pipelines` and `sharded_optimizers` hold
the rank programs, which run on the virtual cluster and over MPI, and their formulas with sources. It may import
runtime, simulate and collectives. Begin with `pipelines`.
"""

from distlab.model_parallel import layered_network, pipelines, sharded_optimizers

__all__ = ["layered_network", "pipelines", "sharded_optimizers"]
