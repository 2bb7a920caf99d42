"""What every process of the course relies on: errors, processes, environment variables, lookups, tables.

It imports nothing else of distlab. Begin with `processes` (start, watch and end programs) and `errors`.
"""
