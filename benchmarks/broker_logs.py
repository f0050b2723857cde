"""Reading of a broker's application log: ``python -m benchmarks.broker_logs``.

The file has Kafka's default layout. ``--share`` of its lines are the coordinator's; the others are passed over. The
figure is the rate, and its ratio to Python's plain loop over the lines of the same file, both in processor time.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from jobs.sources.broker_logs import read_broker_logs

LOGGER = "org.apache.kafka.coordinator.group.GroupMetadataManager"
OTHER = "[Partition orders-{0} broker=1] ISR updated to 1,2,3 and version updated to {0} (kafka.cluster.Partition)"
SAID = (
    "[GroupId {group}] Dynamic member {member} has left group through explicit `LeaveGroup` request; client reason: "
    "the consumer is being closed",
    "Preparing to rebalance group {group} in state PreparingRebalance with old generation {number} (reason: removing "
    "member {member} on heartbeat expiration.).",
    "Stabilized group {group} generation {number} with 3 members.",
    "[GroupId {group}] Member {member} joins the consumer group using the consumer protocol.",
    "Pending dynamic member with id {member} joins group {group} in Stable state. Adding to the group now.",
    "[GroupId {group}] Bumped group epoch to {number} with metadata hash 123456789.",
)


def lines(size: int, share: float) -> Iterator[str]:
    """Lines of about so many bytes in total."""
    chance, written, number = random.Random(1), 0, 0
    while written < size:
        second, ms = divmod(number, 1000)
        head = f"[2026-11-23 {second // 3600 % 24:02}:{second // 60 % 60:02}:{second % 60:02},{ms:03}] INFO "
        if chance.random() < share:
            group = f"group-{number % 997}"
            member = f"consumer-{group}-{chance.getrandbits(32):08x}-0000-4000-8000-000000000001"
            context = f"[GroupCoordinator id=1 topic=__consumer_offsets partition={number % 50}] "
            said = SAID[number % len(SAID)].format(group=group, member=member, number=number)
            line = f"{head}{context}{said} ({LOGGER})\n"
        else:
            line = f"{head}{OTHER.format(number)}\n"
        written, number = written + len(line), number + 1
        yield line


def seconds(work: Callable[[], int]) -> tuple[float, int]:
    """The processor time of the work, and the number that it returns."""
    began = time.process_time()
    count = work()
    return time.process_time() - began, count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--share", type=float, default=1.0, help="share of the lines that are the coordinator's")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.log"
        with path.open("w") as stream:
            stream.writelines(lines(given.megabytes * 1_000_000, given.share))
        with path.open("rb") as stream:
            loop, count = seconds(lambda: sum(1 for _ in stream))
        own, events = seconds(lambda: sum(1 for _ in read_broker_logs([path], print)))
    rate = given.megabytes / own
    print(f"{count} lines, {events} events: {rate:.0f} MB/s, 1 GB in {1000 / rate:.0f} s; {own / loop:.0f} plain loops")


if __name__ == "__main__":
    main()
