"""The fixtures of these tests; what they depend on is in `graded_sample`."""

from tests.distlab.labs.graded_sample import graded, handed_in, isolated, kind, sample, sample_source

__all__ = ["graded", "handed_in", "isolated", "kind", "sample", "sample_source"]
