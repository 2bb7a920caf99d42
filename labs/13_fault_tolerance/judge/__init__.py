"""Lab 13, fault tolerance: six sick jobs diagnosed and cured by their logs, and the interval between checkpoints.

Begin with `lab` (exercises and targets). `jobs` draws the logs, `given` shows six of them; `diagnosis` and `interval`
hold the exercises with their judges, `hints` the texts. It may import what all labs share.
"""
