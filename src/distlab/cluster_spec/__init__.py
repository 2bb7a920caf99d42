"""TF_CONFIG, the text that tells a TensorFlow process which cluster it belongs to and which of its tasks it is.

TensorFlow reads it when a strategy is made and says little about mistakes: many show only as a job that waits forever.
Here every mistake is one sentence that names the field and the fix. Begin with `tf_config`, which builds the text for
one task, `from_slurm`, which does so for a task of Slurm, and `check`, which says what a text means. `gloo_from_slurm`
does for Horovod what `from_slurm` does for TensorFlow. In a block of `interruptible` Ctrl-C ends a process that waits
for the others.
The package may import `runtime`; it needs TensorFlow for a strategy only.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

from distlab.cluster_spec.gloo import check_mpi_of_srun, gloo_from_slurm
from distlab.cluster_spec.rules import check_same_cluster, checked
from distlab.cluster_spec.slurm import slurm_task
from distlab.cluster_spec.spec import ClusterSpec, ClusterSpecError, fail, parsed, quoted
from distlab.cluster_spec.waiting import interruptible

__all__ = [
    "ClusterSpec",
    "ClusterSpecError",
    "check",
    "check_all",
    "check_mpi_of_srun",
    "from_slurm",
    "gloo_from_slurm",
    "interruptible",
    "tf_config",
]


def tf_config(cluster: Mapping[str, Sequence[str]], task_type: str, index: int) -> str:
    """The text of TF_CONFIG for one task; ClusterSpecError if it would not be right."""
    if isinstance(cluster, Mapping):
        cluster = {job: _as_list(addresses) for job, addresses in cluster.items()}
    if isinstance(index, Integral) and not isinstance(index, bool):
        index = int(index)
    config = {"cluster": cluster, "task": {"type": task_type, "index": index}}
    checked(config)
    return json.dumps(config)


def from_slurm() -> str:
    """The text of TF_CONFIG for this task of a Slurm job; ClusterSpecError where srun has not started it.

    It needs neither GPUs nor Slurm's programs. Each task is a worker, in the order of the ranks.
    """
    cluster, rank = slurm_task()
    return tf_config(cluster, "worker", rank)


def check(text: str | None) -> ClusterSpec:
    """What the text, or `os.environ.get("TF_CONFIG")`, says; ClusterSpecError names the first mistake in it."""
    return checked(parsed(text))


def check_all(texts: Iterable[str | None]) -> list[ClusterSpec]:
    """What the TF_CONFIGs of all processes of a job say; they must name one cluster, and each of its tasks once."""
    specs = []
    for number, text in enumerate(texts, start=1):
        try:
            specs.append(check(text))
        except ClusterSpecError as error:
            raise ClusterSpecError(f"TF_CONFIG number {number}: {error}") from None
    if not specs:
        fail("there is no TF_CONFIG to check: pass one for each process of the job")
    first = specs[0]
    tasks = set()
    for spec in specs:
        check_same_cluster(first, spec)
        if (spec.task_type, spec.index) in tasks:
            fail(f"task is {spec.name} in two of the TF_CONFIGs: give every process its own index")
        tasks.add((spec.task_type, spec.index))
    for job, addresses in first.cluster.items():
        for index, address in enumerate(addresses):
            if (job, index) not in tasks:
                fail(
                    f"cluster.{job}[{index}] is {quoted(address)}, but task is {job} {index} in no TF_CONFIG: "
                    "start a process with this task, or take the address out of every cluster"
                )
    return specs


def _as_list(addresses: Any) -> Any:
    return list(addresses) if isinstance(addresses, Sequence) and not isinstance(addresses, str | bytes) else addresses
