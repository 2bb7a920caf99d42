"""Your own cluster: `distlab measure` runs on it, and `distlab predict --measured` says what more ranks would do.

Begin with `measurement`, the file between the two. `ranks`, `training` and `measure` run on the cluster and need
TensorFlow; `prediction`, `report` and `picture` run anywhere. `costs.printed` prints what they say.
"""
