"""Networks that are split: layers by stages, optimizer state by ranks."""
