"""What a TF_CONFIG says, and the sentence about one that cannot work."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from distlab.runtime.errors import PlainError

JOBS = ("chief", "worker", "ps", "evaluator")
EXAMPLE = '{"cluster": {"worker": ["host1:2222", "host2:2222"]}, "task": {"type": "worker", "index": 0}}'
LONGEST_VALUE = 60


class ClusterSpecError(PlainError, ValueError):
    """A TF_CONFIG that cannot work; its text is one sentence that names the field and the fix."""


@dataclass(frozen=True)
class ClusterSpec:
    """A checked TF_CONFIG: the addresses of each job of the cluster, and which task the process is."""

    cluster: dict[str, tuple[str, ...]]
    task_type: str
    index: int
    address: str | None
    """The task's own "host:port"; None for an evaluator that the cluster does not list."""

    @property
    def name(self) -> str:
        """Such as "worker 0"."""
        return f"{self.task_type} {self.index}"

    @property
    def is_chief(self) -> bool:
        """Whether this task does what is done once, such as saving: the chief, or worker 0 where there is no chief."""
        return self.task_type == "chief" or (
            "chief" not in self.cluster and (self.task_type, self.index) == ("worker", 0)
        )


def tf_config(cluster: Mapping[str, Sequence[str]], task_type: str, index: int) -> str:
    """The text of TF_CONFIG for one task; ClusterSpecError if it would not be right."""
    text = json.dumps({"cluster": cluster, "task": {"type": task_type, "index": index}}, default=int)
    check(text)
    return text


def check(text: str | None) -> ClusterSpec:
    """What the text, or `os.environ.get("TF_CONFIG")`, says; ClusterSpecError names the first mistake in it.

    As TensorFlow does, it accepts an index that is written as text, and a job whose addresses are named by their
    indices, `{"worker": {"1": "host1:2222"}}`: a sparse cluster, in which a process knows only some of the others.
    """
    config = _parsed(text)
    for field, fix in [
        ("cluster", 'add "cluster" with the addresses of each job, such as {"worker": ["host1:2222", "host2:2222"]}'),
        ("task", 'add "task", which says who this process is, such as {"type": "worker", "index": 0}'),
    ]:
        if not isinstance(config.get(field), dict):
            fail(f"{field} is missing from TF_CONFIG, or is not an object: {fix}")
    cluster = {job: _numbered(job, addresses) for job, addresses in config["cluster"].items()}
    if "worker" not in cluster and "chief" not in cluster:
        fail("cluster has no worker: nobody would train, so add their addresses as worker")
    if "evaluator" in cluster and "ps" in cluster:
        fail("cluster.evaluator makes the chief of a ps wait for it: leave it out, task.type says enough")
    _check_addresses(cluster)
    job, index = _checked_task(config["task"], cluster)
    listed = {job: tuple(addresses.values()) for job, addresses in cluster.items()}
    return ClusterSpec(listed, job, index, cluster.get(job, {}).get(index))


def check_all(texts: Iterable[str | None]) -> list[ClusterSpec]:
    """What the TF_CONFIGs of all processes of a job say; they must name one cluster, and each of its tasks once."""
    specs = [check(text) for text in texts]
    tasks = [(spec.task_type, spec.index) for spec in specs]
    for spec, task in zip(specs, tasks, strict=True):
        if spec.cluster != specs[0].cluster:
            fail(f"cluster differs in {specs[0].name} and {spec.name}: give all the same one, in the same order")
        if tasks.count(task) > 1:
            fail(f"task is {spec.name} in {tasks.count(task)} TF_CONFIGs: give every process its own index")
    for job, addresses in specs[0].cluster.items() if specs else ():
        for index in range(len(addresses)):
            if (job, index) not in tasks:
                fail(
                    f"cluster.{job}[{index}] is the task of no TF_CONFIG: start {job} {index}, or leave its address out"
                )
    return specs


def fail(sentence: str) -> NoReturn:
    """Raise ClusterSpecError with the sentence."""
    raise ClusterSpecError(sentence)


