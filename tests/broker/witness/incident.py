"""The incident of the tutorial once more, with the broker's own log: ``python -m tests.broker.witness.incident``.

``data/samples/logs`` came without it. The steps and the times between them are those of group ``B-range-5175`` in
``data/samples/known/events.jsonl.gz``. What is recorded replaces ``data/samples/incident``.
"""

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from tests.broker.kafka import KAFKA, Line, broker
from tests.broker.witness import keep_lines, wild_clients
from tests.shared_data import ROOT

SAMPLE: Final = ROOT / "data" / "samples" / "incident"
GROUP: Final = "B-range-5175"
CHANGED: Final = {
    "group.consumer.session.timeout.ms": "5000",
    "group.coordinator.rebalance.protocols": "consumer,classic",
}
TOPICS: Final = {"b-range-x1": 3, "b-range-x2": 2, "b-range-w": 1}
BOTH: Final = ["b-range-x1", "b-range-x2"]
KEPT: Final = ("__consumer_offsets-*", "__cluster_metadata-0")
START_S: Final = 4.0
"""Clients that start take so long until they poll."""


def _member(number: str, topics: list[str], **settings: Any) -> Line:
    own = {"group.protocol": "consumer", "group.remote.assignor": "range", **settings}
    return {
        "group": GROUP,
        "name": f"{GROUP}-{number}",
        "topics": topics,
        "commits": "plain",
        "seed": 7,
        "settings": own,
    }


def record(home: Path) -> None:
    """Let it happen, and keep the logs as the sample."""
    with broker(home, KAFKA, None, CHANGED, home / "server.log") as servers:
        clients, doomed = wild_clients(servers, home), wild_clients(servers, home, 1)
        do = clients.do
        for topic, partitions in TOPICS.items():
            do("create", topic=topic, partitions=partitions)
            do("produce", topic=topic, count=20)
        doomed.do("wild_consumer", **_member("m0", BOTH))
        time.sleep(START_S)
        began = time.monotonic()

        def after(seconds: float) -> None:
            time.sleep(max(0.0, began + seconds - time.monotonic()))

        do("wild_consumer", **_member("re1", []), pattern="b-range-x.*")
        after(3.5)
        do("grow", topic="b-range-x1", partitions=4)
        after(6.2)
        do("wild_consumer", **_member("m2", BOTH))
        after(7.2)
        do("close", name=f"{GROUP}-re1")
        after(9.1)
        do("delete", topic="b-range-x2")
        after(11.7)
        do("subscribe", name=f"{GROUP}-m2", topics=["b-range-x1", "b-range-w"])
        after(13.3)
        do("wild_consumer", **_member("m3", ["b-range-w"], **{"client.rack": "rk-1"}))
        after(14.1)
        do("wild_consumer", **_member("s4", BOTH, **{"group.instance.id": "inst-0"}))
        after(15.3)
        do("close", name=f"{GROUP}-s4")
        after(16.8)
        do("wild_consumer", **_member("s5", BOTH, **{"group.instance.id": "inst-0"}))
        after(19.1)
        doomed.kill()
        after(25.6)
        for number in ("m2", "m3", "s5"):
            do("close", name=f"{GROUP}-{number}")
        time.sleep(8)  # the static member's session
        do("delete_offset", group=GROUP, topic="b-range-x1", partition=0)
        do("delete_group", group=GROUP, type="consumer")
        clients.close()
    keep(home)


def keep(home: Path) -> None:
    """Replace the sample by the logs of this broker."""
    shutil.rmtree(SAMPLE, ignore_errors=True)
    for folder in (each for pattern in KEPT for each in (home / "data").glob(pattern)):
        (SAMPLE / folder.name).mkdir(parents=True)
        for segment in folder.glob("*.log"):
            shutil.copy(segment, SAMPLE / folder.name / segment.name)
    keep_lines(home / "server.log", SAMPLE / "server.log")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        record(Path(place))
