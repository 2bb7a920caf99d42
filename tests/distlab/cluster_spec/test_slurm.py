"""TF_CONFIG under Slurm."""

import pytest

from distlab.cluster_spec import ClusterSpecError, check_all, from_slurm
from distlab.cluster_spec.slurm import FIRST_PORT, PORTS_PER_STEP, first_port, host_names, slurm_task, tasks_per_node

EPHEMERAL_PORTS = 32768


def variables(nodes: str = "node[1-3]", counts: str = "1(x3)", rank: int = 0, **more: str) -> dict[str, str]:
    tasks = sum(tasks_per_node(counts))
    return {
        "SLURM_JOB_ID": "7",
        "SLURM_STEP_ID": "0",
        "SLURM_STEP_NODELIST": nodes,
        "SLURM_STEP_TASKS_PER_NODE": counts,
        "SLURM_STEP_NUM_TASKS": str(tasks),
        "SLURM_PROCID": str(rank),
    } | more


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("node[01-03,7],gpu-a[1-2]", ["node01", "node02", "node03", "node7", "gpu-a1", "gpu-a2"]),
        ("node[9-10]", ["node9", "node10"]),
        ("login-2,c[3,5].site.edu", ["login-2", "c3.site.edu", "c5.site.edu"]),
        ("rack[1-2]n[1-2]", ["rack1n1", "rack1n2", "rack2n1", "rack2n2"]),
        ("n[098-101]", ["n098", "n099", "n100", "n101"]),
        ("ip-10-0-[0-1]-[7,9]", ["ip-10-0-0-7", "ip-10-0-0-9", "ip-10-0-1-7", "ip-10-0-1-9"]),
    ],
)
def test_lists_of_hosts_are_read_in_their_order(text: str, names: list[str]) -> None:
    assert host_names(text) == names


def test_every_task_of_a_step_names_the_same_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = []
    for rank in range(5):
        for name, value in variables("node[9-10],gpu-a1", "2(x2),1", rank).items():
            monkeypatch.setenv(name, value)
        texts.append(from_slurm())
    specs = check_all(texts)
    assert [spec.index for spec in specs] == [0, 1, 2, 3, 4]
    assert [address.split(":")[0] for address in specs[0].cluster["worker"]] == ["node9"] * 2 + ["node10"] * 2 + [
        "gpu-a1"
    ]


@pytest.mark.parametrize(
    ("distribution", "nodes"),
    [
        ({}, "11123"),
        ({"SLURM_DISTRIBUTION": "NoPack"}, "11123"),
        ({"SLURM_DISTRIBUTION": "cyclic:block"}, "12311"),
        ({"SLURM_DISTRIBUTION": "plane", "SLURM_DIST_PLANESIZE": "2"}, "11231"),
    ],
)
def test_ranks_have_the_addresses_of_the_nodes_on_which_slurm_puts_them(
    distribution: dict[str, str], nodes: str
) -> None:
    cluster, _ = slurm_task(variables("node[1-3]", "3,1(x2)", **distribution))
    assert [address.split(":")[0] for address in cluster["worker"]] == [f"node{node}" for node in nodes]
    assert len(set(cluster["worker"])) == 5


def test_the_port_comes_from_job_and_step_and_leaves_room() -> None:
    for first in (1, 100, 777):
        assert len({first_port(job, step) for job in range(first, first + 12) for step in range(11)}) == 12 * 11
    assert min(first_port(job, 0) for job in range(1000)) >= FIRST_PORT
    assert max(first_port(job, 0) for job in range(1000)) + PORTS_PER_STEP < EPHEMERAL_PORTS


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"SLURM_STEP_NODELIST": ""}, "SLURM_STEP_NODELIST is not set: start the program with srun"),
        ({"SLURM_STEP_NODELIST": "node[1-"}, "not a list of hosts"),
        ({"SLURM_DISTRIBUTION": "arbitrary"}, "srun --distribution=block"),
        ({"SLURM_PROCID": "9"}, "only one component of a heterogeneous job"),
        ({"SLURMD_NODENAME": "node2"}, "rank 0 is on node2: start with srun --distribution=block"),
    ],
)
def test_a_mistake_is_a_sentence_with_variable_and_fix(changes: dict[str, str], sentence: str) -> None:
    with pytest.raises(ClusterSpecError) as error:
        slurm_task(variables() | changes)
    assert sentence in str(error.value)
