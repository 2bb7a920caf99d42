"""The fixtures of these tests; what they depend on is in `graded_sample`."""

from tests.distlab.labs.graded_sample import sample, sample_source

__all__ = ["sample", "sample_source"]
