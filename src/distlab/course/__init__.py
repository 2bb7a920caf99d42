"""What makes the course: notebooks and labs from their sources, execution, pages, tables, recorded results, benchmarks.

It may import everything but `grading` and `sandbox`; nothing but `grading` and `cli` imports it. Begin with `command`,
which has the subcommands; `runner` executes the notebooks. Notebooks and programs use the recorded results.
"""

from distlab.course import recorded_results

__all__ = ["recorded_results"]
