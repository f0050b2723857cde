"""How fast a watch follows a log: ``python -m benchmarks.watch [--records N] [--seconds S]``.

Prints JSON, for one core: records a second over many groups of which most commit (the goal is 5,000), and of few groups
that never rest; the peak memory after a tenth of the records and after all; and the latency from the time of a record
to the line of its rebalance, of a process that follows a folder to which 5,000 records a second are appended (the goal
is a second).
"""

import argparse
import io
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count, islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

from coordinator_core.audit.settings import AuditSettings
from coordinator_core.records import Family, Fields, RecordType
from coordinator_core.wire.batch_format import Kind
from coordinator_core.wire.batch_writer import NewRecord, encode_batch
from coordinator_core.wire.record_codec import encode_key, encode_value
from jobs.cli.console import Console
from jobs.cli.watch import Watch
from jobs.cli.watch_lines import lines
from jobs.settings import load
from jobs.sources.log_reader import LogRow
from jobs.watch.events import WatchEvent
from jobs.watch.followed_groups import FollowedGroups
from jobs.watch.new_rows import LogPlace, NewRows
from jobs.watch.state_file import StateFile

GOAL, GOAL_S = 5_000, 1.0
ROUNDS_A_SECOND = 20
TOPIC_ID = "b3JkZXJzb3JkZXJzb3JkZQ"
PARTITIONS = 24
COMMITS = 40
"""Commits of a group for each of its rebalances, where most commit."""
PLACE = LogPlace("__consumer_offsets", Family.GROUP, 0)
FOLDER = "__consumer_offsets-0"

Written = tuple[RecordType, Fields, Fields | None]


def encoded(written: Written) -> tuple[bytes, bytes | None]:
    kind, key, value = written
    return encode_key(kind, key), None if value is None else encode_value(kind, 1 if kind == 1 else 0, value)


