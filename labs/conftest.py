"""The labs' tests share the fixtures of tests/, and import known answers as `lab_06_tests`."""

from tests.conftest import root, runs
from tests.distlab.labs.graded_sample import sample, sample_source
from tests.distlab.labs.packages import make_answers_importable

__all__ = ["root", "runs", "sample", "sample_source"]
make_answers_importable()
