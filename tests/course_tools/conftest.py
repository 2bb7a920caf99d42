"""The sample lab, as in `graded_sample`, for the tests of lab sources, jails and grading."""

from tests.distlab.labs.graded_sample import graded, handed_in, isolated, kind, sample, sample_source

__all__ = ["graded", "handed_in", "isolated", "kind", "sample", "sample_source"]
