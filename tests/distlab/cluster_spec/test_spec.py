"""Every mistake in a TF_CONFIG is one sentence that names the field and the fix; TensorFlow reads what is right."""

import json
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.python.distribute import multi_worker_util

from distlab.cluster_spec import ClusterSpecError, check, check_all, tf_config

TWO = {"worker": ["host1:2222", "host2:2222"]}
FIRST = {"type": "worker", "index": 0}


def config(cluster: Any = TWO, task: Any = FIRST) -> str:
    return json.dumps({"cluster": cluster, "task": task})


def workers(*addresses: Any) -> str:
    return config({"worker": list(addresses)})


def index(value: Any, task_type: Any = "worker") -> str:
    return config(task={"type": task_type, "index": value})


MISTAKES = [
    (None, "TF_CONFIG is not set", '{"cluster": {"worker": ["host1:2222"'),
    (str({"cluster": TWO, "task": FIRST}), "TF_CONFIG is written as Python", "json.dumps"),
    (config().replace('"', ""), "TF_CONFIG is not JSON", "single quotes"),
    (json.dumps({"task": FIRST}), "cluster is missing", 'add "cluster"'),
    (config({"worker": "host1:2222"}), 'cluster.worker is "host1:2222"', 'write ["host1:2222"'),
    (workers("host1"), 'cluster.worker[0] is "host1", without a port', 'write "host1:2222"'),
    (workers("a:65536"), "cluster.worker[0]", "write one from 1 to 65535"),
    (workers("a:1", "b:1", "a:1"), "cluster.worker[0] and cluster.worker[2] are the same", "give each its own"),
    (config({"chief": ["host1:2222"], **TWO}), "cluster.chief[0] and cluster.worker[0]", "only as chief"),
    (workers("localhost:1", "host2:1"), 'cluster.worker[0] is on "localhost"', "the host's name"),
    (index(0, "boss"), 'task.type is "boss"', 'one of "chief", "worker", "ps", "evaluator"'),
    (index(2), "task.index is 2, but cluster.worker has 2 addresses", "from 0 to 1, or add the missing"),
    (index("first"), 'task.index is "first"', "write 0"),
    (
        config({"worker": {"1": "b:1", "4": "c:1"}}),
        "task.index is 0, and the sparse cluster.worker has 1, 4",
        "add its",
    ),
]


@pytest.mark.parametrize(("text", "field", "fix"), MISTAKES)
def test_a_mistake_is_one_sentence_with_field_and_fix(text: str | None, field: str, fix: str) -> None:
    with pytest.raises(ClusterSpecError) as raised:
        check(text)
    message = str(raised.value)
    assert fix in message[message.index(field) :]
    assert "\n" not in message and ". " not in message and len(message) < 320


def test_what_is_right_for_tensorflow_or_kubernetes_is_left_alone() -> None:
    text = json.dumps({**json.loads(config()), "environment": "cloud", "rpc_layer": "grpc"})
    assert check(text) == check(config())
    outside = check(index(0, "evaluator"))  # of the cluster
    assert (outside.address, outside.is_chief) == (None, False)
    assert check(config({"worker": {"1": "b:1", "4": "c:1"}}, {"type": "worker", "index": "4"})).address == "c:1"
    assert len(check(workers("localhost:1", "127.0.0.1:2", "[::1]:3")).cluster["worker"]) == 3
    assert len(check(workers("[fe80::1]:2222", "10.0.0.1:2222")).cluster["worker"]) == 2


def all_of(cluster: dict[str, list[str]]) -> list[str]:
    return [tf_config(cluster, job, number) for job in cluster for number in range(len(cluster[job]))]


FIRST_TEXT, SECOND_TEXT = all_of(TWO)
TURNED = tf_config({"worker": TWO["worker"][::-1]}, "worker", 1)


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (
            [FIRST_TEXT, tf_config({**TWO, "chief": ["c:1"]}, "worker", 1)],
            "cluster differs in worker",
        ),
        ([FIRST_TEXT, TURNED], "give all the same one, in the same order"),
        ([FIRST_TEXT, FIRST_TEXT], "task is worker 0 in 2 TF_CONFIGs"),
        ([FIRST_TEXT], "cluster.worker[1] is the task of no TF_CONFIG: start worker 1"),
    ],
)
def test_processes_that_disagree(texts: list[str], sentence: str) -> None:
    with pytest.raises(ClusterSpecError) as raised:
        check_all(texts)
    assert sentence in str(raised.value)


CLUSTERS = [
    TWO,
    {"chief": ["a:1"]},
    {"ps": ["c:1", "d:65535"], "worker": ["b:1", "b:2"], "chief": ["a:1"]},
    {"worker": ["b:1", "b:2"], "evaluator": ["e:1"], "chief": ["a:1"]},
]


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_tensorflow_reads_the_same(cluster: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    for text in all_of(cluster):
        spec = check(text)
        assert {job: list(addresses) for job, addresses in spec.cluster.items()} == cluster
        monkeypatch.setenv("TF_CONFIG", text)
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        read = resolver.cluster_spec()
        assert read.as_dict() == cluster
        assert (resolver.task_type, resolver.task_id) == (spec.task_type, spec.index)
        assert spec.address == read.task_address(spec.task_type, spec.index)
        if spec.task_type != "evaluator":  # TensorFlow calls an evaluator the chief of a cluster of its own
            assert spec.is_chief == multi_worker_util.is_chief(read, spec.task_type, spec.index)
    assert sum(spec.is_chief for spec in check_all(all_of(cluster)[::-1])) == 1
