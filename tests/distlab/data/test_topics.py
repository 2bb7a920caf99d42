"""Texts by topic: equal for equal seeds, and a topic can be learnt from its words."""

import numpy as np

from distlab.data import topics


def test_texts_follow_from_count_and_seed() -> None:
    first, again, other = topics.texts(50, 3), topics.texts(50, 3), topics.texts(50, 4)
    assert np.array_equal(first.words, again.words) and np.array_equal(first.labels, again.labels)
    assert not np.array_equal(first.words, other.words)


def test_most_texts_have_most_topic_words_of_their_own_topic() -> None:
    words, labels = topics.texts(1000, 2)
    of_each = len(topics.TOPICS[topics.NAMES[0]])
    topic = (words - len(topics.COMMON)) // of_each
    counts = np.stack([(topic == number).sum(axis=1) for number in range(len(topics.NAMES))], axis=1)
    assert 0.85 < np.mean(counts.argmax(axis=1) == labels) < 1
