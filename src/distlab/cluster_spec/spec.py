"""A TF_CONFIG that has been checked."""

from dataclasses import dataclass


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
