"""Lab 11, scaling: a published table audited, two laws fitted, 64 ranks predicted. Begin with `lab`."""