def group_life(group: str, commits: int) -> Iterator[list[Written]]:
    """Yield what is written at once in the life of a group in which a second member comes and goes, without end.

    Between two rebalances there are commits.
    """
    halves = [list(range(PARTITIONS // 2)), list(range(PARTITIONS // 2, PARTITIONS))]
    for epoch in count(1):
        shares = {"a": halves[0], "b": halves[1]} if epoch % 2 == 0 else {"a": [*halves[0], *halves[1]]}
        yield [*_changed(group, epoch, shares), *_target(group, epoch, shares)]
        yield [
            (RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, *_current(group, epoch, *each))
            for each in shares.items()
        ]
        for number in range(commits):
            key = {"group": group, "topic": "orders", "partition": number % PARTITIONS}
            fields = {"offset": epoch * 1000 + number, "metadata": "", "commitTimestamp": 1, "expireTimestamp": -1}
            yield [(RecordType.OFFSET_COMMIT, key, fields)]


def _changed(group: str, epoch: int, shares: dict[str, list[int]]) -> Iterator[Written]:
    both = {"groupId": group, "memberId": "b"}
    if epoch == 1 or "b" in shares:
        member = "b" if "b" in shares else "a"
        yield RecordType.CONSUMER_GROUP_MEMBER_METADATA, {**both, "memberId": member}, _member(member)
    else:
        for kind in (
            RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
            RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
            RecordType.CONSUMER_GROUP_MEMBER_METADATA,
        ):
            yield kind, both, None
    yield RecordType.CONSUMER_GROUP_METADATA, {"groupId": group}, {"epoch": epoch, "metadataHash": 1}


def _member(member: str) -> Fields:
    return {
        "instanceId": None,
        "rackId": None,
        "clientId": f"client-{member}",
        "clientHost": "/10.1.2.3",
        "subscribedTopicNames": ["orders"],
        "subscribedTopicRegex": "",
        "rebalanceTimeoutMs": 300_000,
        "serverAssignor": None,
    }


def _target(group: str, epoch: int, shares: dict[str, list[int]]) -> Iterator[Written]:
    for member, partitions in shares.items():
        value = {"topicPartitions": [{"topicId": TOPIC_ID, "partitions": partitions}]}
        yield RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, {"groupId": group, "memberId": member}, value
    target = {"assignmentEpoch": epoch, "assignmentTimestamp": 1}
    yield RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, {"groupId": group}, target


def _current(group: str, epoch: int, member: str, partitions: list[int]) -> tuple[Fields, Fields]:
    assigned = [{"topicId": TOPIC_ID, "partitions": partitions, "assignmentEpochs": [epoch] * len(partitions)}]
    value = {
        "memberEpoch": epoch,
        "previousMemberEpoch": epoch - 1,
        "state": 0,
        "assignedPartitions": assigned,
        "partitionsPendingRevocation": [],
    }
    return {"groupId": group, "memberId": member}, value


def many_lives(groups: int, commits: int) -> Iterator[list[Written]]:
    """Yield what the groups write, in turns, without end."""
    lives = [group_life(f"group-{number:05d}", commits) for number in range(groups)]
    while True:
        for life in lives:
            yield from islice(life, 1 + commits // 8)


class Generated:
    """A source that gives a round's rows at each poll, until there were so many records."""

    is_caught_up = is_settled = True

    def __init__(self, lives: Iterator[list[Written]], records: int, rate: int) -> None:
        self.left, self.read_s = records, 0.0
        self._lives, self._rows = lives, rate // ROUNDS_A_SECOND
        self._offset, self._time_ms = 0, 1_760_000_000_000

    def identify(self) -> str:
        """Return what the state file is about."""
        return "generated"

    def begin(self, _: object) -> None:
        """Nothing was read before."""

    def places(self) -> list[LogPlace]:
        """Return the one log partition."""
        return [PLACE]

    @property
    def has_all(self) -> bool:
        """The partition is the only one."""
        return True

    def snapshot(self) -> None:
        """There is no cluster."""

    def look(self, _: object) -> None:
        """No end offsets are known."""

    def close(self) -> None:
        """Nothing is held."""

    def poll(self) -> Iterator[NewRows]:
        """Yield the rows of a round."""
        begin = time.process_time()
        rows: list[LogRow] = []
        while len(rows) < min(self._rows, self.left):
            batch = self._offset
            for written in next(self._lives):
                key, value = encoded(written)
                rows.append(
                    LogRow(Kind.RECORD.value, self._offset, self._time_ms, key, value, None, False, -1, 0, batch)
                )
                self._offset += 1
            self._time_ms += 7
        self.left -= len(rows)
        self.read_s += time.process_time() - begin
        if rows:
            yield NewRows(PLACE, rows, from_start=True)


def followed(groups: int, commits: int, records: int) -> dict[str, float]:
    """Return records a second of processor time, without that of making them, and peak memory (MB) on the way."""
    source = Generated(many_lives(groups, commits), records, GOAL)
    watched = FollowedGroups(AuditSettings(), load(environment={}).findings, None, print)
    printed = io.StringIO()

    def tell(event: WatchEvent, *, is_repeated: bool) -> None:
        for line in lines(event, watched, as_json=True, explained=False, is_repeated=is_repeated):
            printed.write(line)
        printed.seek(0)
        printed.truncate()

    with TemporaryDirectory() as folder, closing(StateFile(Path(folder) / "state", "")) as state:
        watch = Watch(source, watched, state, Console(quiet=True))
        watch.begin()
        begin, early = time.process_time(), 0.0
        saved_s = time.monotonic()
        while source.left > 0:
            watch.tell_round(tell)
            if source.left > records * 9 // 10:
                early = _peak_mb()
            if time.monotonic() - saved_s > 5:
                watch.save()
                saved_s = time.monotonic()
        watch.save()
        spent = time.process_time() - begin - source.read_s
    return {"records_a_second": round(records / spent), "peak_mb_early": early, "peak_mb": _peak_mb()}


def _peak_mb() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def in_process(function: Callable[..., dict[str, float]], *arguments: int) -> dict[str, float]:
    """Return what a function of this module returns in a process of its own, so that peaks are its own."""
    code = f"import json; from benchmarks import watch; print(json.dumps(watch.{function.__name__}(*{arguments!r})))"
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


class Writer(Thread):
    """Appends 5,000 records a second to a segment, each with the time at which it is written."""

    def __init__(self, file: Path, seconds: float) -> None:
        super().__init__()
        self._file, self._seconds = file, seconds
        self._lives, self._offset = many_lives(50, COMMITS), 0

    def append(self, records: int) -> None:
        """Append so many records, or a few more."""
        with self._file.open("ab") as log:
            end = self._offset + records
            while self._offset < end:
                now_ms = time.time_ns() // 1_000_000
                some = [encoded(each) for each in next(self._lives)]
                batch = [NewRecord(self._offset + number, now_ms, *each) for number, each in enumerate(some)]
                self._offset += len(batch)
                log.write(encode_batch(batch))

    def run(self) -> None:
        """Append until the time is over."""
        begin = time.monotonic()
        for number in count(1):
            self.append(GOAL // ROUNDS_A_SECOND)
            next_s = begin + number / ROUNDS_A_SECOND
            if next_s > begin + self._seconds:
                return
            time.sleep(max(0.0, next_s - time.monotonic()))


def latency(seconds: float) -> dict[str, float]:
    """Return the median, the 99th percentile and the worst latency (s) of lines of rebalances that begin or end."""
    with TemporaryDirectory() as home:
        folder = Path(home) / "logs" / FOLDER
        folder.mkdir(parents=True)
        writer = Writer(folder / "00000000000000000000.log", seconds)
        writer.append(1)
        command = [sys.executable, "-u", "-m", "coordinator_audit", "watch", "--json", "--log", str(folder.parent)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watch:
            assert watch.stdout is not None
            assert watch.stderr is not None
            watch.stderr.readline()  # it has read what is there
            writer.start()
            found: list[float] = []
            reader = Thread(target=_note_latencies, args=(watch.stdout, found))
            reader.start()
            writer.join()
            time.sleep(2)
            watch.terminate()
            watch.wait()
            reader.join()
    found.sort()
    return {
        "lines": len(found),
        "median_s": median(found),
        "p99_s": found[len(found) * 99 // 100],
        "worst_s": found[-1],
    }


def _note_latencies(lines_of_watch: Any, found: list[float]) -> None:
    for line in lines_of_watch:
        now = time.time()
        event = json.loads(line)
        if event["event"] != "finding":
            at = event["finished"] if event["event"] == "rebalance_ended" else event["at"]
            found.append(round(now - at["timestamp_ms"] / 1000, 3))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000, help="records of few groups that never rest")
    parser.add_argument("--seconds", type=float, default=30, help="how long records are appended for the latency")
    given = parser.parse_args()
    many = in_process(followed, 500, COMMITS, given.records // 4)
    few = in_process(followed, 3, 0, given.records)
    late = latency(given.seconds)
    met = min(many["records_a_second"], few["records_a_second"]) >= GOAL and late["p99_s"] <= GOAL_S
    print(json.dumps({"many_groups": many, "few_groups": few, "latency": late, "goals_met": met}, indent=1))


if __name__ == "__main__":
    main()
