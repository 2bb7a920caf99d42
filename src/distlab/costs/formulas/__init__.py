"""Closed formulas of collectives: steps and bytes, fits of α, β and γ, bandwidths, Amdahl's law."""
