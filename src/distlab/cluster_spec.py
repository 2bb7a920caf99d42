"""TF_CONFIG, the text that tells a TensorFlow process which cluster it belongs to and which of its tasks it is.

TensorFlow reads it when a strategy is made and says little about mistakes: many show only as a wait without end. Here
every mistake is one sentence that names the field and the mend. TensorFlow is not needed.
"""

import ast
import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from numbers import Integral
from typing import Any, NoReturn

JOBS = ("chief", "worker", "ps", "evaluator")
EXAMPLE = '{"cluster": {"worker": ["host1:2222", "host2:2222"]}, "task": {"type": "worker", "index": 0}}'
LONGEST_VALUE = 60


class ClusterSpecError(ValueError):
    """A TF_CONFIG that cannot work; its text is one sentence that names the field and the mend."""

    def _render_traceback_(self) -> list[str]:
        """What Jupyter shows in place of a traceback."""
        return [f"{type(self).__name__}: {self}"]


@dataclass(frozen=True)
class ClusterSpec:
    """A checked TF_CONFIG: the addresses of each job of the cluster, and which task the process is."""

    cluster: dict[str, tuple[str, ...]]
    task_type: str
    index: int

    @property
    def name(self) -> str:
        """Such as "worker 0"."""
        return f"{self.task_type} {self.index}"

    @property
    def address(self) -> str | None:
        """The task's own "host:port"; None for an evaluator that the cluster does not list."""
        return self.cluster[self.task_type][self.index] if self.task_type in self.cluster else None

    @property
    def is_chief(self) -> bool:
        """Whether this task does what is done once, such as saving: the chief, or worker 0 where there is no chief."""
        return self.task_type == "chief" or (
            "chief" not in self.cluster and (self.task_type, self.index) == ("worker", 0)
        )

    @property
    def worker_count(self) -> int:
        """How many tasks train: workers, and the chief too unless there are parameter servers and it coordinates."""
        chiefs = 0 if "ps" in self.cluster else len(self.cluster.get("chief", ()))
        return chiefs + len(self.cluster.get("worker", ()))


def tf_config(cluster: Mapping[str, Sequence[str]], task_type: str, index: int) -> str:
    """The text of TF_CONFIG for one task; ClusterSpecError if it would not be right."""
    if isinstance(cluster, Mapping):
        cluster = {job: _as_list(addresses) for job, addresses in cluster.items()}
    if isinstance(index, Integral) and not isinstance(index, bool):
        index = int(index)
    config = {"cluster": cluster, "task": {"type": task_type, "index": index}}
    _checked(config)
    return json.dumps(config)


def check(text: str | None) -> ClusterSpec:
    """What the text, or `os.environ.get("TF_CONFIG")`, says; ClusterSpecError names the first mistake in it."""
    return _checked(_parsed(text))


def check_all(texts: Iterable[str | None]) -> list[ClusterSpec]:
    """What the TF_CONFIGs of all processes of a job say; they must name one cluster, and each of its tasks once."""
    specs = []
    for number, text in enumerate(texts, start=1):
        try:
            specs.append(check(text))
        except ClusterSpecError as error:
            raise ClusterSpecError(f"TF_CONFIG number {number}: {error}") from None
    if not specs:
        _fail("there is no TF_CONFIG to check: pass one for each process of the job")
    first = specs[0]
    tasks = set()
    for spec in specs:
        _check_same_cluster(first, spec)
        if (spec.task_type, spec.index) in tasks:
            _fail(f"task is {spec.name} in two of the TF_CONFIGs: give every process an index of its own")
        tasks.add((spec.task_type, spec.index))
    for job, addresses in first.cluster.items():
        for index, address in enumerate(addresses):
            if (job, index) not in tasks:
                _fail(
                    f"cluster.{job}[{index}] is {_shown(address)}, but task is {job} {index} in no TF_CONFIG: "
                    "start a process with this task, or take the address out of every cluster"
                )
    return specs


def _fail(sentence: str) -> NoReturn:
    raise ClusterSpecError(sentence)


