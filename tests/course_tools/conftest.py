"""The sample lab for the tests of lab sources."""

from tests.distlab.labs.graded_sample import sample_source

__all__ = ["sample_source"]
