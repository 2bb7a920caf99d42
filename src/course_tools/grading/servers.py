"""The processes that sandboxes come from while notebooks are graded."""

from collections.abc import Sequence

from course_tools.grading.material import Material
from course_tools.sandbox import Server


def server(material: Material, weak: bool) -> Server:
    """One for a lab; see `Server` for `weak`."""
    return Server(sorted(material.modules), weak, material.hidden)


class Servers:
    """One for each lab, with TensorFlow and without it, while such notebooks are graded; use it in a `with` block."""

    def __init__(self, weak: bool) -> None:
        """See `Server` for `weak`."""
        self._weak = weak
        self._servers: dict[tuple[str, bool], Server] = {}
        self._killed: list[Server] = []

    def __enter__(self) -> "Servers":
        return self

    def __exit__(self, *exception: object) -> None:
        self.prepare([])
        for killed in self._killed:
            killed.__exit__()

    def prepare(self, materials: Sequence[Material]) -> None:
        """Have servers for these, and for no others; a new one where the last was killed, as for its memory."""
        needed = {_key(material): material for material in materials}
        for key in set(self._servers) - set(needed):
            self._servers.pop(key).__exit__()
        for key in [key for key, server in self._servers.items() if server.has_ended]:
            self._killed.append(self._servers.pop(key))  # sandboxes that it has started may still work in its folder
        for key in set(needed) - set(self._servers):
            self._servers[key] = server(needed[key], self._weak).__enter__()

    def only(self, material: Material) -> Server:
        """In a forked process: that of one lab."""
        for key, running in self._servers.items():
            if key != _key(material):
                running.leave()
        return self._servers[_key(material)]


def _key(material: Material) -> tuple[str, bool]:
    return material.lab.name, material.lab.tensorflow
