"""A student's code in processes of its own, with limits, that a judge can question like any other answer.

    with Server() as server, SandboxedWork(server, PLAIN) as work:
        work.run_cell("def mean(values): return sum(values) / len(values)", "mean", seconds=10)
        exercise.verdict(work.answer(seconds=10))

It may import `runtime`, `simulate` and, of `labs`, what an answer is; only `grading` imports it. Begin with `process`.
For each sandbox, `fork_server`, which `server` runs, forks a keeper, which ends it, and the `student` process, which
`confine` shuts in. The grader takes only plain data from that (`wire`). Up to 8 ranks of a program have a sandbox each:
see `student_work`.
"""

from course_tools.sandbox.confine import PLAIN, TENSORFLOW, SandboxLimits
from course_tools.sandbox.process import Sandbox, SandboxFailed
from course_tools.sandbox.server import Server
from course_tools.sandbox.student_work import SandboxedWork

__all__ = ["PLAIN", "TENSORFLOW", "Sandbox", "SandboxFailed", "SandboxLimits", "SandboxedWork", "Server"]
