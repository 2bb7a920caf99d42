"""The second blind test: scaling tables of three benchmark collections, chosen by a rule and not by their outcome.

The rule was written before the model computed any of these rows. The tables are those of

- NVIDIA/DeepLearningExamples: the README of every image network that the model has, for every framework;
- DLPerf's report v1.0 of October 2020: every framework, on 8, 16 and 32 GPUs, at the largest batch;
- TensorFlow's performance page of May 2017.

A table enters when it has FP32 or TF32 speeds of one program on 1 GPU and on more, with the same batch per GPU,
synchronous, gradients exchanged by all-reduces, on a machine whose links are on data sheets. All rows of such a table
enter, but for those that were already in the first blind test. Of a README with several versions the one counts that
was read. A row is described as `PublishedResult` asks; the speed of one GPU is the table's own.

The assumptions were fixed before either test, but this is the weaker one: rows of one table differ little, most are of
one host, where little can be lost, and the first test had taken single rows from some of these tables.

By that rule these are left out. TensorFlow's page: Inception V3 and ResNet-50 on DGX-1 and all but one table on K80 use
parameter servers; ResNet-50 on p2.8xlarge was replicated "without NCCL", and how gradients were then added is not
said; ResNet-152 and AlexNet are not networks of the model. NVIDIA: mixed precision; ResNeXt, SE-ResNeXt and
EfficientNet, which is all that TensorFlow 2 has. DLPerf: mixed precision; its English page of August 2020, an earlier
version of the report.
"""

from distlab.costs.published.result import PublishedResult, one_to_many

_NVIDIA = "NVIDIA DeepLearningExamples, README of ResNet50 v1.5"
_PYTORCH = f"{_NVIDIA} for PyTorch, container of March 2021, V100 of 32 GB, FP32; the batch by its configs.yml"
_MXNET = f"{_NVIDIA} for MXNet, container of December 2020"
_TENSORFLOW_1 = f"{_NVIDIA} for TensorFlow 1, container of June 2020, with XLA"
_PADDLE = f"{_NVIDIA} for PaddlePaddle, A100 of 80 GB, TF32; the batch is its default"
_DLPERF = "OneFlow's DLPerf report v1.0, October 2020, table 4-2 (FP32)"
_BENCHMARKS = "TensorFlow's performance benchmarks of May 2017, DGX-1 with P100, replicated with NCCL"

UNTUNED_PROGRAM = (
    "PyTorch and MXNet in NVIDIA's containers lose far less on the same machines, and this program loses 6 % already "
    "inside one host; the model knows links and GPUs, but not how a framework reads images and starts its operations"
)
_WITHOUT_DALI = (
    "MXNet in NVIDIA's container, which reads images with DALI, loses 4 % inside a host of the same machines; this "
    "program has no DALI and keeps its pace up to 4 GPUs of a host, not on 8; the model leaves out reading images"
)
_PADDLE_READS = (
    "DLPerf blames the poor scaling of the same program in half precision on reading images without DALI, which the "
    "model leaves out; between hosts it found PaddlePaddle poor even with DALI, without giving a cause"
)
_REAL_DATA = (
    "images are read while training, which the model leaves out; with synthetic data the same program loses less, and "
    "on 8 GPUs, where each gradient is all-reduced by itself with the NCCL of May 2017, it loses much even so"
)


def _table(
    network: str,
    machine: str,
    batch: int,
    program: str,
    source: str,
    images_per_second: dict[int, float],
    reasons: dict[int, str] | None = None,
) -> tuple[PublishedResult, ...]:
    """A row for each number of GPUs above 1; speeds are of all GPUs together. reasons: by GPUs."""
    return tuple(
        one_to_many(
            *(network, machine, (1, images_per_second[1]), (gpus, speed), batch, source),
            reason=(reasons or {}).get(gpus, ""),
            program=program,
            blind_test=2,
        )
        for gpus, speed in images_per_second.items()
        if gpus > 1
    )


def _dlperf(
    program: str, images_per_second: dict[int, float], reasons: dict[int, str] | None = None
) -> tuple[PublishedResult, ...]:
    return _table("resnet50", "v100-edr100", 128, program, f"{_DLPERF}: {program}", images_per_second, reasons)


def _vgg16(
    batch: int, data: str, images_per_second: dict[int, float], reasons: dict[int, str] | None = None
) -> tuple[PublishedResult, ...]:
    source = f"{_BENCHMARKS}, {data} data, batches of {batch}"
    return _table("vgg16", "dgx1-p100", batch, f"TensorFlow, {data} data", source, images_per_second, reasons)


RESULTS: tuple[PublishedResult, ...] = (
    *_table("resnet50", "dgx1-v100", 112, "PyTorch", _PYTORCH, {1: 356, 8: 2766}),
    *_table("resnet50", "dgx-a100", 256, "MXNet", f"{_MXNET}, TF32", {1: 1022, 2: 2032, 4: 4035, 8: 8001}),
    *_table("resnet50", "dgx1-v100", 96, "MXNet", f"{_MXNET}, FP32", {1: 384, 2: 763, 4: 1513, 8: 3005}),
    *_table("resnet50", "dgx2", 128, "MXNet", f"{_MXNET}, FP32", {1: 417, 2: 821, 4: 1623, 8: 3223}),
    *_table("resnet50", "dgx-a100", 256, "TensorFlow 1", f"{_TENSORFLOW_1}, TF32", {1: 909, 8: 7000}),
    *_table("resnet50", "dgx1-v100", 128, "TensorFlow 1", f"{_TENSORFLOW_1}, FP32", {1: 412, 8: 3170}),
    *_table("resnet50", "dgx2", 128, "TensorFlow 1", f"{_TENSORFLOW_1}, FP32", {1: 432, 16: 6500}),
    *_table("resnet50", "dgx-a100", 256, "PaddlePaddle", _PADDLE, {1: 993, 8: 7955}),
    *_dlperf("OneFlow", {1: 397.64, 8: 3130.34, 16: 6260.30, 32: 12411.97}),
    *_dlperf("NGC MXNet", {1: 392.24, 8: 3006.98, 16: 5758.49}),
    *_dlperf("NGC TensorFlow 1", {1: 362.44, 8: 2721.98, 16: 5099.42}, {16: UNTUNED_PROGRAM}),
    *_dlperf("NGC PyTorch", {1: 367.29, 8: 2887.65, 16: 5716.79}),
    *_dlperf(
        "MXNet",
        {1: 384.19, 8: 2556.03, 16: 4855.34, 32: 9579.74},
        dict.fromkeys((8, 16, 32), _WITHOUT_DALI),
    ),
    *_dlperf("TensorFlow 2", {1: 321.80, 8: 2458.74, 16: 4849.68, 32: 9418.44}),
    *_dlperf("PyTorch", {1: 348.62, 8: 2632.93, 16: 5115.40, 32: 10021.29}),
    *_dlperf(
        "PaddlePaddle",
        {1: 352.72, 8: 2625.38, 16: 4895.27, 32: 9348.17},
        dict.fromkeys((16, 32), _PADDLE_READS),
    ),
    *_vgg16(64, "synthetic", {1: 154, 2: 295, 4: 584}),
    *_vgg16(32, "synthetic", {1: 144, 2: 281, 4: 549}),
    *_vgg16(64, "real", {1: 154, 2: 284, 4: 534, 8: 898}, dict.fromkeys((2, 4, 8), _REAL_DATA)),
    *_vgg16(32, "real", {1: 144, 2: 253, 4: 457, 8: 690}, dict.fromkeys((2, 4, 8), _REAL_DATA)),
)
"""All rows of the tables, in the order of the three collections."""
