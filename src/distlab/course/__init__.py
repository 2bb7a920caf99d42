"""What makes the course: notebooks and labs from their sources, execution, pages, tables, recorded results, benchmarks.

It may import everything but `grading` and `sandbox`; nothing but `grading` and `cli` imports it. Begin with `command`,
which has the subcommands; `runner` executes the notebooks. Notebooks and programs use the recorded
results, `LoginNode` and `show_progress`.
"""

from distlab.course import login_node, recorded_results
from distlab.course.login_node import LoginNode
from distlab.course.student_progress import show_progress

__all__ = ["LoginNode", "login_node", "recorded_results", "show_progress"]
