"""Lab 12, model parallelism: schedules of a pipeline, its micro-batches, layers split by columns and by rows.

Begin with `lab` (exercises and targets). `pipeline_runs` runs a student's schedule and draws it, `pipeline_schedules`
and `pipeline_plan` judge; `split_layers` runs a split layer, `split_layer_judges` judges it; `hints` has the texts. It
may import what all labs share, `costs`, `draw`, `model_parallel` and `simulate`.
"""
