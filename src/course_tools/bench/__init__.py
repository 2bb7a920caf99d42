"""`make bench`: what has a goal, measured on this machine in one run.

`of_course` measures what people wait for, `engines` the virtual ring and training; `parts` lists them all and writes
what they give. No test depends on a figure in it.
"""
