"""Lab 12, model parallelism: schedules of a pipeline, layers split by columns and rows. Begin with `lab`."""
