"""Lab 12, model parallelism: pipeline schedules, a plan, layers split by columns and rows."""
