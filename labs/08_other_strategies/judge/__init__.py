"""Lab 08, parameter servers: how stale gradients are, who should wait for whom, and shares for slow workers.

Begin with `lab` (exercises and targets); `staleness`, `bound`, `choice` and `shares` hold the exercises with their
judges, `clusters` and `choice_mistakes` what `choice` compares with, `hints` the texts. It may
import what all labs share.
"""
