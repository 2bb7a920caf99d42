"""Lab 15: job scripts, a job that is queued again, a scaling study, and what to rent."""
