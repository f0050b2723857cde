"""What the functions that read relations are asked over ``damaged_tables``, and their answers in a form to compare."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from hashlib import blake2b
from typing import Any
from unittest.mock import patch

from coordinator_core.errors import InputError
from coordinator_core.groups.end_offsets import EndOffset
from coordinator_core.groups.offsets import TopicPartition
from jobs.relations import (
    brokers,
    commit_runs,
    commit_sums,
    commit_trails,
    gaps,
    given_partitions,
    groups,
    lag,
    log_extent,
    logs,
    offsets,
    replay,
    sessions,
    settings,
    share_state,
    topics,
    unreadable,
    up_to_date,
)
from jobs.sources.files import GROUP_TOPICS, REPLAYED_TOPICS, SHARE_TOPICS
from jobs.tables.reader import TableReader
from tests.jobs.relations.damaged_tables import GROUP, GROUP_LOG, NOW
from tests.jobs.relations.questions import MOMENTS, QUESTIONS
from tests.jobs.relations.step_texts import TEXTS, rows_of
from tests.jobs.relations.tables_of_logs import CLUSTER
from tests.jobs.relations.topic_tables import STORES as TOPIC_STORES

Ask = Callable[[TableReader], Any]


def commits_of(tables: TableReader) -> tuple[Any, ...]:
    found = commit_runs.stored_commits(tables, CLUSTER, GROUP)
    return vars(found.coverage), *(part for part in found if part is not found.coverage)


def topics_of(tables: TableReader) -> tuple[Any, ...] | None:
    found = topics.stored_topics(tables, CLUSTER)
    if found is None:
        return None
    return sorted(found.intervals(), key=repr), found.given, found.gaps, found.snapshots, found.strange


def checked_topics(tables: TableReader) -> tuple[Any, ...] | str | None:
    """The topics, or why the logs of groups are refused."""
    try:
        topics.require_one_cluster(tables, CLUSTER, topics.stored_topics(tables, CLUSTER))
    except InputError as error:
        return str(error)
    return topics_of(tables)


def unplaced(tables: TableReader) -> list[Any]:
    """Up to each run, one by one, and where they are more than are kept."""
    found = []
    for most in (unreadable.MOST_RUNS, 0):
        with patch.object(unreadable, "MOST_RUNS", most):
            found += [unreadable.unplaced_records(tables, CLUSTER, upto) for upto in RUNS]
    return [sorted(of_run) for of_run in found]


PLACE = (GROUP_LOG, 0)
ENDS = {TopicPartition("a-coop-x8", number): [EndOffset(1_795_257_500_000, 10_000, None)] for number in range(3)}
RUNS = ("", "run 1", "run 2")
SPANS = (("", "run 1"), ("run 1", "run 2"), ("", "run 2"))
BEFORE = "log_offset < 400"
ASKED: dict[Callable[..., Any], Ask] = {
    brokers.has_lines: brokers.has_lines,
    brokers.lines_of_groups: lambda tables: list(brokers.lines_of_groups(tables, CLUSTER, [GROUP])),
    brokers.other_lines: lambda tables: brokers.other_lines(tables, CLUSTER),
    brokers.silent_lines: lambda tables: brokers.silent_lines(tables, CLUSTER),
    brokers.lines_about_removals: lambda tables: brokers.lines_about_removals(tables, CLUSTER),
    commit_runs.stored_commits: lambda tables: commits_of(tables),
    commit_trails.trails_by_text: lambda tables: sorted(
        row
        for kind in commit_trails.trails_by_text(tables, CLUSTER).values()
        for row in groups.rows_of(tables, kind, **groups.given(CLUSTER))
    ),
    commit_sums.topic_ends: lambda tables: commit_sums.topic_ends(tables, CLUSTER),
    gaps.summary: lambda tables: gaps.summary(tables, CLUSTER, {PLACE: 0, (GROUP_LOG, 1): 0}),
    gaps.gaps_below: lambda tables: [gaps.gaps_below(tables, CLUSTER, PLACE, end, []) for end in (None, 200)],
    gaps.damage_of: lambda tables: sorted(gaps.damage_of(tables, CLUSTER, PLACE)),
    given_partitions.given: given_partitions.given,
    given_partitions.stored_given: lambda tables: given_partitions.stored_given(tables, CLUSTER),
    given_partitions.log_counts: lambda tables: given_partitions.log_counts(
        tables, CLUSTER, given_partitions.given(tables)[CLUSTER], given_partitions.numbered(tables, CLUSTER)
    ),
    given_partitions.absent: lambda tables: given_partitions.absent(tables, GROUP_LOG, None),
    groups.one_history: lambda tables: groups.one_history(tables, CLUSTER, GROUP),
    groups.report_histories: lambda tables: list(groups.report_histories(tables, CLUSTER)),
    lag.stored_lag: lambda tables: lag.stored_lag(tables, CLUSTER, GROUP),
    lag.lag_at: lambda tables: lag.lag_at(tables, CLUSTER, GROUP, ENDS),
    log_extent.extents_at: lambda tables: [
        log_extent.extents_at(tables, CLUSTER, moment, list(REPLAYED_TOPICS)) for moment in MOMENTS.values()
    ],
    log_extent.has_transactions: lambda tables: [
        log_extent.has_transactions(tables, CLUSTER, PLACE, log_extent.StoredLogExtent(end=end)) for end in (None, 1)
    ],
    logs.counted_lives: lambda tables: logs.counted_lives(tables, CLUSTER),
    logs.has_orphans: lambda tables: [logs.has_orphans(tables, CLUSTER, of) for of in (None, "orphan", GROUP)],
    logs.newest_times: lambda tables: logs.newest_times(tables, CLUSTER, GROUP_LOG, None),
    logs.times_of_groups: lambda tables: logs.times_of_groups(tables, CLUSTER),
    logs.whole_from_ms: lambda tables: logs.whole_from_ms(tables, CLUSTER, logs.lost_records(tables, CLUSTER)),
    logs.last_times: lambda tables: logs.last_times(tables, CLUSTER),
    logs.without_times: lambda tables: logs.without_times(tables, "timeless"),
    logs.lost_before_records: lambda tables: logs.lost_before_records(tables, CLUSTER, REPLAYED_TOPICS),
    logs.lost_records: lambda tables: logs.lost_records(tables, CLUSTER, REPLAYED_TOPICS),
    logs.log_reaches: lambda tables: logs.log_reaches(tables, CLUSTER),
    logs.LogFacts.read: lambda tables: logs.LogFacts.read(tables, CLUSTER),
    offsets.newest_ends: lambda tables: [offsets.newest_ends(tables, CLUSTER, until) for until in (None, 5, 7, 9)],
    replay.has_replayed_all: lambda tables: [replay.has_replayed_all(tables, of) for of in (CLUSTER, "new")],
    replay.unfinished_run: lambda tables: replay.unfinished_run(tables, NOW),
    sessions.stored_lost_sessions: lambda tables: list(sessions.stored_lost_sessions(tables, CLUSTER)),
    settings.read_settings: lambda tables: settings.read_settings(tables, CLUSTER),
    settings.settings_news_ms: lambda tables: [
        settings.settings_news_ms(tables, CLUSTER, after) for after in (*RUNS, "run 3")
    ],
    share_state.given_share_state: lambda tables: share_state.given_share_state(tables, CLUSTER),
    share_state.rests_on_share_state: lambda tables: [
        share_state.rests_on_share_state(tables, CLUSTER, of) for of in (None, "shared", "orphan", GROUP)
    ],
    settings.snapshot_news: lambda tables: [
        settings.snapshot_news(tables, "end_offsets", CLUSTER, after) for after in RUNS
    ],
    topics.stored_topics: lambda tables: topics_of(tables),
    topics.require_one_cluster: checked_topics,
    topics.snapshot: lambda tables: [topics.snapshot(tables, CLUSTER)],
    topics.topics_given: lambda tables: topics.topics_given(tables, CLUSTER),
    topics.first_hole: lambda tables: topics.first_hole(tables, CLUSTER),
    topics.topic_news_ms: lambda tables: [topics.topic_news_ms(tables, CLUSTER, *span) for span in SPANS],
    topics.shown_ms: lambda tables: [topics.shown_ms(tables, CLUSTER, *span) for span in SPANS],
    unreadable.ignored_types: lambda tables: list(unreadable.ignored_types(tables, CLUSTER)),
    unreadable.unreadable_of_groups: lambda tables: unreadable.unreadable_of_groups(tables, CLUSTER),
    unreadable.unplaced_records: lambda tables: unplaced(tables),
    unreadable.last_unplaced: lambda tables: unreadable.last_unplaced(tables, CLUSTER, GROUP_TOPICS, BEFORE),
    unreadable.places: lambda tables: list(unreadable.places(tables, CLUSTER, GROUP_TOPICS, BEFORE)),
    unreadable.first_offsets: lambda tables: unreadable.first_offsets(tables, CLUSTER, SHARE_TOPICS, "TRUE"),
    unreadable.unread_commits: lambda tables: unreadable.unread_commits(tables, CLUSTER),
    unreadable.last_of_keys: lambda tables: sorted(unreadable.last_of_keys(tables, CLUSTER, "TRUE", None)),
    up_to_date.has_all_commits: lambda tables: [up_to_date.has_all_commits(tables, of) for of in (CLUSTER, "new")],
    up_to_date.has_all_records: lambda tables: [up_to_date.has_all_records(tables, of) for of in (CLUSTER, "new")],
    up_to_date.newest_run_in: lambda tables: up_to_date.newest_run_in(tables, CLUSTER, "log_ranges"),
}
"""What each function is asked; those of whole histories are asked through others."""


def asked_over() -> Iterator[tuple[str, Ask, str]]:
    """Yield what is asked by its name, and each store over which it is asked: functions, questions, texts of steps.

    A run that is not over has no sums of all commits: those of another store are read.
    """
    for reader, ask in ASKED.items():
        of_topics = TOPIC_STORES if reader.__module__ == topics.__name__ else ()
        yield from ((name_of(reader), ask, store) for store in ("both", "later", *of_topics))
    for name, ask in QUESTIONS.items():
        yield name, ask, "later"
        if "commits at the end" in name:
            yield name, ask, "both"
    for name in TEXTS:
        yield name, partial(rows_of, name), "later"


def name_of(reader: Callable[..., Any]) -> str:
    return f"{reader.__module__.rpartition('.')[2]}.{reader.__name__}"


def steady(value: Any) -> Any:
    """A value as JSON has it, with the fields of objects by name, and sets in order."""
    if isinstance(value, Mapping):
        return {str(name): steady(of_name) for name, of_name in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(map(steady, value), key=json.dumps)
    if hasattr(value, "_asdict"):
        return steady(value._asdict())
    if is_dataclass(value) and not isinstance(value, type):
        return {part.name: steady(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, (list, tuple)):
        return [steady(part) for part in value]
    if isinstance(value, bytes):
        return value.hex()
    if type(value).__module__.startswith(("coordinator_core", "jobs")) and not isinstance(value, (str, int)):
        return steady({name: getattr(value, name) for name in attributes(value)})
    return value


def attributes(value: Any) -> list[str]:
    return [*getattr(value, "__slots__", ()), *getattr(value, "__dict__", ())]


def as_json(value: Any) -> Any:
    """The answer as a file keeps it: a long one as its length and its digest."""
    answer = json.loads(json.dumps(steady(value), default=str))
    text = json.dumps(answer, sort_keys=True)
    if len(text) < 1_500:
        return answer
    return f"{len(text)} characters, {blake2b(text.encode(), digest_size=12).hexdigest()}"
