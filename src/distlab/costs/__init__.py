"""What communication costs: the α–β–γ formulas, fits of α and β, bandwidths, and predictions of how training scales.

Begin with `all_reduce("ring", ranks=[2, 4, 8], array_bytes=100e6).seconds(latency=5e-6, seconds_per_byte=1e-9)`,
`fit(sizes, seconds, lambda n: all_reduce("ring", 4, n)).latency`, `predict("resnet50", "bigbasin-ethernet50",
ranks=[8, 256], baseline_ranks=8).efficiency` and `predict_split("gpt-146b", "selene", 1536, Split(8, 8))`.

The folders: `formulas`, `prediction` (machines, networks, step times), `published` (figures in print next to
predictions); `command` is `distlab predict`. The package may import `runtime`, `simulate` and, for the formulas of
pipelines and sharded optimizers, `model_parallel`.
"""

from distlab.costs.formulas.collectives import (
    ALL_REDUCE,
    all_gather_ring,
    all_reduce,
    all_to_all,
    barrier,
    broadcast_long,
    broadcast_tree,
    gather_linear,
    gather_tree,
    message,
    reduce_scatter_ring,
    reduce_tree,
    scatter_linear,
    scatter_tree,
)
from distlab.costs.formulas.cost import Cost
from distlab.costs.formulas.hierarchical import ALGORITHMS
from distlab.costs.formulas.measurements import (
    BUS_FACTOR,
    Amdahl,
    Fit,
    algorithm_bandwidth,
    bus_bandwidth,
    fit,
    fit_amdahl,
    serial_share,
)
from distlab.costs.prediction.assumptions import Assumptions
from distlab.costs.prediction.data_parallel import OVERLAPS, Prediction, predict
from distlab.costs.prediction.hardware import HARDWARE, Hardware
from distlab.costs.prediction.model_parallel import Split, SplitPrediction, predict_split
from distlab.costs.prediction.networks import MODELS, Model
from distlab.costs.prediction.transformers import TRANSFORMERS, Transformer
from distlab.costs.published import efficiencies
from distlab.costs.published.split_figures import BUBBLES, MEMORY, THROUGHPUTS, compare_figures, figures_table

__all__ = [
    "ALGORITHMS",
    "ALL_REDUCE",
    "BUBBLES",
    "BUS_FACTOR",
    "HARDWARE",
    "MEMORY",
    "MODELS",
    "OVERLAPS",
    "THROUGHPUTS",
    "TRANSFORMERS",
    "Amdahl",
    "Assumptions",
    "Cost",
    "Fit",
    "Hardware",
    "Model",
    "Prediction",
    "Split",
    "SplitPrediction",
    "Transformer",
    "algorithm_bandwidth",
    "all_gather_ring",
    "all_reduce",
    "all_to_all",
    "barrier",
    "broadcast_long",
    "broadcast_tree",
    "bus_bandwidth",
    "compare_figures",
    "efficiencies",
    "figures_table",
    "fit",
    "fit_amdahl",
    "gather_linear",
    "gather_tree",
    "message",
    "predict",
    "predict_split",
    "reduce_scatter_ring",
    "reduce_tree",
    "scatter_linear",
    "scatter_tree",
    "serial_share",
]
