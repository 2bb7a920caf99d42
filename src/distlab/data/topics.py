"""Short texts on four topics, made from a seed: a data set for text classification that needs no download.

A text is a row of word numbers; `sentence` gives the words. Each word is of the text's own topic, or one that all
topics have, or, rarely, of any topic, so that no single word decides.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_COMMON = "and but the this that a an it we they was is from with for by on at near after before again often today"
_TOPICS = {
    "harbour": "boat tide anchor rope sail crane quay gull wave pilot net mast",
    "kitchen": "oven spoon dough salt pan onion broth knife plate flour pie lid",
    "orchard": "apple branch ladder bee basket root twig pear frost seed leaf fence",
    "workshop": "mallet nail saw plank drill bolt vice glue bench chisel clamp screw",
}
COMMON = tuple(_COMMON.split())
TOPICS = {topic: words.split() for topic, words in _TOPICS.items()}
NAMES = tuple(TOPICS)
VOCABULARY = (*COMMON, *(word for words in TOPICS.values() for word in words))
"""The words by number."""
LENGTH = 12
OF_TOPIC, OF_ALL = 0.35, 0.5
"""How likely a word is of the text's topic, or one of COMMON; else it is any word."""


class Texts(NamedTuple):
    """`words`: int32 (n, LENGTH), numbers in VOCABULARY; `labels`: int64 (n,), numbers in NAMES."""

    words: NDArray[np.int32]
    labels: NDArray[np.int64]


def texts(count: int, seed: int) -> Texts:
    """`count` texts on topics in random order; the same for the same count and seed."""
    generator = np.random.default_rng([seed, count])
    labels = generator.integers(0, len(NAMES), count)
    of_each = len(TOPICS[NAMES[0]])
    shape = (count, LENGTH)
    own = len(COMMON) + labels[:, None] * of_each + generator.integers(0, of_each, shape)
    common, anyone = generator.integers(0, len(COMMON), shape), generator.integers(0, len(VOCABULARY), shape)
    kind = generator.random(shape)
    words = np.where(kind < OF_TOPIC, own, np.where(kind < OF_TOPIC + OF_ALL, common, anyone))
    return Texts(words.astype(np.int32), labels.astype(np.int64))


def sentence(words: Iterable[int]) -> str:
    """The words of one text, with spaces between them."""
    return " ".join(VOCABULARY[number] for number in words)
