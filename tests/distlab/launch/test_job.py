"""Addresses for a job."""

from distlab.launch.job import free_addresses
from distlab.launch.ports import is_open


def test_addresses_are_different_and_free() -> None:
    addresses = free_addresses(50)
    assert len(set(addresses)) == 50
    assert not any(is_open(address) for address in addresses)