def quoted(value: object) -> str:
    """A value as the user wrote it, cut when it is long."""
    text = json.dumps(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def _parsed(text: str | None) -> dict[str, Any]:
    if not text or not text.strip():
        fail(f"TF_CONFIG is not set: set it before TensorFlow starts, for example to {EXAMPLE}")
    try:
        config = json.loads(text)
    except json.JSONDecodeError as error:
        if "'" in text:
            fail(
                "TF_CONFIG is written as Python, not as JSON: write json.dumps(...) of the dict, which puts double "
                "quotes around every name and leaves out a comma after the last item"
            )
        place = f"line {error.lineno}, column {error.colno}"
        fail(f"TF_CONFIG is not JSON (look at {place}): let json.dumps write it, in a shell within single quotes")
    if not isinstance(config, dict):
        fail(f"TF_CONFIG is {quoted(config)}, not an object: write for example {EXAMPLE}")
    return config


def _check_job(field: str, job: object) -> None:
    if job not in JOBS:
        fail(f"{field} is {quoted(job)}, which TensorFlow does not know: write one of {', '.join(map(quoted, JOBS))}")


def _numbered(job: str, addresses: Any) -> dict[int, Any]:
    """The addresses of a job by their indices."""
    _check_job("a name in cluster", job)
    numbered = {}
    if isinstance(addresses, list):
        numbered = dict(enumerate(addresses))
    elif isinstance(addresses, dict) and all(number.isdecimal() for number in addresses):
        numbered = {int(number): address for number, address in addresses.items()}
    if not numbered:
        fail(f'cluster.{job} is {quoted(addresses)}, not a list of addresses: write ["host1:2222", ...]')
    if job in ("chief", "evaluator") and len(numbered) > 1:
        fail(f"cluster.{job} has {len(numbered)} addresses: there is at most one {job}, so keep one")
    return numbered


def _check_addresses(cluster: dict[str, dict[int, Any]]) -> None:
    """Each has a form that TensorFlow can use, and all tasks can reach each other."""
    fields = {f"cluster.{job}[{index}]": each for job, all_ in cluster.items() for index, each in all_.items()}
    hosts, owners = {}, dict[tuple[str, int], str]()
    for field, address in fields.items():
        match = re.fullmatch(r"(\[[^][]+\]|[^][/:,\s]+)(?::([0-9]{0,5}))?", str(address))
        if match is None:
            fail(f'{field} is {quoted(address)}, not an address: write "host:port", or IPv6 as "[address]:port"')
        if not match[2]:
            fail(f"{field} is {quoted(address)}, without a port: write {quoted(f'{match[1]}:2222')}, with a free port")
        host, port = match[1].lower().strip("[]"), int(match[2])
        if not 1 <= port <= 65535:
            fail(f"{field} is {quoted(address)}, but there is no port {port}: write one from 1 to 65535")
        hosts[field] = host
        owner = owners.setdefault(("" if _is_this_host(host) else host, port), field)
        if owner != field:
            fix = "list the chief only as chief" if "cluster.chief[0]" in (owner, field) else "give each its own"
            fail(f"{owner} and {field} are the same address {quoted(address)}: {fix}")
    others = [host for host in hosts.values() if not _is_this_host(host)]
    for field, host in hosts.items():
        if others and _is_this_host(host):
            fail(
                f"{field} is on {quoted(host)}, which tasks on other hosts ({quoted(others[0])}) cannot reach: "
                "write the host's name or address in the network"
            )


def _is_this_host(host: str) -> bool:
    """Whether the name means, on every machine, that machine itself."""
    return host in ("localhost", "::1", "0.0.0.0") or host.startswith("127.")


def _checked_task(task: dict[str, Any], cluster: dict[str, dict[int, Any]]) -> tuple[str, int]:
    """Its type and its index."""
    job, index = task.get("type"), task.get("index", "")
    _check_job("task.type", job)
    if job not in cluster and job != "evaluator":  # An evaluator may stay outside the cluster: nobody calls it.
        fail(f"task.type is {quoted(job)}, but cluster has no {job}: change it, or add an address to cluster.{job}")
    if isinstance(index, bool) or not re.fullmatch(r"-?\d+", str(index)):
        fail(f"task.index is {quoted(index)}, not a whole number: write 0 for the first task of its type")
    addresses = cluster.get(str(job), {0: ""})
    count = len(addresses)
    if int(index) not in addresses:
        if list(addresses) != list(range(count)):
            known = ", ".join(map(str, addresses))
            fail(f"task.index is {index}, and the sparse cluster.{job} has {known}: add its address")
        fix = f"write a number from 0 to {count - 1}, or add the missing addresses to cluster.{job}"
        fail(f"task.index is {quoted(index)}, but cluster.{job} has {count} addresses: {fix}")
    return str(job), int(index)
