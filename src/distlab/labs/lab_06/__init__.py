"""Lab 06, collectives as rank programs."""
