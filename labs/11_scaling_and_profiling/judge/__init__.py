"""Lab 11, scaling: a published table audited, Amdahl's law and α–β fitted, 64 ranks predicted.

Begin with `lab` (exercises and targets). `given` is the published table; `audit`, `fits` and `prediction` hold the
exercises with their judges, `hints` has the texts. It may import what all labs share, `costs`.
"""
