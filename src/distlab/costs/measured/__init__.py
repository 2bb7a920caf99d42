"""Your own cluster: `distlab measure` runs on it, and `distlab predict --measured` says what more ranks would do.

Begin with `measurement`, the file between the two. `measure` and `on_ranks` run on the cluster and need Horovod;
`prediction` runs anywhere. `costs.reports` says in words what they give.
"""
