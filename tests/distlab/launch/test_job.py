"""Addresses for a job."""

import socket

from distlab.launch.job import free_addresses, is_open


def test_addresses_are_different_and_free() -> None:
    addresses = free_addresses(50)
    assert len(set(addresses)) == 50
    assert not any(map(is_open, addresses))


def test_an_address_where_somebody_listens_is_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert is_open(f"127.0.0.1:{server.getsockname()[1]}")
