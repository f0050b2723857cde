"""A folder in which a broker does what it may do, and a watch beside it: each record that is there was given, once and
in order, and nothing is called damaged.
"""

import shutil
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from coordinator_core.wire.batch_writer import NewRecord, encode_batch
from jobs.watch.growing_logs import GrowingLogs

STEPS = 120
NAME = "__consumer_offsets-0"


class Batch(NamedTuple):
    """A batch as it lies in a segment."""

    first: int
    count: int
    data: bytes

    @property
    def offsets(self) -> range:
        return range(self.first, self.first + self.count)


class Broker:
    """A log partition on one of two disks. The last segment may end in zeros (``log.preallocate``)."""

    def __init__(self, home: Path, chance: Random) -> None:
        self._home, self._chance = home, chance
        self._zeros = bytes(chance.choice([0, 0, 4096]))
        self._next = 0
        self._begun: Batch | None = None
        self.segments: dict[int, list[Batch]] = {0: []}
        self.folder = self._new_folder()
        self._write(0)

    def there(self) -> set[int]:
        """The offsets of all records that are written as a whole."""
        return {offset for batches in self.segments.values() for batch in batches for offset in batch.offsets}

    def append(self) -> None:
        """Write a batch, or begin to."""
        self._finish()
        number = self._chance.randint(1, 3)
        new = [NewRecord(self._next + at, 1, b"\0\1k", b"v" * self._chance.randint(1, 50), ()) for at in range(number)]
        batch = Batch(self._next, number, encode_batch(new))
        self._next += number
        if self._chance.random() < 0.4:
            self._begun = batch
            self._write(self._last, batch.data[: self._chance.randrange(1, len(batch.data) - 1)])
        else:
            self.segments[self._last].append(batch)
            self._write(self._last)

    def roll(self) -> None:
        """Begin another segment."""
        self._finish()
        before = self._last
        self.segments.setdefault(self._next, [])
        self._write(before)
        self._write(self._last)

    def clean(self) -> None:
        """Put segments together without some of their batches."""
        closed = sorted(self.segments)[:-1]
        if closed:
            begin = self._chance.randrange(len(closed))
            some = closed[begin : self._chance.randint(begin, len(closed)) + 1]
            kept = [batch for first in some for batch in self.segments[first] if self._chance.random() < 0.6]
            swap = self._file(some[0]).with_suffix(".log.swap")
            swap.write_bytes(b"".join(batch.data for batch in kept))
            for first in some:
                self._file(first).unlink()
                del self.segments[first]
            swap.rename(self._file(some[0]))
            self.segments = dict(sorted({**self.segments, some[0]: kept}.items()))

    def delete(self) -> None:
        """Delete the oldest segment."""
        if len(self.segments) > 1:
            first = min(self.segments)
            self._file(first).unlink()
            del self.segments[first]

    def move(self) -> None:
        """Move the log to the other disk, where its segments are others, but for the last one."""
        self._finish()
        last, before, batches = self._last, self.folder, [batch for some in self.segments.values() for batch in some]
        self.segments = {min(self.segments): []}
        for batch in batches:
            if batch.first == last or self._chance.random() < 0.2:
                self.segments.setdefault(batch.first, [])
            self.segments[self._last].append(batch)
        self.segments.setdefault(last, [])
        self.folder = self._new_folder()
        for first in self.segments:
            self._write(first)
        shutil.rmtree(before)

    @property
    def _last(self) -> int:
        return max(self.segments)

    def _new_folder(self) -> Path:
        folder = self._home / f"disk-{self._chance.randrange(2)}" / NAME
        folder = folder if not folder.exists() else self._home / f"disk-{1 - int(folder.parent.name[-1])}" / NAME
        folder.mkdir(parents=True)
        return folder

    def _finish(self) -> None:
        if self._begun is not None:
            self.segments[self._last].append(self._begun)
            self._begun = None
            self._write(self._last)

    def _file(self, first: int) -> Path:
        return self.folder / f"{first:020}.log"

    def _write(self, first: int, begun: bytes = b"") -> None:
        zeros = self._zeros if first == self._last else b""
        self._file(first).write_bytes(b"".join(batch.data for batch in self.segments[first]) + begun + zeros)


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(8, 300))])
def test_each_record_is_given_once_and_in_order(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    broker, given = Broker(tmp_path, chance), list[int]()
    source = GrowingLogs([tmp_path], pytest.fail, lambda: 0.0)
    acts = [broker.append, broker.roll, broker.clean, broker.delete, broker.move]
    for _ in range(STEPS):
        chance.choices(acts, [8, 2, 2, 1, 1])[0]()
        if chance.random() < 0.5:
            given += [row.offset for new in source.poll() for row in new.rows]
            assert given == sorted(set(given))
            assert broker.there() <= set(given)
