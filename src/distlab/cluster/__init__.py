"""A Slurm cluster on this machine: a login node and several nodes, each with its own host name, address and network.

Begin with `up`, which starts a cluster and returns its `Cluster`; `find` returns one that runs already. The nodes are
Linux namespaces below a single process: when that process ends, the kernel ends every process of the cluster and
removes its networks and mounts. The modules `server`, `network`, `limits`, `configuration` and `relay` run inside, the
others outside. The package may import `runtime`.
"""

from distlab.cluster.cluster import Cluster, find, up
from distlab.cluster.limits import LinkLimits, NoSuchLimit
from distlab.cluster.login_node import LoginNode
from distlab.cluster.record import ClusterError, RunsAlready
from distlab.cluster.requirements import missing

__all__ = ["Cluster", "ClusterError", "LinkLimits", "LoginNode", "NoSuchLimit", "RunsAlready", "find", "missing", "up"]
