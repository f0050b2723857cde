"""The recorded logs and traces as what a fold takes: the records of one group, and which offsets there are."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from coordinator_core.cluster.image import Topic
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.rules import Rule
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import CoordinatorRecord, LogPosition
from coordinator_core.wire.record_codec import decode_record
from tests.differential.decoded import Line, log_entries, read_lines
from tests.shared_data import CORPUS, TRACES

LOGS = (
    "scenarios",
    "scenarios/compacted_keep",
    "scenarios/compacted_drop",
    "churn/full",
    "churn/after_compaction",
    "upgrade",
    "misc",
    "wild",
)
TRULY_BROKEN = {("wild", "W-cls-1"): [(Rule.ASSIGNED_TO_TWO, 3466)] * 5}
"""Kafka's cooperative sticky assignor gave a topic to two, once another topic was created again with fewer partitions.

The members still claimed partitions that it no longer had; the audit recomputes the same assignment."""
TRACE_FILES = ("consumer", "share", "streams", "classic", "migration")
MORE_TRACE_FILES = tuple(f"{more}-{name}" for more in ("failover", "names") for name in TRACE_FILES)
EVERYTHING = Coverage({0: [(0, 2**40)]})


class Log(NamedTuple):
    """One recorded log: its groups by partition and id, and its coverage."""

    groups: dict[tuple[int, str], list[CoordinatorRecord]]
    coverage: Coverage


def corpus_log(name: str) -> Log:
    return recorded_log(CORPUS / name / "decoded.jsonl.gz")


def recorded_log(decoded: Path) -> Log:
    """Control records fill offsets too; a batch that compaction emptied stands for none."""
    groups, offsets = defaultdict(list), defaultdict(list)
    for entry in log_entries(decoded):
        if entry.record is not None:
            groups[(entry.at.partition, entry.record.group_id)].append(entry.record)
    for line in read_lines(decoded):
        if not line.get("emptyBatch"):
            offsets[line["partition"]].append((line["offset"], line["offset"]))
    return Log(dict(groups), Coverage(offsets))


class TraceLog(NamedTuple):
    """The records of one trace, those of one operation as one batch, and the topics as they were."""

    seed: int
    default_assignor: str
    topics: TopicHistory
    records: list[CoordinatorRecord]


def traces(name: str) -> Iterator[TraceLog]:
    """Each trace of a file."""
    return traces_of(read_lines(TRACES / f"{name}.jsonl.gz"))


def traces_of(lines: Iterable[Line]) -> Iterator[TraceLog]:
    """Each trace that the lines of a file have from its header to its end."""
    trace: TraceLog | None = None
    for line in lines:
        if line["kind"] == "header":
            default = line["config"].get("group.consumer.assignors", ["uniform"])[0]
            trace = TraceLog(line["seed"], default, _first_topics(line), [])
        elif trace is not None and line["kind"] == "step":
            if line["op"] == "metadata":
                _change_topics(trace.topics, line)
            for time_ms, operation in _operations(line):
                batch = len(trace.records)
                for raw in operation:
                    trace.records.append(_record(raw, LogPosition(0, len(trace.records), time_ms), batch))
        elif trace is not None:
            yield trace


def _operations(step: Line) -> Iterator[tuple[int, list[Line]]]:
    yield step["t_ms"], step.get("records") or []
    for source in ("timers", "tasks"):
        for each in step.get(source) or []:
            yield each.get("t_ms", step["t_ms"]), each.get("records") or []


def _first_topics(header: Line) -> TopicHistory:
    topics = TopicHistory()
    topics.open_version(LogPosition(0, header["image_version"], header["start_ms"]))
    for line in header["topics"]:
        topics.put_topic(_topic(line))
    return topics


def _change_topics(topics: TopicHistory, step: Line) -> None:
    change = step["metadata"]
    topics.open_version(LogPosition(0, change["image_version"], step["t_ms"]))
    for line in change["deleted"]:
        topics.remove_topic(line["name"])
    for line in (*change["created"], *change["changed"]):
        topics.put_topic(_topic(line))
    for line in change.get("topics_after", ()):
        topics.put_racks(line["name"], tuple(map(tuple, line["racks"])))


def _topic(line: Line) -> Topic:
    racks, replicas = (tuple(map(tuple, line[each])) for each in ("racks", "replicas"))
    return Topic(line["name"], line["id"], line["partitions"], racks, replicas)


def _record(raw: Line, at: LogPosition, batch: int) -> CoordinatorRecord:
    value = None if raw["value_hex"] is None else bytes.fromhex(raw["value_hex"])
    decoded = decode_record(bytes.fromhex(raw["key_hex"]), value)
    return CoordinatorRecord(at, decoded.type, decoded.key, decoded.value, decoded.value_version, batch)
