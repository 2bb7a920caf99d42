"""Texts by topic: equal for equal seeds, and a topic can be learnt from its words."""

import numpy as np

from distlab.data import topics


def test_texts_follow_from_count_and_seed() -> None:
    first, again, other = topics.texts(50, 3), topics.texts(50, 3), topics.texts(50, 4)
    assert np.array_equal(first.words, again.words) and np.array_equal(first.labels, again.labels)
    assert not np.array_equal(first.words, other.words)


def test_words_and_labels_are_numbers_of_the_lists() -> None:
    words, labels = topics.texts(400, 1)
    assert (words.dtype, words.shape, labels.dtype) == (np.int32, (400, topics.LENGTH), np.int64)
    assert words.min() >= 0 and words.max() == len(topics.VOCABULARY) - 1
    assert set(labels.tolist()) == set(range(len(topics.NAMES)))


def test_no_word_is_of_two_topics() -> None:
    assert len(set(topics.VOCABULARY)) == len(topics.VOCABULARY)
    assert len({len(words) for words in topics.TOPICS.values()}) == 1


def test_most_texts_have_most_topic_words_of_their_own_topic() -> None:
    words, labels = topics.texts(1000, 2)
    of_each = len(topics.TOPICS[topics.NAMES[0]])
    topic = (words - len(topics.COMMON)) // of_each
    counts = np.stack([(topic == number).sum(axis=1) for number in range(len(topics.NAMES))], axis=1)
    assert 0.85 < np.mean(counts.argmax(axis=1) == labels) < 1


def test_a_sentence_has_the_words_of_a_text() -> None:
    assert topics.sentence(np.array([0, 12])) == f"{topics.VOCABULARY[0]} {topics.VOCABULARY[12]}"
