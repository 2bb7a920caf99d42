"""What a cluster and a task must be."""

import difflib
from collections.abc import Iterable
from ipaddress import ip_address
from typing import Any

from distlab.cluster_spec.spec import ClusterSpec, fail, quoted

JOBS = ("chief", "worker", "ps", "evaluator")


def checked(config: object) -> ClusterSpec:
    """The values of a TF_CONFIG, if nothing in them is wrong."""
    if isinstance(config, str):
        fail("TF_CONFIG is JSON of a text, not of an object: apply json.dumps once, not twice")
    if not isinstance(config, dict):
        fail(f'TF_CONFIG is {quoted(config)}, not an object: write {{"cluster": ..., "task": ...}}')
    for field, fix in [
        ("cluster", 'add "cluster" with the addresses of each job, such as {"worker": ["host1:2222", "host2:2222"]}'),
        ("task", 'add "task", which says who this process is, such as {"type": "worker", "index": 0}'),
    ]:
        if field not in config:
            fail(f"{field} is missing from TF_CONFIG: {fix}{_instead(field, config)}")
        if not isinstance(config[field], dict):
            fail(f"{field} is {quoted(config[field])}, not an object: {fix}")
    cluster = _checked_cluster(config["cluster"])
    return _checked_task(config["task"], cluster)


def _instead(name: str, written_names: Iterable[object]) -> str:
    """A hint at a name that is meant to be `name`, if there is one."""
    written = {str(written_name).lower(): written_name for written_name in written_names}
    close = difflib.get_close_matches(name, written, n=1)
    return f" (there is {quoted(written[close[0]])})" if close else ""


def _checked_job(field: str, job: object) -> None:
    if job in JOBS:
        return
    if job == "master":
        fail(f'{field} is "master": TensorFlow 2 calls it "chief"')
    close = difflib.get_close_matches(str(job).lower(), JOBS, n=1)
    fix = quoted(close[0]) if close else "one of " + ", ".join(map(quoted, JOBS))
    fail(f"{field} is {quoted(job)}, which TensorFlow does not know: write {fix}")


def _checked_cluster(cluster: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    if not cluster:
        fail('cluster is empty: list the addresses of each job, such as {"worker": ["host1:2222", "host2:2222"]}')
    owners: dict[tuple[str, str], str] = {}
    hosts: dict[str, str] = {}
    for job, addresses in cluster.items():
        _checked_job("a name in cluster", job)
        if not isinstance(addresses, list):
            fix = f"write [{quoted(addresses)}]" if isinstance(addresses, str) else 'write ["host1:2222", ...]'
            fail(f"cluster.{job} is {quoted(addresses)}, not a list of addresses: {fix}")
        if not addresses:
            fail(f'cluster.{job} is an empty list: give an address "host:port" for each task, or leave {job} out')
        if job in ("chief", "evaluator") and len(addresses) > 1:
            others = "list the others as worker" if job == "chief" else "keep one"
            fail(f"cluster.{job} has {len(addresses)} addresses, but there is at most one {job}: {others}")
        for index, address in enumerate(addresses):
            field = f"cluster.{job}[{index}]"
            host, port = _checked_address(field, address)
            hosts[field] = host
            owner = owners.setdefault(("" if _is_this_host(host) else host, port), field)
            if owner != field:
                fix = "list the chief only as chief" if "cluster.chief[0]" in (owner, field) else "give each its own"
                fail(f"{owner} and {field} are the same address {quoted(address)}: {fix}")
    if "worker" not in cluster and "chief" not in cluster:
        fail("cluster has no worker: nobody would train, so add their addresses as worker")
    _check_hosts(hosts)
    return {job: tuple(addresses) for job, addresses in cluster.items()}


def _checked_address(field: str, address: object) -> tuple[str, str]:
    """Host, in small letters, and port."""
    is_ = f"{field} is {quoted(address)}"
    if not isinstance(address, str):
        fail(f'{is_}, not a text: write "host:port"')
    if "://" in address or "/" in address:
        fail(f'{is_}, a URL: leave out everything but "host:port"')
    if not address or any(character.isspace() or character == "," for character in address):
        fail(f'{is_}, not one address: write "host:port" without spaces or commas, one text per task')
    host, colon, port = address.rpartition(":")
    if address.count(":") > 1 and not (host.startswith("[") and host.endswith("]")):
        fail(f'{is_}, an address with several colons: write IPv6 as "[address]:port", anything else as "host:port"')
    if not colon or not port:
        fail(f"{is_}, without a port: write {quoted(address.rstrip(':') + ':2222')}, with a free port")
    if not host or host == "[]":
        fail(f"{is_}, without a host: write the host before the port, {quoted(f'host:{port}')}")
    if not (port.isascii() and port.isdigit()):
        fail(f"{is_}, but the port {quoted(port)} is not a number: write a port from 1 to 65535")
    if len(port) > 5 or not 1 <= int(port) <= 65535:
        fail(f"{is_}, but there is no port {quoted(port)}: write one from 1 to 65535")
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
            fail(
                f"{field} is on {quoted(host)}, which tasks on other hosts ({quoted(others[0])}) cannot reach: "
                "write the host's name or address in the network"
            )


def _checked_task(task: dict[str, Any], cluster: dict[str, tuple[str, ...]]) -> ClusterSpec:
    for field, fix in [("type", 'such as "worker"'), ("index", "such as 0")]:
        if field not in task:
            fail(f"task.{field} is missing: add it, {fix}{_instead(field, task)}")
    job, index = task["type"], task["index"]
    _checked_job("task.type", job)
    if job not in cluster and job != "evaluator":  # An evaluator may stay outside the cluster: nobody calls it.
        known = " or ".join(map(quoted, cluster))
        fail(
            f"task.type is {quoted(job)}, but cluster has no {job}: write {known}, or add the address to cluster.{job}"
        )
    if isinstance(index, bool) or not isinstance(index, int):
        is_quoted = isinstance(index, str) and index.isascii() and index.isdigit()
        fix = f"write {index} without quotes" if is_quoted else "write 0 for the first task of its type"
        fail(f"task.index is {quoted(index)}, not a whole number: {fix}")
    count = len(cluster.get(job, ("",)))
    if not 0 <= index < count:
        has = (
            f"cluster.{job} has {count} address{'es' if count > 1 else ''}" if job in cluster else f"there is one {job}"
        )
        fix = "write 0" if count == 1 else f"write a number from 0 to {count - 1}"
        more = f", or add the missing addresses to cluster.{job}" if index >= count and job in ("worker", "ps") else ""
        fail(f"task.index is {quoted(index)}, but {has}: {fix}{more}")
    return ClusterSpec(cluster, job, index)


def check_same_cluster(first: ClusterSpec, spec: ClusterSpec) -> None:
    """Two processes of one job must name the same cluster, in the same order."""
    for job in JOBS:
        addresses, first_addresses = spec.cluster.get(job, ()), first.cluster.get(job, ())
        if addresses != first_addresses:
            is_permuted = sorted(addresses) == sorted(first_addresses)
            difference = "lists the same addresses in another order" if is_permuted else "differs"
            fail(
                f"cluster.{job} {difference} in the TF_CONFIGs of {first.name} and {spec.name}: "
                "give every process the same cluster, and let only task differ"
            )
