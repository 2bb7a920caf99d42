"""Every mistake in a TF_CONFIG is one sentence that names the field and the fix; TensorFlow reads what is right."""

import json
import os
import string
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow.python.distribute import multi_worker_util

from distlab.cluster_spec import ClusterSpec, ClusterSpecError, check, check_all, tf_config

TWO = {"worker": ["host1:2222", "host2:2222"]}
FIRST = {"type": "worker", "index": 0}


def config(cluster: Any = TWO, task: Any = FIRST) -> str:
    return json.dumps({"cluster": cluster, "task": task})


def workers(*addresses: Any) -> str:
    return config({"worker": list(addresses)})


def index(value: Any, task_type: Any = "worker") -> str:
    return config(task={"type": task_type, "index": value})


MISTAKES = [
    # the text
    (None, "TF_CONFIG is not set", '{"cluster": {"worker": ["host1:2222"'),
    ("", "TF_CONFIG is empty", '{"cluster": {"worker": ["host1:2222"'),
    ("  \n", "TF_CONFIG is empty", "set it before TensorFlow starts"),
    ({"cluster": TWO, "task": FIRST}, "TF_CONFIG must be text, not dict", "json.dumps"),
    ("cluster", "TF_CONFIG is not JSON", "line 1, column 1"),
    (config()[:-1], "TF_CONFIG is not JSON", "json.dumps"),
    ('{"cluster": ' + "[" * 100_000, "TF_CONFIG is not JSON", "json.dumps"),
    ('{"cluster": ' + "1" * 5000 + "}", "TF_CONFIG is not JSON", "json.dumps"),
    (str({"cluster": TWO, "task": FIRST}), "TF_CONFIG is written as Python", "json.dumps"),
    (config()[:-1] + ",}", "TF_CONFIG is written as Python", "leaves out a comma after the last item"),
    (f"'{config()}'", "TF_CONFIG is not JSON, for it begins with a quote", "leave out the quotes"),
    (config().replace('"', ""), "TF_CONFIG is not JSON, for it has no double quotes", "single quotes"),
    (json.dumps(config()), "TF_CONFIG is JSON of a text", "json.dumps once"),
    (json.dumps([TWO, FIRST]), "TF_CONFIG is [", '{"cluster": ..., "task": ...}'),
    ("null", "TF_CONFIG is null", '{"cluster": ..., "task": ...}'),
    ('{"cluster": {"worker": ["a:1"], "worker": ["b:1"]}, "task": {}}', '"worker" appears 2 times', "write it once"),
    # cluster
    (json.dumps({"task": FIRST}), "cluster is missing", 'add "cluster"'),
    (json.dumps({"Clusters": TWO, "task": FIRST}), "cluster is missing", '(there is "Clusters")'),
    (config(["host1:2222"]), "cluster is [", "not an object"),
    (config(None), "cluster is null", "not an object"),
    (config({}), "cluster is empty", "list the addresses of each job"),
    (config({"workers": ["a:1"]}), 'cluster is "workers"', 'write "worker"'),
    (config({"Worker": ["a:1"]}), 'cluster is "Worker"', 'write "worker"'),
    (config({"master": ["a:1"]}), 'cluster is "master"', 'calls it "chief"'),
    (config({"node": ["a:1"]}), 'cluster is "node"', 'one of "chief", "worker", "ps", "evaluator"'),
    (config({"ps": ["a:1"]}, {"type": "ps", "index": 0}), "cluster has no worker", "add their addresses as worker"),
    (config({"worker": "host1:2222"}), 'cluster.worker is "host1:2222"', 'write ["host1:2222"]'),
    (config({"worker": {"0": "host1:2222"}}), 'cluster.worker is {"0"', "not a list"),
    (config({"worker": []}), "cluster.worker is an empty list", "leave worker out"),
    (config({"worker": ["a:1"], "ps": []}), "cluster.ps is an empty list", "leave ps out"),
    (config({"chief": ["a:1", "b:1"]}), "cluster.chief has 2 addresses", "list the others as worker"),
    (config({**TWO, "evaluator": ["a:1", "b:1"]}), "cluster.evaluator has 2 addresses", "keep one"),
    # addresses
    (workers("host1"), 'cluster.worker[0] is "host1", without a port', 'write "host1:2222"'),
    (workers("a:1", "host2:"), 'cluster.worker[1] is "host2:", without a port', 'write "host2:2222"'),
    (workers(":2222"), 'cluster.worker[0] is ":2222", without a host', 'write the host before the port, "host:2222"'),
    (workers("[]:2222"), "cluster.worker[0]", "without a host"),
    (workers("a:http"), 'cluster.worker[0] is "a:http"', 'the port "http" is not a number'),
    (workers("a:+80"), 'cluster.worker[0] is "a:+80"', "is not a number"),
    (workers("a:٣"), "cluster.worker[0]", "is not a number"),
    (workers("a:-1"), "cluster.worker[0]", "write a port from 1 to 65535"),
    (workers("a:0"), "cluster.worker[0]", "write one from 1 to 65535"),
    (workers("a:65536"), "cluster.worker[0]", "write one from 1 to 65535"),
    (workers("a:" + "9" * 5000), "cluster.worker[0]", "write one from 1 to 65535"),
    (workers("fe80::1:2222"), "cluster.worker[0]", 'write IPv6 as "[address]:port"'),
    (workers("a:1:2"), "cluster.worker[0]", '"host:port"'),
    (workers("grpc://a:1"), "cluster.worker[0]", "a URL"),
    (workers("a:1/path"), "cluster.worker[0]", "a URL"),
    (workers("a:1,b:1"), "cluster.worker[0]", "one text per task"),
    (workers("a:1", " b:1"), "cluster.worker[1]", "without spaces"),
    (workers(""), 'cluster.worker[0] is ""', 'write "host:port"'),
    (workers(2222), "cluster.worker[0] is 2222", 'write "host:port"'),
    (workers(["a", 1]), 'cluster.worker[0] is ["a", 1]', 'write "host:port"'),
    (workers("a:1", None), "cluster.worker[1] is null", 'write "host:port"'),
    # the same address twice
    (workers("a:1", "b:1", "a:1"), "cluster.worker[0] and cluster.worker[2] are the same", "give each its own"),
    (workers("a:1", "A:01"), "cluster.worker[0] and cluster.worker[1] are the same", "give each its own"),
    (workers("localhost:1", "127.0.0.1:1"), "cluster.worker[0] and cluster.worker[1]", "give each its own"),
    (workers("127.0.0.1:1", "[::1]:1"), "cluster.worker[0] and cluster.worker[1]", "give each its own"),
    (config({**TWO, "ps": ["host1:2222"]}), "cluster.worker[0] and cluster.ps[0] are the same", "give each its own"),
    (config({"chief": ["host1:2222"], **TWO}), "cluster.chief[0] and cluster.worker[0]", "only as chief"),
    (config({**TWO, "chief": ["host1:2222"]}), "cluster.worker[0] and cluster.chief[0]", "only as chief"),
    # this machine's own names among others
    (workers("localhost:1", "host2:1"), 'cluster.worker[0] is on "localhost"', "the host's name"),
    (workers("host1:1", "127.0.0.1:1"), 'cluster.worker[1] is on "127.0.0.1"', "the host's name"),
    (workers("host1:1", "127.9.9.9:1"), 'cluster.worker[1] is on "127.9.9.9"', "the host's name"),
    (workers("host1:1", "[::1]:1"), 'cluster.worker[1] is on "::1"', "the host's name"),
    (workers("0.0.0.0:1", "host2:1"), 'cluster.worker[0] is on "0.0.0.0"', "the host's name"),
    (workers("host1:1", "LocalHost.localdomain:1"), "cluster.worker[1] is on", "the host's name"),
    (config({**TWO, "ps": ["localhost:1"]}), 'cluster.ps[0] is on "localhost"', "the host's name"),
    (config({"chief": ["localhost:1"], **TWO}), 'cluster.chief[0] is on "localhost"', "the host's name"),
    # task
    (json.dumps({"cluster": TWO}), "task is missing", 'add "task"'),
    (json.dumps({"cluster": TWO, "tasks": FIRST}), "task is missing", '(there is "tasks")'),
    (config(task="worker 0"), 'task is "worker 0"', "not an object"),
    (config(task={}), "task.type is missing", 'such as "worker"'),
    (config(task={"index": 0}), "task.type is missing", 'such as "worker"'),
    (config(task={"type": "worker"}), "task.index is missing", "such as 0"),
    (config(task={"type": "worker", "Index": 0}), "task.index is missing", '(there is "Index")'),
    (index(0, "workers"), 'task.type is "workers"', 'write "worker"'),
    (index(0, "boss"), 'task.type is "boss"', 'one of "chief", "worker", "ps", "evaluator"'),
    (index(0, "master"), 'task.type is "master"', 'calls it "chief"'),
    (index(0, None), "task.type is null", "one of"),
    (index(0, ["worker"]), 'task.type is ["worker"]', "write"),
    (index(0, "ps"), 'task.type is "ps"', "add the address to cluster.ps"),
    (index(0, "chief"), 'task.type is "chief"', 'write "worker"'),
    (index(2), "task.index is 2, but cluster.worker has 2 addresses", "from 0 to 1, or add the missing"),
    (index(-1), "task.index is -1", "from 0 to 1"),
    (config({"worker": ["a:1"]}, {"type": "worker", "index": 1}), "task.index is 1", "has 1 address: write 0"),
    (index(1, "evaluator"), "task.index is 1, but there is one evaluator", "write 0"),
    (index("0"), 'task.index is "0"', "write 0 without quotes"),
    (index("first"), 'task.index is "first"', "write 0 for the first task"),
    (index(0.0), "task.index is 0.0", "write 0"),
    (index(True), "task.index is true", "write 0"),
    (index(None), "task.index is null", "write 0"),
    (index([0]), "task.index is [0]", "write 0"),
]


