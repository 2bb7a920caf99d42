"""What every process of the course relies on: errors, processes, environment variables."""
