"""A second broker in another rack, which leads some partitions of the coordinators' logs; the first has all of them."""

import re
import subprocess
from pathlib import Path
from string import Template

from tests.broker import kafka

REPLICATED = {
    "offsets.topic.replication.factor": "2",
    "share.coordinator.state.topic.replication.factor": "2",
    "transaction.state.log.replication.factor": "2",
    "leader.imbalance.check.interval.seconds": "8",
    "unclean.leader.election.enable": "false",
}
"""Settings of both brokers: leaders move to the first when the second stops, and back soon after it starts."""


def start_second(
    home: Path,
    release: str,
    ports: tuple[int, int],
    port: int,
    changed: dict[str, str],
    log: Path | None = None,
    *,
    number: int = 2,
    rack: str = "rack-b",
) -> subprocess.Popen[bytes]:
    """Start it beside the broker and controller at ``ports``, and return its process once it listens.

    Its application log goes to ``log``; None: it is not written. It may be the third, with another ``number``. Raises
    RuntimeError if it does not listen.
    """
    data, settings = home / f"data-{number}", home / f"server-{number}.properties"
    template = Template((kafka.HERE / "server.properties").read_text())
    its = {
        **changed,
        "process.roles": "broker",
        "node.id": str(number),
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "broker.rack": rack,
    }
    others = "".join(f"{name}={value}\n" for name, value in its.items())
    settings.write_text(template.substitute(port=port, controller=ports[1], data=data) + others)
    if not data.exists():
        known = re.search(r"cluster\.id=(\S+)", (home / "data" / "meta.properties").read_text())
        assert known is not None
        java = ["java", "-Xmx512m", kafka.QUIET, "-cp", kafka.jars(release)]
        storage = [*java, "kafka.tools.StorageTool", "format", "-t", known[1], "-c", str(settings)]
        subprocess.run(storage, capture_output=True, check=True)
    with (home / f"broker-{number}.out").open("a") as out:
        process = subprocess.Popen(kafka.broker_command(release, settings, log), stdout=out, stderr=out)
    try:
        kafka.wait_until_it_listens(process, port, home / f"broker-{number}.out")
    except RuntimeError:
        process.kill()
        raise
    return process
