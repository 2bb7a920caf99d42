"""Horovod's variables for a task of Slurm are those that horovodrun would set."""

import pytest

from distlab import launch
from distlab.cluster_spec import ClusterSpecError, check_mpi_of_srun, gloo_from_slurm
from tests.distlab.cluster_spec.test_slurm import variables

NEEDS_HOROVOD = pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem()))


@NEEDS_HOROVOD
def test_a_rank_knows_its_place_and_misses_a_rank_0_that_never_comes() -> None:
    environment = variables("127.0.0.1,localhost", "2,1", rank=2)
    with pytest.raises(ClusterSpecError, match=r"rank 0 on .* did not answer at port"):
        gloo_from_slurm(environment, seconds=0.1)
    place = {"RANK": "2", "SIZE": "3", "LOCAL_RANK": "0", "LOCAL_SIZE": "1", "CROSS_RANK": "1", "CROSS_SIZE": "2"}
    assert {name: environment[f"HOROVOD_{name}"] for name in place} == place


@NEEDS_HOROVOD
def test_ranks_that_are_mixed_over_the_nodes_are_a_mistake() -> None:
    with pytest.raises(ClusterSpecError, match="srun --distribution=block"):
        gloo_from_slurm(variables("node[1-2]", "2,1", rank=0, SLURM_DISTRIBUTION="cyclic"))


def test_only_tasks_of_srun_that_mpi_does_not_know_of_are_told_the_option_that_is_missing() -> None:
    task = variables("node[1-2]", "1(x2)", rank=1) | {"SLURM_STEP_NUM_TASKS": "2"}
    with pytest.raises(ClusterSpecError, match=r"add --mpi=pmix to srun$"):
        check_mpi_of_srun(task)
    with pytest.raises(ClusterSpecError, match=r"add --mpi=pmix to srun, or --gloo-from-slurm to the program$"):
        check_mpi_of_srun(task, or_gloo=True)

    for told in ("PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "HOROVOD_RANK", "SLURM_STEP_NUM_TASKS"):
        check_mpi_of_srun(task | {told: "1"})
    check_mpi_of_srun({})
