"""The labs' tests share the fixtures of tests/."""

from tests.conftest import root, runs
from tests.distlab.labs.graded_sample import sample, sample_source

__all__ = ["root", "runs", "sample", "sample_source"]
