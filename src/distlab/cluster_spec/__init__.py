"""TF_CONFIG, the text that tells a TensorFlow process which cluster it belongs to and which of its tasks it is.

TensorFlow reads it when a strategy is made and says little about mistakes: many show only as a job that waits forever.
Here every mistake is one sentence that names the field and the fix. Begin with `tf_config`, which builds the text for
one task, `from_slurm`, which does so for a task of Slurm, and `check`, which says what a text means. `gloo_from_slurm`
does for Horovod what `from_slurm` does for TensorFlow. In a block of
`interruptible` Ctrl-C ends a process that waits for the others.
The package may import `runtime`; it needs TensorFlow for a strategy only.
"""

from distlab.cluster_spec.gloo import check_mpi_of_srun, gloo_from_slurm
from distlab.cluster_spec.slurm import from_slurm
from distlab.cluster_spec.spec import ClusterSpec, ClusterSpecError, check, check_all, tf_config
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
