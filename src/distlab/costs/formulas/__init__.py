"""The α–β–γ formulas, and what measured times say about them; imports only runtime and simulate."""
