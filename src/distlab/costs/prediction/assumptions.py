"""What `predict` takes for granted: one set of numbers, the same for every model, cluster and number of ranks."""

from dataclasses import dataclass

DESCRIPTIONS = {
    "bandwidth_share": "share of a link's specified bandwidth that an all-reduce reaches",
    "tcp_core_bandwidth": "bytes per second that one core moves through TCP; RDMA spares this time",
    "backward_share": "share of a step's computing that the backward pass takes; the rest comes before it",
    "variation": "standard deviation of a device's step time and of a host's link speed, relative to their mean",
    "slowdown": "how much longer computing takes while gradients move on the same device",
    "fusion_bytes": "tensors that wait are joined up to this many bytes per all-reduce",
    "cycle_seconds": "the communication thread looks for gradients once per so many seconds",
    "step_overhead": "seconds per step beside the FLOPs, only where no speed was published",
    "matrix_share": "share of a device's peak half-precision FLOP/s that a transformer's matrix products reach",
}


@dataclass(frozen=True)
class Assumptions:
    """The numbers behind a prediction, each with its reason.

    bandwidth_share: 0.82. Chosen with the published table in view: the middle of the range in which all its rows fit.
        Protocol headers, flow control and the pauses between chunks take the rest; NVLink, too, gives about 0.84 of its
        figure in NVIDIA's own test (a user's report to NVIDIA/nccl, number 1264). It holds for the wire, with RDMA
        and with TCP.
    tcp_core_bandwidth: 42 Gbit/s. The most that one core moved through Linux's TCP in a single flow, with every
        optimisation on; the receiver's copy to the program was the limit (Cai et al., SIGCOMM 2021, section 3.1;
        second-hand). With TCP a host's bytes take this time besides that on the wire: the one thread that serves
        NCCL's socket copies a chunk, then waits for the next. That the two times add up, and do not hide each other,
        was chosen with Horovod's six rows over TCP in view; the 42 Gbit/s were not. A check from elsewhere: of
        100 Gbit/s it leaves 28, where Horovod reached at most about 32 (Zhang et al., arXiv:2006.10103; second-hand).
    backward_share: 2/3. Backward computes two products, for the inputs' and for the weights' gradient, where forward
        computes one. Inside backward the time of a layer is taken as proportional to its multiply-adds.
    variation: 0.025. Chosen with the published table in view. A synchronous step lasts as long as the slowest of its
        ranks and links; taken as normal and independent, so that the slowest of p is about √(2 ln p) deviations late.
    slowdown: 0.19. Mean slowdown of computing under overlapped communication, measured on A100, H100, MI210 and MI250
        with language models (Lee et al., arXiv:2507.03114); older GPUs and convolutions are taken to suffer as much.
    fusion_bytes: 64 MiB, cycle_seconds: 5 ms. Horovod's defaults when most of the published results were measured
        (docs/tensor-fusion.md; since release 0.21 they are 128 MiB and 1 ms); also taken for systems that are not
        Horovod. On average a gradient waits half a cycle until it is noticed.
    step_overhead: 1 ms. Order of magnitude of what a framework needs to start a step; matters to tiny models only.
    matrix_share: 0.63. Chosen with table 1 of Narayanan et al. (arXiv:2104.04473) in view; for transformers only, whose
        other work is counted at memory speed.
    """

    bandwidth_share: float = 0.82
    tcp_core_bandwidth: float = 42e9 / 8
    backward_share: float = 2 / 3
    variation: float = 0.025
    slowdown: float = 0.19
    fusion_bytes: float = 64 * 2**20
    cycle_seconds: float = 5e-3
    step_overhead: float = 1e-3
    matrix_share: float = 0.63
