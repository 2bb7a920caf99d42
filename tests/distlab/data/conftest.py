"""The mirrors of a data set, for the tests of downloads."""

from tests.distlab.data.mirrors import server, silent_port

__all__ = ["server", "silent_port"]
