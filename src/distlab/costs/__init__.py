"""What communication costs: the α–β–γ formulas, fitting α and β, bandwidths, and predicting how training scales.

    all_reduce("ring", ranks=[2, 4, 8], array_bytes=100e6).seconds(latency=5e-6, seconds_per_byte=1e-9)
    fit(sizes, seconds, lambda n: all_reduce("ring", 4, n)).latency
    bus_bandwidth("all_reduce", ranks, array_bytes, seconds)
    predict("resnet50", "bigbasin-ethernet50", ranks=[8, 256], baseline_ranks=8).efficiency
    predict_split("gpt-146b", "selene", 1536, Split(tensor=8, pipeline=8)).flops_per_device

| module | what it holds |
|---|---|
| `cost`, `collectives`, `all_reduces` | the formulas: steps, bytes on the critical path, bytes sent |
| `two_levels` | the same for all-reduces on hosts with several ranks |
| `fitting`, `bandwidth` | from measured times to α, β, γ and to algorithm and bus bandwidth |
| `amdahl` | the fixed part of measured times |
| `hardware`, `models`, `architectures` | machines and networks with their sources |
| `assumptions`, `overlap`, `prediction` | step time and scaling efficiency |
| `published`, `report` | published results beside the predictions, and where the model is off |
| `transformers`, `model_parallel` | step time and memory of transformers, tensor × pipeline × data, ZeRO |
| `published_splits`, `split_report`, `split_table` | the same beside published figures, and as tables |
| `command` | `distlab predict` |
"""

from distlab.costs.formulas.all_reduces import ALL_REDUCE, all_reduce, bandwidth_needed
from distlab.costs.formulas.amdahl import Amdahl, fit_amdahl, serial_share
from distlab.costs.formulas.bandwidth import BUS_FACTOR, algorithm_bandwidth, bus_bandwidth
from distlab.costs.formulas.collectives import (
    all_gather_ring,
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
from distlab.costs.formulas.fitting import Fit, fit
from distlab.costs.formulas.hierarchical import ALGORITHMS
from distlab.costs.prediction.assumptions import Assumptions
from distlab.costs.prediction.data_parallel import Prediction, predict
from distlab.costs.prediction.hardware import HARDWARE, Hardware
from distlab.costs.prediction.model_parallel import Split, SplitPrediction, predict_split
from distlab.costs.prediction.networks import MODELS, Model
from distlab.costs.prediction.overlap import OVERLAPS
from distlab.costs.prediction.transformers import TRANSFORMERS, Transformer

__all__ = [
    "ALGORITHMS",
    "ALL_REDUCE",
    "BUS_FACTOR",
    "HARDWARE",
    "MODELS",
    "OVERLAPS",
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
    "bandwidth_needed",
    "barrier",
    "broadcast_long",
    "broadcast_tree",
    "bus_bandwidth",
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
