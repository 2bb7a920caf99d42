"""Lab 03, mirrored training: numbers of a global batch, auto-sharding, a mirrored program.

Begin with `lab` (exercises). `four_numbers`, `mirrored_program` and `auto_sharding` judge one exercise each, `observe`
looks at the mirrored program, `hints` has the texts.
"""
