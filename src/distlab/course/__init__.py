"""What makes the course: notebooks and labs from their sources, execution, pages, tables, recorded results, benchmarks.

It may import everything but `grading` and `sandbox`; nothing but `grading` and `cli` imports it. Begin with `command`,
which has the subcommands; `runner` executes the notebooks. Notebooks and programs use the recorded
results and `LoginNode`.
"""

from distlab.course import login_node, recorded_results
from distlab.course.login_node import LoginNode

__all__ = ["LoginNode", "login_node", "recorded_results"]
