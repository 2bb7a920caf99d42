"""The exercises of lab 03: the numbers of a mirrored training, a serial program made mirrored, the auto-shard table."""

from distlab.labs.lab import Exercise, Lab
from lab_03.auto_sharding import judge_samples
from lab_03.four_numbers import judge_numbers
from lab_03.mirrored_program import judge_mirrored

LAB = Lab(
    "03_mirrored_strategy",
    [
        Exercise("numbers", 4, judge_numbers),
        Exercise("mirrored", 6, judge_mirrored),
        Exercise("samples_seen", 5, judge_samples),
    ],
    tensorflow=True,
)
