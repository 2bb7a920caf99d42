"""What `make` calls: notebooks and labs from their sources, execution, set-up, grading, the site, slides, benchmarks.

It imports the teaching library `distlab`, never the other way round. `__main__` lists the commands of `distlab` with
their functions; `runner` runs the notebooks.
"""