def _shown(value: Any) -> str:
    """A value as the user wrote it, cut when it is long."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def _as_list(addresses: Any) -> Any:
    return list(addresses) if isinstance(addresses, Sequence) and not isinstance(addresses, str | bytes) else addresses


def _parsed(text: str | None) -> Any:
    """The value that the text holds; how it fails to be JSON says which habit is behind it."""
    if text is None:
        _fail(f"TF_CONFIG is not set: set it before TensorFlow starts, for example to {EXAMPLE}")
    if not isinstance(text, str):
        _fail(f"TF_CONFIG must be text, not {type(text).__name__}: write json.dumps(...) of it")
    if not text.strip():
        _fail(f"TF_CONFIG is empty: set it before TensorFlow starts, for example to {EXAMPLE}")
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except ClusterSpecError:
        raise
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
    except (ValueError, RecursionError):
        place = "its numbers and brackets"
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        value = None
    if isinstance(value, dict):
        _fail(
            "TF_CONFIG is written as Python, not as JSON: write json.dumps(...) of the dict, which puts double quotes "
            "around every name and leaves out a comma after the last item"
        )
    if isinstance(value, str) and value.lstrip().startswith("{"):
        _fail("TF_CONFIG is not JSON, for it begins with a quote: leave out the quotes around the whole text")
    if text.lstrip().startswith("{") and '"' not in text:
        _fail(
            "TF_CONFIG is not JSON, for it has no double quotes: in a shell, put single quotes around the whole text, "
            "or the shell takes the double quotes away"
        )
    _fail(f"TF_CONFIG is not JSON (look at {place}): let json.dumps write it")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; Python's reader would keep the last of two equal names and say nothing."""
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            _fail(
                f"{_shown(name)} stands {names.count(name)} times in one object of TF_CONFIG: "
                "write it once, with everything that belongs to it"
            )
    return dict(pairs)


def _checked(config: Any) -> ClusterSpec:
    if isinstance(config, str):
        _fail("TF_CONFIG is JSON of a text, not of an object: apply json.dumps once, not twice")
    if not isinstance(config, dict):
        _fail(f'TF_CONFIG is {_shown(config)}, not an object: write {{"cluster": ..., "task": ...}}')
    for field, mend in [
        ("cluster", 'add "cluster" with the addresses of each job, such as {"worker": ["host1:2222", "host2:2222"]}'),
        ("task", 'add "task", which says who this process is, such as {"type": "worker", "index": 0}'),
    ]:
        if field not in config:
            _fail(f"{field} is missing from TF_CONFIG: {mend}{_instead(field, config)}")
        if not isinstance(config[field], dict):
            _fail(f"{field} is {_shown(config[field])}, not an object: {mend}")
    cluster = _checked_cluster(config["cluster"])
    return _checked_task(config["task"], cluster)


def _instead(name: str, found: Iterable[Any]) -> str:
    """A hint at a name that is meant to be `name`, if there is one."""
    written = {str(one).lower(): one for one in found}
    close = difflib.get_close_matches(name, written, n=1)
    return f" (there is {_shown(written[close[0]])})" if close else ""


def _checked_job(field: str, job: Any) -> None:
    if job in JOBS:
        return
    if job == "master":
        _fail(f'{field} is "master": TensorFlow 2 calls it "chief"')
    close = difflib.get_close_matches(str(job).lower(), JOBS, n=1)
    mend = _shown(close[0]) if close else "one of " + ", ".join(map(_shown, JOBS))
    _fail(f"{field} is {_shown(job)}, which TensorFlow does not know: write {mend}")


