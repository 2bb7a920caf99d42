"""The exercises of lab 09: the eight Horovod steps as a puzzle, then as functions that run on the fake Horovod."""

from distlab.labs.lab import Exercise, Lab
from lab_09 import given
from lab_09.puzzle import judge_program
from lab_09.start_and_feeding import judge_feeding, judge_start
from lab_09.training import judge_training

LAB = Lab(
    "09_horovod",
    [
        Exercise("program", 8, judge_program),
        Exercise("start", 2, judge_start),
        Exercise("feeding", 4, judge_feeding),
        Exercise("training", 8, judge_training),
    ],
    tensorflow=True,
    given_module=given,
)
