"""The error of a TF_CONFIG that cannot work, and how its sentence shows what the user wrote."""

import json
from typing import Any, NoReturn

from distlab.runtime.errors import PlainError

LONGEST_VALUE = 60


class ClusterSpecError(PlainError, ValueError):
    """A TF_CONFIG that cannot work; its text is one sentence that names the field and the mend."""


def fail(sentence: str) -> NoReturn:
    """Raise ClusterSpecError with the sentence."""
    raise ClusterSpecError(sentence)


def shown(value: Any) -> str:
    """A value as the user wrote it, cut when it is long."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"
