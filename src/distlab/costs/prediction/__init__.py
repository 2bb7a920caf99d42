"""Step time and scaling efficiency on a described machine, from the formulas; begin with `predict`."""
