"""Lab 06: a reduce-scatter, an all-gather and two all-reduces as rank programs, on the virtual cluster.

Begin with `lab` (exercises and judges); `runs` runs an answer, `tagged` recognises its inputs in sums, `diagnosis`
chooses the hint, for sums `wrong_sums`; `hints` has the texts. It may import what all labs share, `collectives`,
`costs`, `simulate`, `draw`.
"""
