"""A student's code in a jail, a process of its own with limits, that a judge can question like any other answer.

    with SandboxedWork(Setting()) as work:
        work.run_cell("def mean(values): return sum(values) / len(values)", seconds=10)
        exercise.verdict(work.answer(seconds=10))

`jail` makes the command that starts one, `work` holds those of a student, and `student` is what runs inside. The grader
takes only plain data from there (`wire`). `protections` tries what holds on this machine.
"""

from course_tools.sandbox.jail import PLAIN, TENSORFLOW, Kind, Setting
from course_tools.sandbox.work import SandboxedWork, SandboxFailed

__all__ = ["PLAIN", "TENSORFLOW", "Kind", "SandboxFailed", "SandboxedWork", "Setting"]
