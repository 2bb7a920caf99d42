"""Lab 10, large batches: plan, warm-up, gradient noise scale."""
