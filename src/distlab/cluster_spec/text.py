"""From the text of TF_CONFIG to its values; how it fails to be JSON says which habit is behind it."""

import ast
import json
from typing import Any

from distlab.cluster_spec.mistakes import ClusterSpecError, fail, shown

EXAMPLE = '{"cluster": {"worker": ["host1:2222", "host2:2222"]}, "task": {"type": "worker", "index": 0}}'


def parsed(text: str | None) -> Any:
    """The value that the text holds; how it fails to be JSON says which habit is behind it."""
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
                f"{shown(name)} stands {names.count(name)} times in one object of TF_CONFIG: "
                "write it once, with everything that belongs to it"
            )
    return dict(pairs)
