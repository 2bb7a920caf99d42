"""Lab 10, large batches: a plan for more ranks, the warm-up step by step, the gradient noise scale.

Begin with `lab` (exercises and targets); `plan`, `warm_up` and `noise_scale` each hold one exercise with its judge,
`hints` has the texts. It may import what all labs share and `large_batch`.
"""
