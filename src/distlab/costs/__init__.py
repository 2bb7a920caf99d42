"""What communication costs: the α–β–γ formulas, fits of α and β, bandwidths, and predictions of how training scales.

Begin with `all_reduce("ring", ranks=[2, 4, 8], array_bytes=100e6).seconds(latency=5e-6, seconds_per_byte=1e-9)`,
`fit(sizes, seconds, lambda n: all_reduce("ring", 4, n)).latency`, `predict("resnet50", "bigbasin-ethernet50",
ranks=[8, 256], baseline_ranks=8).efficiency` and `predict_split("gpt-146b", "selene", 1536, Split(8, 8))`.

The folders: `formulas`, `prediction` (machines, networks, step times), `measured` (your own cluster), `published`;
`reports` says them in words, and `printed` is `distlab predict`. The package may import all of the teaching library.
"""

from distlab.costs.formulas.collectives import (
    ALL_REDUCE,
    all_gather_ring,
    all_reduce,
    broadcast_tree,
    message,
    reduce_scatter_ring,
    reduce_tree,
)
from distlab.costs.formulas.cost import Cost
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
from distlab.costs.measured.measurement import ClusterMeasurement, WrongMeasurement
from distlab.costs.measured.measurement import read as read_measurement
from distlab.costs.measured.prediction import MeasuredPrediction, predict_measured
from distlab.costs.prediction.data_parallel import OVERLAPS, Prediction, predict
from distlab.costs.prediction.model_parallel import Split, SplitPrediction, predict_split
from distlab.costs.prediction.presets import HARDWARE, MODELS, TRANSFORMERS, Hardware, Model, Transformer
from distlab.costs.published import efficiencies
from distlab.costs.published.split_figures import THROUGHPUTS
from distlab.costs.reports import of_measured as measured_table
from distlab.costs.reports import residuals as measured_residuals

__all__ = [
    "ALL_REDUCE",
    "BUS_FACTOR",
    "HARDWARE",
    "MODELS",
    "OVERLAPS",
    "THROUGHPUTS",
    "TRANSFORMERS",
    "Amdahl",
    "ClusterMeasurement",
    "Cost",
    "Fit",
    "Hardware",
    "MeasuredPrediction",
    "Model",
    "Prediction",
    "Split",
    "SplitPrediction",
    "Transformer",
    "WrongMeasurement",
    "algorithm_bandwidth",
    "all_gather_ring",
    "all_reduce",
    "broadcast_tree",
    "bus_bandwidth",
    "efficiencies",
    "fit",
    "fit_amdahl",
    "measured_residuals",
    "measured_table",
    "message",
    "predict",
    "predict_measured",
    "predict_split",
    "read_measurement",
    "reduce_scatter_ring",
    "reduce_tree",
    "serial_share",
]
