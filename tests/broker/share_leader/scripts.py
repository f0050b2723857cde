"""Random scripts for the leader of a share partition: each step is chosen when the one before was answered."""

import random
from collections.abc import Callable
from typing import Any

Line = dict[str, Any]
START_MS = 1_767_225_600_000
MEMBERS = "abc"
TYPES = (0, 1, 1, 1, 2, 2, 3, 4)


def record_script(seed: int, steps: int, do: Callable[[Line], Line]) -> list[Line]:
    """The steps of one random script with what was made of them; ``do`` gives a line away and returns it answered.

    It ends before a step at which Kafka itself fails: deleted records of a partition without room are one such case.
    """
    script = _Script(random.Random(seed))
    lines = [do(script.header(seed)), *(do(each) for each in script.beginning())]
    for line in lines:
        script.learn(line)
    while len(lines) < steps:
        step = script.choose()
        if step is not None:
            line = do(step)
            if "failed" in line:
                break
            lines.append(line)
            script.learn(line)
    return lines


class _Script:
    """What the script knows: the log, epochs, and which records were delivered to whom."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._end = 0
        self._batches: list[tuple[int, int]] = []
        self._leader_epoch = 0
        self._state_epoch = 1
        self._is_led = False
        self._held: dict[str, list[tuple[int, int]]] = {member: [] for member in MEMBERS}
        self._start = 0
        self._lock_ms = chance.choice((1_000, 2_000, 5_000))
        self._ways = {
            self._produce: 20,
            self._fetch: 30,
            self._acknowledge: 40,
            self._pause: 15,
            self._release: 3,
            self._lead: 3,
            self._cold: 1,
            self._alter: 1,
            self._delete: 0.3,
            self._delete_records: 1,
            self._compact: 1,
            self._settings: 2,
        }

    def header(self, seed: int) -> Line:
        return {
            "op": "header",
            "seed": seed,
            "kafka": "4.3.1",
            "start_ms": START_MS,
            "delivery_limit": self._chance.choice((2, 3, 3, 5, 6, 10)),
            "most_locks": self._chance.choice((10, 30, 100, 2_000)),
            "lock_ms": self._lock_ms,
            "snapshot_updates": self._chance.choice((1, 3, 6, 20)),
            "cold_ms": self._chance.choice((5_000, 30_000)),
        }

    def beginning(self) -> list[Line]:
        start = self._chance.choice((0, 0, 3))
        return [
            {"op": "initialize", "state_epoch": self._state_epoch, "start_offset": start},
            {"op": "lead", "leader_epoch": 0},
        ]

    def choose(self) -> Line | None:
        """The next step; None where what was chosen cannot be done now."""
        (way,) = self._chance.choices(list(self._ways), list(self._ways.values()))
        return way()

    def learn(self, line: Line) -> None:
        """Keep what was made of a step."""
        if line["op"] == "lead":
            self._is_led = line["error"] is None
            self._held = {member: [] for member in MEMBERS}
        if line["op"] == "fetch":
            self._held[line["member"]] += [(first, last) for first, last, _ in line["deliveries"]]
        if line.get("after"):
            self._start = line["after"]["start_offset"]

    def _produce(self) -> Line:
        first = self._end + (self._chance.randint(1, 4) if self._chance.random() < 0.1 else 0)
        last = first + self._chance.choice((0, 0, 1, 2, 4, 9, 19))
        self._end = last + 1
        self._batches.append((first, last))
        line = {"op": "produce", "first": first, "last": last}
        return line | {"aborted": True} if self._chance.random() < 0.2 else line

    def _fetch(self) -> Line | None:
        if not self._is_led:
            return None
        return {
            "op": "fetch",
            "member": self._chance.choice(MEMBERS),
            "batches": self._chance.choice((1, 2, 3, 20)),
            "most_records": self._chance.choice((1, 3, 7, 20, 500)),
            "batch_size": self._chance.choice((1, 5, 10, 500)),
            "is_strict": self._chance.random() < 0.25,
        }

    def _acknowledge(self) -> Line | None:
        member = self._chance.choice(MEMBERS)
        held = self._held[member]
        if not self._is_led or not held:
            return None
        chosen = sorted(self._chance.sample(held, min(len(held), self._chance.choice((1, 1, 2)))))
        if self._chance.random() < 0.9:
            self._held[member] = [each for each in held if each not in chosen]
        batches: list[Any] = []
        for first, last in chosen:
            if self._chance.random() < 0.3 and last > first:
                cut = self._chance.randint(first, last)
                self._held[member] += [] if cut == last else [(cut + 1, last)]
                last = cut
            if self._chance.random() < 0.05:
                last += self._chance.randint(1, 5)
            if self._chance.random() < 0.5:
                types = [self._chance.choice(TYPES)]
            else:
                weight = [self._chance.choice(TYPES) for _ in range(2)]
                types = [self._chance.choice(weight) for _ in range(first, last + 1)]
            if not batches or batches[-1][1] < first:
                batches.append([first, last, types])
        if self._chance.random() < 0.05:
            member = self._chance.choice(MEMBERS)
        return {"op": "acknowledge", "member": member, "batches": batches}

    def _pause(self) -> Line:
        return {"op": "advance", "ms": self._chance.choice((1, 100, 500, self._lock_ms - 1, self._lock_ms, 6_000))}

    def _release(self) -> Line | None:
        if not self._is_led:
            return None
        member = self._chance.choice(MEMBERS)
        self._held[member] = []
        return {"op": "release", "member": member}

    def _lead(self) -> Line:
        epoch = self._leader_epoch
        if self._chance.random() < 0.1:
            epoch = max(epoch - 1, 0)
        elif self._chance.random() < 0.8:
            self._leader_epoch = epoch = epoch + self._chance.randint(1, 2)
        return {"op": "lead", "leader_epoch": epoch}

    def _cold(self) -> Line:
        return {"op": "cold"}

    def _alter(self) -> Line:
        if self._chance.random() < 0.2:
            return {"op": "initialize", "state_epoch": self._state_epoch - 1, "start_offset": 0}
        self._state_epoch += self._chance.randint(0, 2)
        start = self._chance.randint(0, max(self._end, 1))
        return {"op": "initialize", "state_epoch": self._state_epoch, "start_offset": start}

    def _delete(self) -> Line:
        self._state_epoch += 1
        return {"op": "delete"}

    def _delete_records(self) -> Line | None:
        if self._end <= self._start:
            return None
        before = self._chance.randint(self._start, self._end)
        self._batches = [each for each in self._batches if each[1] >= before]
        return {"op": "delete_records", "before": before}

    def _compact(self) -> Line | None:
        if len(self._batches) < 2:
            return None
        gone = self._batches.pop(self._chance.randrange(len(self._batches) - 1))
        return {"op": "compact", "first": gone[0]}

    def _settings(self) -> Line:
        settings = {
            "share.record.lock.duration.ms": self._chance.choice((1_000, 20_000, 90_000)),
            "share.delivery.count.limit": self._chance.choice((1, 2, 4, 12)),
            "share.renew.acknowledge.enable": self._chance.choice(("true", "false")),
            "share.isolation.level": self._chance.choice(("read_committed", "read_committed", "read_uncommitted")),
        }
        chosen = self._chance.sample(list(settings), self._chance.randint(1, 4))
        return {"op": "settings", "settings": {name: settings[name] for name in chosen}}
