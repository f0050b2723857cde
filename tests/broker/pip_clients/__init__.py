"""Groups of the clients that pip offers, on a real broker: what is said of them, and what they said themselves.

Their packages are no dependency of this project: they are installed into an environment beside Kafka's jars.
"""

import json
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.broker.kafka import CACHE, Line, broker

MEMBER: Final = Path(__file__).parent / "member.py"
PACKAGES: Final = ("confluent-kafka==2.16.0", "kafka-python==3.0.12", "aiokafka==0.14.0")
ASSIGNORS: Final[Mapping[str, tuple[str, ...]]] = {
    "librdkafka": ("range", "roundrobin", "cooperative-sticky"),
    "kafka-python": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    "aiokafka": ("range", "roundrobin", "sticky"),
}
"""By client, as this project names it, its assignors."""
MEMBERS: Final = 3
PARTITIONS: Final = {"a": 5, "b": 7}
"""The topics of each group, with their partitions."""
SETTLE_S: Final = 4.0
"""After so long a group has settled: members join within a second, and their metadata is two seconds old at most."""


def python_of_clients() -> Path:
    """Return a Python that has the clients; they come by pip the first time."""
    folder = CACHE / "pip-clients"
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "-q", "install", *PACKAGES], check=True)
    return python


class Member:
    """One consumer in a process of its own; ``said`` gets the lines that it prints."""

    def __init__(self, said: list[Line], servers: str, group: str, client: str, assignor: str) -> None:
        topics = ",".join(f"{group}.{name}" for name in PARTITIONS)
        command = [str(python_of_clients()), str(MEMBER), servers, group, client, assignor, topics]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, args=(said, group, client), daemon=True)
        self._reader.start()

    def _read(self, said: list[Line], group: str, client: str) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said.append({"group": group, "client": client, **json.loads(line)})

    def leave(self) -> None:
        """Close the consumer, and wait for its process."""
        if self._process.poll() is None:
            self._process.communicate("stop\n", timeout=30)
        self._reader.join(30)


def record(home: Path) -> list[Line]:
    """Run the groups on a broker whose data is below ``home``; return what the members said, in order of time.

    Each client has a group for each of its assignors: members come one after the other, and the first one leaves.
    """
    said: list[Line] = []
    python = str(python_of_clients())
    groups = [(f"{client}-{assignor}", client, assignor) for client, own in ASSIGNORS.items() for assignor in own]
    with broker(home) as servers:
        topics = [f"{group}.{name}" for group, _, _ in groups for name in PARTITIONS]
        counts = [f"{topic}:{PARTITIONS[topic.rpartition('.')[2]]}" for topic in topics]
        subprocess.run([python, str(MEMBER), servers, *counts], check=True)
        for client in ASSIGNORS:
            running: dict[str, list[Member]] = defaultdict(list)
            try:
                for _ in range(MEMBERS):
                    for group, of, assignor in groups:
                        if of == client:
                            running[group].append(Member(said, servers, group, client, assignor))
                    time.sleep(SETTLE_S)
                for members in running.values():
                    members.pop(0).leave()
                time.sleep(SETTLE_S)
            finally:
                for member in [member for members in running.values() for member in members]:
                    member.leave()
    return said
