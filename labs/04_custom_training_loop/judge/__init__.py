"""Lab 04, a custom loop: by what to divide losses and gradients, so that replicas compute what one device does.

Begin with `lab` (exercises and targets); `factors`, `replica_losses`, `penalty`, `accumulation` and `masked_losses`
hold the exercises with their judges, `accumulation_mistakes` what usual mistakes give. `replica_values` compares the
numbers of each replica, `hints` has the texts. It may import what all labs share.
"""
