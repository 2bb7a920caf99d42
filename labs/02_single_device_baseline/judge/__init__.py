"""Lab 02, a single device: the lecture's program diagnosed and fixed."""
