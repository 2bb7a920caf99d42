"""The hosts of a job as a user writes them, and the variables that go there."""

import pytest

from distlab.launch import LaunchError
from distlab.launch.hosts import Host, fill, parse, travelling_environment


def test_hosts_are_read_in_their_order() -> None:
    assert parse("node10:2, node9,gpu-a1.site:16") == [Host("node10", 2), Host("node9", 1), Host("gpu-a1.site", 16)]
    assert parse(["node1:2", "node2"]) == [Host("node1", 2), Host("node2", 1)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "'' is no host with its number of processes; write node1:2,node2:2."),
        ("node1:0", "'node1:0' is no host"),
        ("node1:two", "'node1:two' is no host"),
        ("node1,,node2", "'' is no host"),
        ("-oProxyCommand=true", "'-oProxyCommand=true' is no host"),
        ("node1; true", "'node1; true' is no host"),
        ("node1:1,node1:2", "node1 is named twice; write it once, with all its processes: node1:2."),
    ],
)
def test_what_is_no_list_of_hosts_is_refused_in_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(LaunchError) as refusal:
        parse(text)
    assert str(refusal.value).startswith(sentence)


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (None, [Host("a", 2), Host("b", 3)]),
        (4, [Host("a", 2), Host("b", 2)]),
        (2, [Host("a", 2)]),
        (1, [Host("a", 1)]),
    ],
)
def test_hosts_are_filled_one_after_the_other(count: int | None, expected: list[Host]) -> None:
    assert fill([Host("a", 2), Host("b", 3)], count, "ranks") == expected


def test_too_many_processes_for_the_hosts_are_refused() -> None:
    with pytest.raises(LaunchError, match="ranks=6 is too many for a:2,b:3, which is 5"):
        fill([Host("a", 2), Host("b", 3)], 6, "ranks")


def test_only_what_a_rank_needs_travels(monkeypatch: pytest.MonkeyPatch) -> None:
    travel = {
        "TF_GPU_ALLOCATOR": "x",
        "NCCL_DEBUG": "INFO",
        "OMPI_MCA_btl": "tcp",
        "PATH": "/bin",
        "DISTLAB_DATA": "/d",
    }
    stay = {
        "API_KEY": "x",
        "http_proxy": "x",
        "HOME": "/h",
        "DISPLAY": ":0",
        "DISTLAB_RUN": "mark",
        "CUDA_VISIBLE_DEVICES": "0",
    }
    stay |= {"TF_CONFIG": "{}", "HOROVOD_RANK": "1", "OMPI_COMM_WORLD_RANK": "0", "SLURM_PROCID": "1", "PMIX_RANK": "0"}
    for name, value in (travel | stay).items():
        monkeypatch.setenv(name, value)
    travelled = travelling_environment()
    assert {name: travelled.get(name) for name in travel} == travel
    assert not stay.keys() & travelled.keys()
