"""What Horovod's ranks need to meet over Gloo when Slurm has started them: no MPI, no ssh, no horovodrun."""

import os
import socket
import threading
import time
from collections.abc import Mapping, MutableMapping
from contextlib import suppress

from distlab.cluster_spec.slurm import slurm_task
from distlab.cluster_spec.spec import fail

# Variables by which MPI knows its ranks, from srun (PMIx, PMI) or from mpirun.
_TOLD_BY_MPI = ("PMIX_", "PMI_", "OMPI_COMM_WORLD_")
SECONDS_TO_MEET = 300.0
SECONDS_BETWEEN_CALLS = 0.2


def gloo_from_slurm(environment: MutableMapping[str, str] = os.environ, seconds: float = SECONDS_TO_MEET) -> None:
    """Prepare `hvd.init()` in a task of a Slurm step: call it in every task, before.

    It does what horovodrun does: it tells each rank its place by Horovod's variables, and rank 0 also keeps the
    key-value store in which the ranks leave their addresses, until its process ends. Slurm's tasks must be in blocks
    (srun's default). ClusterSpecError where srun has not started this process, and where rank 0 does not answer within
    `seconds`.
    """
    from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
    from horovod.runner.gloo_run import create_slot_env_vars
    from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer

    cluster, rank = slurm_task(environment)
    hosts = [address.rpartition(":")[0] for address in cluster["worker"]]
    port = int(cluster["worker"][0].rpartition(":")[2])
    counts = {host: hosts.count(host) for host in hosts}
    if hosts != [host for host, count in counts.items() for _ in range(count)]:
        fail("SLURM_DISTRIBUTION mixes the ranks of the nodes: start the program with srun --distribution=block")
    plan = parse_hosts(",".join(f"{host}:{count}" for host, count in counts.items()))
    slots = get_host_assignments(plan, len(hosts))
    environment.update(create_slot_env_vars(slots[rank]))
    environment.update(
        HOROVOD_CONTROLLER="gloo",
        HOROVOD_CPU_OPERATIONS="gloo",
        HOROVOD_GLOO_RENDEZVOUS_ADDR=socket.gethostbyname(hosts[0]),
        HOROVOD_GLOO_RENDEZVOUS_PORT=str(port),
    )
    if rank > 0:
        _wait_for_store(hosts[0], port, seconds)
        return
    server = RendezvousHTTPServer(("", port), RendezvousHandler, 0)
    server.init(slots)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def check_mpi_of_srun(environment: Mapping[str, str] = os.environ, *, or_gloo: bool = False) -> None:
    """ClusterSpecError in one of several tasks that srun has started without MPI.

    In these `hvd.init()` would end in MPI's words, "OMPI was not built with SLURM's PMI support"; only an option of
    srun is missing.
    or_gloo: the program has an option --gloo-from-slurm, which helps too.
    """
    tasks = environment.get("SLURM_STEP_NUM_TASKS", "1")
    knows_others = any(name.startswith(_TOLD_BY_MPI) for name in environment) or "HOROVOD_RANK" in environment
    if "SLURM_PROCID" in environment and tasks != "1" and not knows_others:
        fix = "add --mpi=pmix to srun" + (", or --gloo-from-slurm to the program" if or_gloo else "")
        fail(f"SLURM_STEP_NUM_TASKS is {tasks}, and these tasks do not know of each other: {fix}")


def _wait_for_store(host: str, port: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with suppress(OSError):
            socket.create_connection((host, port), timeout=1).close()
            return
        time.sleep(SECONDS_BETWEEN_CALLS)
    fail(f"rank 0 on {host} did not answer at port {port} within {seconds:.0f} s: look for its error in the output")
