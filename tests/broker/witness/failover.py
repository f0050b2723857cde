"""Members that go while their coordinator moves between two brokers, each of which writes a log of its own."""

import subprocess
import time
from functools import partial
from pathlib import Path

from tests.broker.kafka import KAFKA, broker, free_ports
from tests.broker.wild.second_broker import REPLICATED, start_second
from tests.broker.witness import CHANGED, Departure, Script, keep, wild_clients

GROUPS = ("carts", "prices", "users", "baskets")
"""One in each of the four partitions of the coordinator's log: two or so have each broker as their coordinator."""
BACK_S = 20
"""Leaders are back at the second broker so long after it started."""


def record_failover(home: Path, out: Path, release: str = KAFKA) -> list[Departure]:
    """Let the second broker stop, come back and be killed; members go at each coordinator. Keep the logs in ``out``."""
    *ports, second_port = free_ports(3)
    first = ports[0], ports[1]
    changed = {**CHANGED, **REPLICATED, "group.coordinator.rebalance.protocols": "classic,consumer"}

    def another() -> subprocess.Popen[bytes]:
        return start_second(home, release, first, second_port, changed, home / "server-2.log")

    with broker(home, release, first, changed, home / "server.log") as address:
        servers = f"{address},127.0.0.1:{second_port}"
        second = another()
        try:
            clients = wild_clients(servers, home)
            run = Script(servers, home, frozenset(), clients)
            run.prepare()
            doomed = run.apart()
            for group in GROUPS:
                run.join(group, f"{group}-1")
                run.join(group, f"{group}-2", doomed)
            second.terminate()
            second.wait()
            for group in GROUPS:
                run.settle(group, 2)
            doomed.kill()
            for group in GROUPS:
                run.gone(group, f"{group}-2", "member_expired", lambda: None, "session")
            second = another()
            time.sleep(BACK_S)
            for group in GROUPS:
                run.join(group, f"{group}-3")
            second.kill()
            second.wait()
            for group in GROUPS:
                run.settle(group, 2)
            for number in (3, 1):
                for group in GROUPS:
                    name = f"{group}-{number}"
                    run.gone(group, name, "member_left", partial(clients.do, "close", name=name))
            clients.close()
        finally:
            second.kill()
            second.wait()
            run.end()
    keep(home, out, run.done)
    return run.done
