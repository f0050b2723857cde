"""Topics through time from the lines of brokers' logs, where there is no metadata log."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.audit.folds.topic_lines import AT_ONCE_MS, topics_of_lines
from coordinator_core.broker_log.events import BrokerEvent
from coordinator_core.broker_log.lines import events
from coordinator_core.cluster.topic_history import TopicHistory

PROPERTIES = "with properties {compression.type -> producer}. (kafka.log.LogManager)"


def created(second: float, topic: str, partition: int) -> BrokerEvent:
    return _event(second, f"Created log for partition {topic}-{partition} in /data/{topic}-{partition} {PROPERTIES}")


def deleted(second: float, topic: str, partition: int) -> BrokerEvent:
    aside = f"/data/{topic}-{partition}.70cad1ee415e4a4f9e0a11b658629eec-delete"
    text = f"Log for partition {topic}-{partition} is renamed to {aside} and is scheduled for deletion"
    return _event(second, f"{text} (kafka.log.LogManager)")


def _event(second: float, text: str) -> BrokerEvent:
    (event,) = events(f"[2026-11-23 14:25:07,123] INFO {text}", "server.log", 1)
    return event._replace(timestamp_ms=round(1000 * second))


def history(lines: Iterable[BrokerEvent]) -> TopicHistory:
    found = topics_of_lines(lines)
    assert found is not None
    return found


def partitions(of: TopicHistory, second: float) -> dict[str, int]:
    version = of.at(round(1000 * second))
    return {} if version is None else {name: topic.partitions for name, topic in version.image.by_name.items()}


def test_lines_name_topics_with_dashes_and_dots() -> None:
    event = created(1, "a-b.c-3", 12)
    assert (event.kind, event.topic, event.partition, event.group_id) == ("log_created", "a-b.c-3", 12, None)
    event = deleted(1, "a-b.c-3", 12)
    assert (event.kind, event.topic, event.partition, event.broker_id) == ("log_deleted", "a-b.c-3", 12, None)


def test_a_topic_comes_grows_goes_and_comes_again() -> None:
    lines = [created(10 + 0.1 * number, "t", number) for number in (2, 0, 1)]
    lines += [created(20, "t", 3), created(20.1, "t", 4)]
    lines += [deleted(30 + 0.01 * number, "t", number) for number in range(5)]
    lines += [created(30.068, "t", 0)]
    known = history(lines)
    seconds = (9, 10, 19, 20, 29, 30.05, 31)
    assert [partitions(known, second).get("t") for second in seconds] == [None, 3, 3, 5, 5, None, 1]
    assert known.given.missing(0, 40_000) is not None, "topics before the first line are not known"
    assert known.doubt(25_000) is not None, "another broker may have more of it"


def test_a_broker_that_loses_a_copy_does_not_shrink_the_topic() -> None:
    lines = [created(1, "t", 0), created(1, "t", 1), created(50, "t", 1), deleted(60, "t", 1)]
    assert partitions(history(lines), 100) == {"t": 2}
    assert partitions(history([*lines, deleted(70, "t", 1)]), 100) == {"t": 2}
    assert partitions(history([*lines, deleted(70, "t", 1), deleted(70.1, "t", 0)]), 100) == {}


def test_without_a_line_about_topics_or_without_times_there_are_none() -> None:
    assert topics_of_lines([]) is None
    assert topics_of_lines([created(1, "t", 0)._replace(timestamp_ms=None)]) is None


COUNTS = st.dictionaries(st.sampled_from(["a", "b-1", "c.d"]), st.integers(1, 5), min_size=1)


@given(COUNTS, st.randoms())
def test_the_order_of_lines_that_come_at_once_does_not_matter(counts: dict[str, int], rng: object) -> None:
    lines = [created(1, topic, number) for topic, count in counts.items() for number in range(count)]
    rng.shuffle(lines)  # type: ignore[attr-defined]
    assert partitions(history(lines), 1 + AT_ONCE_MS) == counts
