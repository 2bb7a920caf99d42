"""Lab 14: the eight steps in PyTorch's DDP, its sampler, and what its average means.

Begin with `lab` (exercises and judges). `given` is what the student works on; `puzzle` judges the order of a program,
which `program_run` runs on `fake_torch`, ranks in threads; `sampling` has the sampler's rule, `sampling_judge` and
`sampling_mistakes` are its exercise; `sampler_logs` has programs that use it wrongly, `averages` what DDP averages;
`observe` runs a student's step. `hints` has the texts. Two processes of PyTorch itself run in
`notebooks/programs/14_other_frameworks/two_processes.py`.
"""
