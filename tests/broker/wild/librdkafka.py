"""Members of librdkafka, on threads of this process; they say what they were assigned and what they committed."""

import random
import threading
import time
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.broker.kafka import Line

COMMIT_EVERY_S = 0.5
SEEN = {"assign": "assigned", "revoke": "revoked", "lost": "lost"}
"""The listeners of librdkafka, and what their calls are named here."""


class Foreigner(threading.Thread):
    """One consumer of librdkafka; ``say`` gets its events."""

    def __init__(self, servers: str, order: Line, say: Callable[[Line], None]) -> None:
        super().__init__(name=order["name"], daemon=True)
        self.order, self.say, self.chance = order, say, random.Random(order["seed"])
        self.consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": order["group"],
                "client.id": order["name"],
                "enable.auto.commit": False,
                "topic.metadata.refresh.interval.ms": 1000,
                "log_level": 0,
                **order["settings"],
            }
        )
        self.next: dict[tuple[str, int], int] = {}
        self.is_over = threading.Event()

    def run(self) -> None:
        """Poll and commit until the client is closed."""
        saw = {f"on_{name}": self._saw(what) for name, what in SEEN.items()}
        self.consumer.subscribe(self.order["topics"], **saw)
        committed = time.monotonic()
        while not self.is_over.is_set():
            try:
                record = self.consumer.poll(0.15)
                if record is not None and record.error() is None:
                    self.next[record.topic(), record.partition()] = record.offset() + 1
                if time.monotonic() - committed > COMMIT_EVERY_S:
                    committed = time.monotonic()
                    self._commit()
            except (KafkaException, RuntimeError) as error:
                self._event("error", error=str(error))
                time.sleep(0.3)
        self.consumer.close()
        self._event("ended", how="leaves")

    def close(self) -> None:
        """Leave the group."""
        self.is_over.set()
        self.join(15)

    def _event(self, what: str, **fields: object) -> None:
        self.say({"at_ms": round(time.time() * 1000), "event": what, "name": self.name, **fields})

    def _saw(self, what: str) -> Callable[[Consumer, list[TopicPartition]], None]:
        def saw(consumer: Consumer, partitions: list[TopicPartition]) -> None:
            names = sorted(f"{each.topic}-{each.partition}" for each in partitions)
            if what != "assigned":
                self.next = {at: each for at, each in self.next.items() if f"{at[0]}-{at[1]}" not in names}
            self._event(what, group=self.order["group"], member=consumer.memberid(), partitions=names)

        return saw

    def _commit(self) -> None:
        chosen = [TopicPartition(*at, each) for at, each in self.next.items() if self.chance.random() < 0.6]
        if not chosen:
            return
        began = round(time.time() * 1000)
        done = self.consumer.commit(offsets=chosen, asynchronous=False)
        kept = {f"{each.topic}-{each.partition}": each.offset for each in done if each.error is None}
        member = self.consumer.memberid()
        self._event("commits", began_ms=began, kept=True, group=self.order["group"], member=member, offsets=kept)
