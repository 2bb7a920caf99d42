"""The runs of collectives, step by step: strips, animation, legend, faults."""
