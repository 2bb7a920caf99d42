"""`make bench`: what has a goal, measured on this machine in one run.

`parts` lists what `measures` can measure, and writes what it gives. No test depends on a figure in it.
"""
