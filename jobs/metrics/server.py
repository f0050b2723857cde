"""Metrics served for Prometheus over HTTP, made when they are asked for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prometheus_client import start_http_server
from prometheus_client.core import Metric
from prometheus_client.registry import Collector, CollectorRegistry

from coordinator_core.errors import InputError, UsageError
from coordinator_core.whole_numbers import whole_number
from jobs.metrics.families import GroupFacts

MOST_PORT = 65_535


class _Current(Collector):
    """The facts of the moment in which they are collected."""

    def __init__(self, facts: Callable[[], GroupFacts]) -> None:
        self._facts = facts

    def collect(self) -> Iterator[Metric]:
        return self._facts().collect()


@contextmanager
def served(address: str, facts: Callable[[], GroupFacts]) -> Iterator[int]:
    """Serve the facts at ``HOST:PORT`` or ``:PORT`` (all addresses) meanwhile; give the port, which 0 leaves to chance.

    ``facts`` is called in another thread, once for each request.

    Raises:
        UsageError: that is not an address.
        InputError: the port is in use, or this process may not listen there.
    """
    host, port = _parts(address)
    # Else it would collect everything once, to learn the names.
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Current(facts))
    try:
        # ":PORT" asks for all addresses of this machine.
        server, thread = start_http_server(port, host or "0.0.0.0", registry)
    # The last one is of a host that DNS cannot have.
    except (OSError, UnicodeError) as error:
        raise InputError(f"--listen {address}: {getattr(error, 'strerror', None) or error}") from error
    try:
        yield int(server.server_port)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _parts(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    number = whole_number(port)
    if not colon or number is None or number > MOST_PORT:
        raise UsageError(f"invalid --listen {address!r}: use HOST:PORT, or :PORT for all addresses")
    return host.removeprefix("[").removesuffix("]"), number
