"""Scaling efficiencies that papers, benchmark suites and makers published, with what a prediction of them needs.

A row enters when one program ran with the same batch per GPU on few and on many GPUs, synchronously, the GPUs exchanged
gradients by all-reduces, and hosts and links are known. So these are left out: MLPerf, where the batch per GPU shrinks
as GPUs are added; runs on TPUs without a published small one (Ying et al. 2018); all-reduces of a part of the gradient
(Sun et al. 2019); mixed precision where nobody says in which precision gradients travel; parameter servers. Which rows
enter was settled before the model computed any of the blind ones. Those here are the ones in view and the first blind
test; the second is in `benchmark_tables`.
"""

from distlab.costs.prediction.networks import Measurement
from distlab.costs.published import benchmark_tables
from distlab.costs.published.result import PublishedResult, one_to_many


def _throughputs(cluster: str, ranks: int, network: str, *rows: tuple[str, float, float, str]) -> list[PublishedResult]:
    """Results that were published as images per second on one GPU and on `ranks`, each with its reason."""
    source = f"Horovod README of 2017 until October, {network}, all-reduce on GPU with NCCL"
    return [
        PublishedResult(name, cluster, ranks, all_gpus / (ranks * one_gpu), source, reason=reason)
        for name, one_gpu, all_gpus, reason in rows
    ]


_README = "Horovod README, October 2017: 32 servers with 4 Pascal GPUs, RoCE-capable 25 Gbit/s"
_DOCUMENTATION = "Horovod docs/benchmarks ('512-GPU Benchmark'): 128 servers with 4 Pascal GPUs, RoCE-capable 25 Gbit/s"
_NVIDIA = "NVIDIA DeepLearningExamples, PyTorch ResNet50 v1.5, training performance of March 2021"
_GOYAL = "Goyal et al., arXiv:1706.02677, section 5.5 and figure 8: from 8 to 256 P100, about 90 %"
_GOYAL_LARGEST = (
    "Goyal et al., arXiv:1706.02677, section 5.5 and figure 7: 44 times the batch, 12 % more time per iteration"
)
_AKIBA = "Akiba et al., arXiv:1711.04325: 1024 P100 (second-hand)"
_CHAINERMN = "Akiba et al., arXiv:1710.11351, abstract: 128 GPUs, 90 %"
_MIKAMI = "Mikami et al., arXiv:1811.05233 version 2, table of GPU scaling efficiency: images/s (second-hand)"
_TENSORFLOW = "TensorFlow's performance benchmarks of May 2017, DGX-1 with P100, synthetic data, replicated with NCCL"
_NVIDIA_MXNET = "NVIDIA DeepLearningExamples, MXNet ResNet50 v1.5, training performance of December 2020, FP32"
_DLPERF = "OneFlow's DLPerf report v1.0, October 2020, table 4-2 (FP32)"

_IMAGENET = 1_281_167

_INCEPTION = (
    "published below ResNet-101 on the same servers, though its gradient is half as large; so not the network decided"
)
_EACH_GRADIENT = (
    "TensorFlow all-reduced each gradient by itself, with the NCCL of May 2017; the model grants it the NVLinks and "
    "fusion of later years"
)
_LEADERS = (
    "the model lets each GPU be late by itself, and its speed and hours are rounded; ChainerMN's own figure may be "
    "relative to a run that was already slower"
)
_GRID = (
    "steps of 50 ms leave little to hide behind, and the model grants every host its whole link; between its racks "
    "ABCI has a third of that bandwidth, and thousands of ranks must agree on the order of their gradients"
)


