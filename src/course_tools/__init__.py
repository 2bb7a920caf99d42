"""What `make` calls: notebooks and labs from their sources, execution, set-up, grading, the site, slides, benchmarks.

It imports the teaching library `distlab`, never the other way round. Begin with `cli`, the command `distlab`; `runner`
executes the notebooks.
"""
