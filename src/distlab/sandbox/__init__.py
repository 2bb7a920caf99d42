"""A student's code in a process of its own, with limits, that a judge can question like any other answer.

    with Server() as server, SandboxedWork(server, limits, files) as work:
        work.run_cell("def mean(values): return sum(values) / len(values)", "mean", seconds=10)
        exercise.verdict(work.answer(seconds=10))

Who is who, from the outside to the inside:

- the grader, which judges. It takes nothing from a student's process but plain data (`wire`), within a deadline.
- the `server`: a process that has imported NumPy and the course's modules once and forks; it knows no secret.
- a `keeper` for each sandbox, outside of it: ends what is in it as soon as the grader asks, dies, or a limit is passed.
- the student's process (`student`), first process of namespaces of its own where the system allows it (`confine`): it
  sees no other process, no network but its own loopback, no file of this machine but Python and the course's
  packages (read-only), and a small disk in memory that goes with it.

A rank program runs with every rank in a sandbox of its own (up to 8), so that what one rank knows can reach another
only through messages, which the grader's virtual cluster counts.
"""

from distlab.sandbox.limits import Limits
from distlab.sandbox.process import Sandbox
from distlab.sandbox.server import Server
from distlab.sandbox.work import SandboxedWork

__all__ = ["Limits", "Sandbox", "SandboxedWork", "Server"]
