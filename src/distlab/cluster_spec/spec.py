"""A checked TF_CONFIG, the error of one that cannot work, and the way from the text to its values."""

import ast
import json
from dataclasses import dataclass
from typing import Any, NoReturn

from distlab.runtime.errors import PlainError

LONGEST_VALUE = 60
EXAMPLE = '{"cluster": {"worker": ["host1:2222", "host2:2222"]}, "task": {"type": "worker", "index": 0}}'


class ClusterSpecError(PlainError, ValueError):
    """A TF_CONFIG that cannot work; its text is one sentence that names the field and the fix."""


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


def fail(sentence: str) -> NoReturn:
    """Raise ClusterSpecError with the sentence."""
    raise ClusterSpecError(sentence)


def quoted(value: object) -> str:
    """A value as the user wrote it, cut when it is long."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def parsed(text: str | None) -> Any:
    """The value that the JSON text contains; the sentence about text that is not JSON names the likely habit."""
    if text is None:
        fail(f"TF_CONFIG is not set: set it before TensorFlow starts, for example to {EXAMPLE}")
    if not isinstance(text, str):
        fail(f"TF_CONFIG must be text, not {type(text).__name__}: write json.dumps(...) of it")
    if not text.strip():
        fail(f"TF_CONFIG is empty: set it before TensorFlow starts, for example to {EXAMPLE}")
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
        fail(
            "TF_CONFIG is written as Python, not as JSON: write json.dumps(...) of the dict, which puts double quotes "
            "around every name and leaves out a comma after the last item"
        )
    if isinstance(value, str) and value.lstrip().startswith("{"):
        fail("TF_CONFIG is not JSON, for it begins with a quote: leave out the quotes around the whole text")
    if text.lstrip().startswith("{") and '"' not in text:
        fail(
            "TF_CONFIG is not JSON, for it has no double quotes: in a shell, put single quotes around the whole text, "
            "or the shell takes the double quotes away"
        )
    return fail(f"TF_CONFIG is not JSON (look at {place}): let json.dumps write it")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; Python's reader would keep the last of two equal names and say nothing."""
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            fail(
                f"{quoted(name)} appears {names.count(name)} times in one object of TF_CONFIG: "
                "write it once, with everything that belongs to it"
            )
    return dict(pairs)
