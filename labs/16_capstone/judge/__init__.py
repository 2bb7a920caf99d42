"""Lab 16, the capstone: a serial program nobody has seen, distributed, measured, predicted, and reported.

Begin with `lab` (exercises and judges). `training` and `comparison` judge the program, which `observe` runs on the fake
Horovod or on the strategy of `fake_cluster`; `classifier` is its model in NumPy; `measured`, `prediction`, `job_script`
and `report` judge the other parts. It may import what all labs share, `costs`, `data` and `models`.
"""
