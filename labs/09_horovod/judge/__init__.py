"""Lab 09: the eight steps from a serial program to Horovod, as a puzzle and as functions.

Begin with `lab` (exercises). `given` is what the student works on, `puzzle` judges the layout of its cards,
`start_and_feeding` and `training` the functions. `fake_horovod` simulates `hvd` with threads, `observe` runs the
functions on it, `observations` are what it sees, `rank_verdicts` what holds for every function, `hints` has the texts.
It may import what all labs share and `data`. Two ranks of Horovod itself run in chapter 09's `two_ranks.py`.
"""