def assert_one_sentence(message: str) -> None:
    assert "\n" not in message
    assert len(message) < 320
    assert ": " in message  # what is wrong, then the fix
    assert ". " not in message
    assert not message.endswith(".")


@pytest.mark.parametrize(("text", "field", "fix"), MISTAKES, ids=[str(number) for number in range(len(MISTAKES))])
def test_a_mistake_is_one_sentence_with_field_and_fix(text: str | None, field: str, fix: str) -> None:
    with pytest.raises(ClusterSpecError) as raised:
        check(text)
    message = str(raised.value)
    assert field in message
    assert fix in message[message.index(field) :]
    assert_one_sentence(message)


@pytest.mark.parametrize(("text", "field", "fix"), MISTAKES, ids=[str(number) for number in range(len(MISTAKES))])
def test_one_mistake_among_many_is_found_and_counted(text: str | None, field: str, fix: str) -> None:
    with pytest.raises(ClusterSpecError) as raised:
        check_all([config(), text])
    message = str(raised.value)
    assert message.startswith("TF_CONFIG number 2: ")
    assert field in message
    assert_one_sentence(message)


def test_a_mistake_is_found_when_the_text_is_built() -> None:
    for cluster, task_type, number, field in [
        ({}, "worker", 0, "cluster is empty"),
        (None, "worker", 0, "cluster is null"),
        ({"worker": "a:1"}, "worker", 0, 'cluster.worker is "a:1"'),
        ({"worker": {"a:1"}}, "worker", 0, "cluster.worker is {'a:1'}"),
        ({"worker": 3}, "worker", 0, "cluster.worker is 3"),
        ({"worker": b"a:1"}, "worker", 0, "cluster.worker is b'a:1'"),
        ({0: ["a:1"]}, "worker", 0, "cluster is 0"),
        (TWO, "worker", 2, "task.index is 2"),
        (TWO, "worker", True, "task.index is true"),
        (TWO, "worker", 0.5, "task.index is 0.5"),
        (TWO, "ps", 0, 'task.type is "ps"'),
    ]:
        with pytest.raises(ClusterSpecError) as raised:
            tf_config(cluster, task_type, number)
        assert field in str(raised.value)
        assert_one_sentence(str(raised.value))


