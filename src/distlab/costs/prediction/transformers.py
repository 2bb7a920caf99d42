"""Transformers by name: parameters, floating-point operations and activations, from the sizes in the papers.

The sizes are in `transformers.toml`.
Sources: N for Narayanan et al., arXiv:2104.04473, equations 2 and 3 and table 1; K for Korthikanti et al.,
arXiv:2205.05198, equations 1 and 2.
"""

import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

BYTES_PER_ACTIVATION = 2

PASSES = 4
"""A training step costs four forward passes: one, one again since activations are recomputed, and two backward."""


@dataclass(frozen=True)
class Transformer:
    """A decoder: `layers` of width `hidden` with `heads` attention heads, `vocabulary` words, `sequence` tokens.

    matrix_parameters: weights of one layer's matrices, 12 hidden² in the GPT family. other_parameters: of one layer,
    biases and normalisation, 13 hidden in the GPT family. learned_positions: whether each position has a vector.
    """

    name: str
    title: str
    layers: int
    hidden: int
    heads: int
    source: str
    matrix_parameters: int
    vocabulary: int = 51_200
    sequence: int = 2_048
    other_parameters: int = 0
    learned_positions: bool = True

    @cached_property
    def parameters(self) -> int:
        """All parameters; for the GPT family 12lh²(1 + 13/(12h) + (V + s)/(12lh)) (N, equation 2)."""
        embedded = self.vocabulary + (self.sequence if self.learned_positions else 0)
        return self.layers * (self.matrix_parameters + self.other_parameters) + embedded * self.hidden

    def training_flops(self, sequences: int) -> float:
        """Floating-point operations of matrix products in one step on this many sequences, recomputation included.

        For the GPT family 96Bslh²(1 + s/(6h) + V/(16lh)) (N, equation 3); the output layer is not recomputed.
        """
        per_token = PASSES * self.layers * (2 * self.matrix_parameters + 4 * self.sequence * self.hidden)
        output = (PASSES - 1) * 2 * self.vocabulary * self.hidden
        return float(sequences * self.sequence * (per_token + output))

    def layer_activation_bytes(self, micro_batch: int, tensor: int = 1) -> float:
        """All that one layer's backward pass needs, on one of `tensor` ranks: sbh(10 + 24/t + 5as/(ht)) (K, eq. 2)."""
        s, b, h, a, t = self.sequence, micro_batch, self.hidden, self.heads, tensor
        return s * b * h * (10 + 24 / t + 5 * a * s / (h * t))

    def boundary_bytes(self, micro_batch: int) -> int:
        """The activations between two layers: 2sbh."""
        return BYTES_PER_ACTIVATION * self.sequence * micro_batch * self.hidden


def _transformer(name: str, hidden: int, **entries: Any) -> Transformer:
    if "matrix_parameters" not in entries:
        entries |= {"matrix_parameters": 12 * hidden**2, "other_parameters": 13 * hidden}
    return Transformer(name, hidden=hidden, **entries)


_CONTENT = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
TRANSFORMERS = {name: _transformer(name, **entries) for name, entries in _CONTENT.items()}
"""Every transformer by its name; with activations recomputed, mixed precision and Adam."""