RESULTS: tuple[PublishedResult, ...] = (
    PublishedResult("inception_v3", "horovod-roce25", 512, 0.90, _DOCUMENTATION),
    PublishedResult("resnet101", "horovod-roce25", 512, 0.90, _DOCUMENTATION),
    PublishedResult("vgg16", "horovod-roce25", 512, 0.68, _DOCUMENTATION),
    PublishedResult("resnet50", "bigbasin-ethernet50", 256, 0.90, _GOYAL, baseline_ranks=8),
    PublishedResult("inception_v3", "horovod-roce25", 128, 0.90, _README),
    PublishedResult("resnet101", "horovod-roce25", 128, 0.90, _README),
    PublishedResult("vgg16", "horovod-roce25", 128, 0.79, _README),
    *_throughputs(
        "horovod-roce25",
        16,
        "25 Gbit/s RDMA",
        ("inception_v3", 134.4, 2022.6, ""),
        ("resnet101", 119.4, 1746.2, ""),
        ("vgg16", 130.9, 1787.4, ""),
    ),
    PublishedResult("resnet50", "dgx1-v100", 8, 2855 / (8 * 367), _NVIDIA, blind_test=1),
    PublishedResult("resnet50", "dgx-a100", 8, 7248 / (8 * 938), _NVIDIA, blind_test=1),
    *_throughputs(
        "horovod-tcp25",
        16,
        "25 Gbit/s TCP",
        ("inception_v3", 134.4, 1990.7, ""),
        ("resnet101", 119.4, 1685.1, ""),
        ("vgg16", 130.9, 1308.7, ""),
    ),
    *_throughputs(
        "horovod-tcp40",
        64,
        "40 Gbit/s TCP",
        ("inception_v3", 148.8, 7932.1, _INCEPTION),
        ("resnet101", 136.0, 7741.6, ""),
        ("vgg16", 149.6, 6084.2, ""),
    ),
    PublishedResult("resnet50", "bigbasin-ethernet50", 352, 1 / 1.12, _GOYAL_LARGEST, baseline_ranks=8),
    one_to_many("vgg16", "dgx1-p100", (1, 154), (8, 1081), 64, f"{_TENSORFLOW}, batches of 64", reason=_EACH_GRADIENT),
    one_to_many("vgg16", "dgx1-p100", (1, 144), (8, 820), 32, f"{_TENSORFLOW}, batches of 32", reason=_EACH_GRADIENT),
    one_to_many("resnet50", "dgx2", (1, 417), (16, 6338), 128, _NVIDIA_MXNET),
    one_to_many(
        "resnet50",
        "v100-edr100",
        (1, 362.44),
        (32, 9514.64),
        128,
        f"{_DLPERF}: TensorFlow with Horovod",
        reason=benchmark_tables.UNTUNED_PROGRAM,
        program="NGC TensorFlow 1",
    ),
    one_to_many(
        "resnet50", "v100-edr100", (1, 367.29), (32, 10917.09), 128, f"{_DLPERF}: PyTorch", program="NGC PyTorch"
    ),
    one_to_many(
        "resnet50",
        "v100-edr100",
        (1, 392.24),
        (32, 11331.93),
        128,
        f"{_DLPERF}: MXNet with Horovod",
        program="NGC MXNet",
    ),
    *(
        PublishedResult(
            *("resnet50", "p100-fdr", 1024, efficiency, _AKIBA),
            baseline_ranks=baseline,
            speed=Measurement(
                90 * _IMAGENET / (14.9 * 60) / 1024 / 0.70,
                32,
                "90 epochs in 14.9 minutes on 1024 GPUs at 70 % of one GPU's speed",
                second_hand=True,
            ),
            overlap="none",
            bytes_per_parameter=2,
            blind_test=1,
        )
        for baseline, efficiency in ((8, 0.80), (1, 0.70))
    ),
    PublishedResult(
        *("resnet50", "titanx-fdr", 128, 0.90, _CHAINERMN),
        speed=Measurement(
            100 * _IMAGENET / (4.4 * 3600) / 128 / 0.90,
            32,
            "100 epochs in 4.4 hours on 128 GPUs at 90 % of one GPU's speed",
            second_hand=True,
        ),
        overlap="none",
        blind_test=1,
        reason=_LEADERS,
    ),
    *(
        one_to_many(
            *("resnet50", "abci", (4, 2565), many, 32, _MIKAMI),
            bytes_per_parameter=2,
            second_hand=True,
            reason=_GRID,
        )
        for many in ((1024, 556_522), (2048, 1_091_357), (3456, 1_641_853))
    ),
    *benchmark_tables.RESULTS,
)
"""Every result; the first four are the ones most often quoted.

Horovod's 68 % for VGG-16 is for 128 *servers*, so 512 GPUs; for 128 GPUs the README of October 2017 has 79 %.
"""