def test_what_numpy_and_tuples_give_is_built_too() -> None:
    assert tf_config({"worker": ("a:1", "b:1")}, "worker", np.int64(1)) == tf_config(
        {"worker": ["a:1", "b:1"]}, "worker", 1
    )


def test_what_a_checked_task_says_of_itself() -> None:
    spec = check(config({"chief": ["a:1"], "worker": ["b:1", "b:2"]}, {"type": "worker", "index": 1}))
    assert spec == ClusterSpec({"chief": ("a:1",), "worker": ("b:1", "b:2")}, "worker", 1)
    assert (spec.name, spec.address, spec.is_chief) == ("worker 1", "b:2", False)


def test_further_fields_of_tensorflow_and_of_kubernetes_are_left_alone() -> None:
    text = json.dumps({**json.loads(config()), "environment": "cloud", "rpc_layer": "grpc"})
    assert check(text) == check(config())


def test_an_evaluator_may_be_outside_the_cluster() -> None:
    assert check(index(0, "evaluator")).address is None
    assert not check(index(0, "evaluator")).is_chief


def test_addresses_of_one_machine_are_good_by_themselves() -> None:
    assert len(check(workers("localhost:1", "127.0.0.1:2", "[::1]:3")).cluster["worker"]) == 3
    assert len(check(workers("[fe80::1]:2222", "10.0.0.1:2222")).cluster["worker"]) == 2


# What all processes say


def all_of(cluster: dict[str, list[str]]) -> list[str]:
    return [tf_config(cluster, job, number) for job in cluster for number in range(len(cluster[job]))]


