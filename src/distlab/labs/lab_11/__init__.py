"""Lab 11, scaling: an audit of published numbers, fits, a prediction."""
