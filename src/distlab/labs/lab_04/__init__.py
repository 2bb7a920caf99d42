"""Lab 04, a custom loop: by what to divide losses and gradients, so that replicas compute what one device does.

Begin with `lab` (exercises and targets); `factors`, `replica_losses`, `accumulation` and `masked_losses` hold the
exercises with their judges, `replica_values` compares what they give for each replica, `hints` has the texts. It may
import what all labs share.
"""