def disagreement(texts: list[str | None]) -> str:
    with pytest.raises(ClusterSpecError) as raised:
        check_all(texts)
    assert_one_sentence(str(raised.value))
    return str(raised.value)


def test_processes_that_agree() -> None:
    cluster = {"chief": ["a:1"], "worker": ["b:1", "b:2"], "ps": ["c:1"]}
    specs = check_all(all_of(cluster))
    assert [spec.name for spec in specs] == ["chief 0", "worker 0", "worker 1", "ps 0"]
    assert [spec.is_chief for spec in specs] == [True, False, False, False]
    assert len(check_all([*all_of(cluster), tf_config(cluster, "evaluator", 0)])) == 5


def test_workers_with_different_clusters() -> None:
    first, second = all_of(TWO)
    for cluster in [{"worker": ["host1:2222", "host2:2223"]}, {"worker": ["host1:2222", "host2:2222", "host3:2222"]}]:
        message = disagreement([first, tf_config(cluster, "worker", 1)])
        assert message.startswith("cluster.worker differs in the TF_CONFIGs of worker 0 and worker 1")
    assert "cluster.chief differs" in disagreement([first, tf_config({**TWO, "chief": ["c:1"]}, "worker", 1)])
    turned = {"worker": TWO["worker"][::-1]}
    assert "cluster.worker lists the same addresses in another order" in disagreement(
        [first, tf_config(turned, "worker", 1)]
    )
    assert "own" not in disagreement([second, tf_config(turned, "worker", 1)])  # the first mistake comes first


def test_two_processes_with_one_task() -> None:
    first, _ = all_of(TWO)
    assert "task is worker 0 in two of the TF_CONFIGs" in disagreement([first, first])


def test_a_task_without_a_process() -> None:
    first, second = all_of(TWO)
    assert 'cluster.worker[1] is "host2:2222"' in disagreement([first])
    assert "task is worker 0 in no TF_CONFIG" in disagreement([second])
    assert "there is no TF_CONFIG to check" in disagreement([])


# Against TensorFlow

HOSTS = st.text(string.ascii_lowercase, min_size=1, max_size=6).map(lambda name: f"{name}-node")
ADDRESSES = st.builds("{}:{}".format, HOSTS, st.integers(1, 65535))


@st.composite
def tasks(draw: st.DrawFn) -> tuple[dict[str, list[str]], str, int]:
    """A cluster that is right, and one of its tasks."""
    addresses = draw(st.lists(ADDRESSES, min_size=4, max_size=8, unique=True))
    counts = {
        "chief": draw(st.integers(0, 1)),
        "worker": draw(st.integers(1, 2)),
        "ps": draw(st.integers(0, 2)),
        "evaluator": draw(st.integers(0, 1)),
    }
    cluster = {}
    for job in draw(st.permutations(list(counts))):
        taken, addresses = addresses[: counts[job]], addresses[counts[job] :]
        if taken:
            cluster[job] = taken
    if "worker" not in cluster and "chief" not in cluster:
        cluster = {"worker": [address for group in cluster.values() for address in group]}
    task_type = draw(st.sampled_from(list(cluster)))
    return cluster, task_type, draw(st.integers(0, len(cluster[task_type]) - 1))


@pytest.mark.slow
@settings(deadline=None)
@given(tasks())
def test_tensorflow_reads_the_same_from_what_is_built(task: tuple[dict[str, list[str]], str, int]) -> None:
    cluster, task_type, number = task
    text = tf_config(cluster, task_type, number)
    spec = check(text)
    assert {job: list(addresses) for job, addresses in spec.cluster.items()} == cluster
    assert (spec.task_type, spec.index) == (task_type, number)
    assert tf_config(spec.cluster, spec.task_type, spec.index) == text

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TF_CONFIG", text)
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        read = resolver.cluster_spec()
        assert read.as_dict() == cluster
        assert (resolver.task_type, resolver.task_id) == (task_type, number)
        assert spec.address == read.task_address(task_type, number)
    if task_type != "evaluator":  # TensorFlow calls an evaluator the chief of a cluster of its own
        assert spec.is_chief == multi_worker_util.is_chief(read, task_type, number)


@pytest.mark.slow
@settings(deadline=None)
@given(tasks(), st.randoms())
def test_all_tasks_of_a_cluster_agree_in_any_order(task: tuple[dict[str, list[str]], str, int], random: Any) -> None:
    texts = all_of(task[0])
    random.shuffle(texts)
    assert sum(spec.is_chief for spec in check_all(texts)) == 1


def test_it_needs_no_tensorflow() -> None:
    program = "import sys, distlab.cluster_spec; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], env=os.environ.copy(), check=False).returncode == 0
