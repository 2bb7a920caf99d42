"""A Slurm cluster on this machine: a login node and several nodes, each with its own host name, address and network.

Begin with `up`, which starts a cluster and returns its `Cluster`; `find` returns one that runs already. The nodes are
Linux namespaces below a single process, the holder: when it ends, the kernel ends every process of the cluster and
removes its networks, mounts and files. Everything is done from outside, by commands that enter these namespaces; only
`relay` runs inside. The package may import `runtime`.
"""

from distlab.cluster.cluster import Cluster, find, up
from distlab.cluster.login_node import LoginNode
from distlab.cluster.namespaces import ClusterError, missing
from distlab.cluster.network import Link

__all__ = ["Cluster", "ClusterError", "Link", "LoginNode", "find", "missing", "up"]
