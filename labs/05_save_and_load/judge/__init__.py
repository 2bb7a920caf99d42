"""Lab 05, save and load: a run that resumes as if it had never stopped, and what a broken checkpoint lacks.

Begin with `lab` (exercises and targets). `positions`, `resuming`, `missing_parts` and `whole_checkpoints` hold the
exercises with their judges; `broken_runs` computes the runs that resume without a part of their state. `given` and
`runs`, the training that the student resumes, and `observe`, which interrupts it, work next to the student's code;
`hints` has the texts. It may import what all labs share.
"""
