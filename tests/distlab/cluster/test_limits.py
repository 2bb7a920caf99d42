"""Rates and latencies as tc writes them; anything else is one sentence."""

import pytest

from distlab.cluster import LinkLimits, NoSuchLimit


@pytest.mark.parametrize(
    ("rate", "latency", "limits"),
    [
        (None, None, LinkLimits()),
        ("100mbit", None, LinkLimits(100e6)),
        ("1.5Gbit", "5ms", LinkLimits(1.5e9, 0.005)),
        ("64 kbit", "500us", LinkLimits(64e3, 0.0005)),
        (None, "0ms", LinkLimits()),
    ],
)
def test_texts_become_numbers(rate: str | None, latency: str | None, limits: LinkLimits) -> None:
    assert LinkLimits.parse(rate, latency) == limits


@pytest.mark.parametrize(
    ("rate", "latency", "sentence"),
    [
        ("fast", None, "'fast' is no rate; write a number and one of bit, kbit, mbit, gbit, such as '100mbit'."),
        ("100", None, "no rate"),
        ("-1mbit", None, "no rate"),
        ("1bit", None, "from 8kbit to 100gbit"),
        ("0mbit", None, "choose one from 8kbit to 100gbit, or cut the link"),
        ("", None, "no rate"),
        ("900gbit", None, "from 8kbit to 100gbit"),
        (None, "5 minutes", "'5 minutes' is no latency; write a number and one of us, ms, s, such as '5ms'."),
        (None, "11s", "at most 10s"),
    ],
)
def test_a_mistake_is_a_sentence(rate: str | None, latency: str | None, sentence: str) -> None:
    with pytest.raises(NoSuchLimit) as error:
        LinkLimits.parse(rate, latency)
    assert sentence in str(error.value)