def _checked_cluster(cluster: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    if not cluster:
        _fail('cluster is empty: list the addresses of each job, such as {"worker": ["host1:2222", "host2:2222"]}')
    owners: dict[tuple[str, str], str] = {}
    hosts: dict[str, str] = {}
    for job, addresses in cluster.items():
        _checked_job("a name in cluster", job)
        if not isinstance(addresses, list):
            mend = f"write [{_shown(addresses)}]" if isinstance(addresses, str) else 'write ["host1:2222", ...]'
            _fail(f"cluster.{job} is {_shown(addresses)}, not a list of addresses: {mend}")
        if not addresses:
            _fail(f'cluster.{job} is an empty list: give an address "host:port" for each task, or leave {job} out')
        if job in ("chief", "evaluator") and len(addresses) > 1:
            others = "list the others as worker" if job == "chief" else "keep one"
            _fail(f"cluster.{job} has {len(addresses)} addresses, but there is at most one {job}: {others}")
        for index, address in enumerate(addresses):
            field = f"cluster.{job}[{index}]"
            host, port = _checked_address(field, address)
            hosts[field] = host
            owner = owners.setdefault(("" if _is_this_host(host) else host, port), field)
            if owner != field:
                mend = "list the chief only as chief" if "cluster.chief[0]" in (owner, field) else "give each its own"
                _fail(f"{owner} and {field} are the same address {_shown(address)}: {mend}")
    if "worker" not in cluster and "chief" not in cluster:
        _fail("cluster has no worker: nobody would train, so add their addresses as worker")
    _check_hosts(hosts)
    return {job: tuple(addresses) for job, addresses in cluster.items()}


def _checked_address(field: str, address: Any) -> tuple[str, str]:
    """Host, in small letters, and port."""
    is_ = f"{field} is {_shown(address)}"
    if not isinstance(address, str):
        _fail(f'{is_}, not a text: write "host:port"')
    if "://" in address or "/" in address:
        _fail(f'{is_}, a URL: leave out everything but "host:port"')
    if not address or any(character.isspace() or character == "," for character in address):
        _fail(f'{is_}, not one address: write "host:port" without spaces or commas, one text per task')
    host, colon, port = address.rpartition(":")
    if address.count(":") > 1 and not (host.startswith("[") and host.endswith("]")):
        _fail(f'{is_}, an address with several colons: write IPv6 as "[address]:port", anything else as "host:port"')
    if not colon or not port:
        _fail(f"{is_}, without a port: write {_shown(address.rstrip(':') + ':2222')}, with a free port")
    if not host or host == "[]":
        _fail(f"{is_}, without a host: write the host before the port, {_shown(f'host:{port}')}")
    if not (port.isascii() and port.isdigit()):
        _fail(f"{is_}, but the port {_shown(port)} is not a number: write a port from 1 to 65535")
    if len(port) > 5 or not 1 <= int(port) <= 65535:
        _fail(f"{is_}, but there is no port {_shown(port)}: write one from 1 to 65535")
    return host.lower().strip("[]"), str(int(port))


def _is_this_host(host: str) -> bool:
    """Whether the name means, on every machine, that machine itself."""
    if host == "localhost" or host.startswith("localhost.") or host in ("ip6-localhost", "ip6-loopback"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _check_hosts(hosts: dict[str, str]) -> None:
    """An address that means "this machine" is good only if all addresses do."""
    others = [host for host in hosts.values() if not _is_this_host(host)]
    for field, host in hosts.items():
        if others and _is_this_host(host):
            _fail(
                f"{field} is on {_shown(host)}, which tasks on other hosts ({_shown(others[0])}) cannot reach: "
                "write the host's name or address in the network"
            )


def _checked_task(task: dict[str, Any], cluster: dict[str, tuple[str, ...]]) -> ClusterSpec:
    for field, mend in [("type", 'such as "worker"'), ("index", "such as 0")]:
        if field not in task:
            _fail(f"task.{field} is missing: add it, {mend}{_instead(field, task)}")
    job, index = task["type"], task["index"]
    _checked_job("task.type", job)
    if job not in cluster and job != "evaluator":  # An evaluator may stay outside the cluster: nobody calls it.
        known = " or ".join(map(_shown, cluster))
        _fail(
            f"task.type is {_shown(job)}, but cluster has no {job}: write {known}, or add the address to cluster.{job}"
        )
    if isinstance(index, bool) or not isinstance(index, int):
        is_quoted = isinstance(index, str) and index.isascii() and index.isdigit()
        mend = f"write {index} without quotes" if is_quoted else "write 0 for the first task of its type"
        _fail(f"task.index is {_shown(index)}, not a whole number: {mend}")
    count = len(cluster.get(job, ("",)))
    if not 0 <= index < count:
        has = (
            f"cluster.{job} has {count} address{'es' if count > 1 else ''}" if job in cluster else f"there is one {job}"
        )
        mend = "write 0" if count == 1 else f"write a number from 0 to {count - 1}"
        more = f", or add the missing addresses to cluster.{job}" if index >= count and job in ("worker", "ps") else ""
        _fail(f"task.index is {_shown(index)}, but {has}: {mend}{more}")
    return ClusterSpec(cluster, job, index)


def _check_same_cluster(first: ClusterSpec, spec: ClusterSpec) -> None:
    for job in JOBS:
        one, other = first.cluster.get(job, ()), spec.cluster.get(job, ())
        if one != other:
            how = "lists the same addresses in another order" if sorted(one) == sorted(other) else "differs"
            _fail(
                f"cluster.{job} {how} in the TF_CONFIGs of {first.name} and {spec.name}: "
                "give every process the same cluster, and let only task differ"
            )
