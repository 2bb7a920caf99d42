"""Lab 10, large batches: a plan for more ranks, the warm-up, the gradient noise scale. Begin with `lab`."""
