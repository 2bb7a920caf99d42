"""What makes the course: notebooks, their execution, pages, tables of the README, recorded results, benchmarks."""
