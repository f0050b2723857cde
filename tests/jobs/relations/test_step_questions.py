"""What the steps of a night ask before they begin: of a few rows, each is left out for one reason."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from coordinator_core.audit.settings import AuditSettings
from coordinator_core.cluster.snapshot_settings import METADATA_VERSION, MISSING, ResourceKind
from coordinator_core.records import CONNECT_LOG, GROUP_LOG, SHARE_LOG, RecordType
from jobs.pipeline import nights
from jobs.pipeline.decode import pass_on
from jobs.pipeline.group_pages import changed_groups
from jobs.pipeline.ingest import _within
from jobs.pipeline.lag_history import _since as lag_since
from jobs.pipeline.log_ranges import TO_ORDER
from jobs.pipeline.nights import last_night
from jobs.pipeline.offsets import _stored as stored_offsets
from jobs.pipeline.on_spark import commits
from jobs.pipeline.replay import STATE_VERSION, Span, _Run, _stored_topics
from jobs.pipeline.runs import (
    FLOORS,
    LedgerBalance,
    Undecoded,
    balance,
    decoded_runs,
    last_offsets,
    newest_run,
    newest_runs,
    runs_behind,
    unaccounted,
    undecoded,
)
from jobs.pipeline.snapshots import NEEDLESS
from jobs.pipeline.typed_tables import has_any
from jobs.relations.gaps import listed
from jobs.sources.dump import DumpExtent
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.folder_reader import FolderReader
from jobs.tables.history import GROUP_STATES, HISTORY, REPLAYED, TOPIC_HISTORY
from jobs.tables.log import LOG_RANGES, LOG_RECORDS, QUARANTINE, RUNS
from jobs.tables.nightly import NIGHTLY_STEPS
from jobs.tables.records import CLUSTER_RECORDS, GROUP_RECORDS, OFFSET_COMMITS
from jobs.tables.results import FINDINGS, GROUP_OFFSETS, GROUP_PAGES
from jobs.tables.snapshots import END_OFFSETS, LAG_HISTORY, SNAPSHOT_SETTINGS
from jobs.tables.table import Table
from tests.jobs.relations.engines import write

Row = dict[str, Any]
OTHER = {"cluster": "other"}


def reader(home: Path, rows: dict[Table, list[Row]]) -> FolderReader:
    """Tables whose rows are of one cluster and one log partition, unless they say of which."""
    of_all = {"cluster": "c", "log_topic": GROUP_LOG, "log_partition": 0}
    made: dict[Table, list[Row]] = {}
    for table, of_table in rows.items():
        names = table.schema.names
        made[table] = [{name: value for name, value in {**of_all, **row}.items() if name in names} for row in of_table]
    write(home, made)
    return FolderReader(str(home))


def tables(home: Path, rows: dict[Table, list[Row]]) -> Any:
    """What steps are given, as far as they ask an engine."""
    engine = reader(home, rows)
    return SimpleNamespace(engine=lambda: engine)


def run(run_id: str, job: str = "ingest", **given: Any) -> Row:
    return {"run_id": run_id, "job": job, "records": 1, **given}


def test_a_run_without_a_row_of_the_ledger_was_killed(tmp_path: Path) -> None:
    ledger = [run("2"), run("1"), run("4", "decode")]
    records = [{"run_id": number, "log_offset": 0} for number in "12334"]
    assert unaccounted(tables(tmp_path, {RUNS: ledger, LOG_RECORDS: records})) == ["3", "4"]


def test_last_offsets_are_those_of_the_ledger(tmp_path: Path) -> None:
    ledger = [
        *(run("1", last_offset=5), run("2", last_offset=9), run("2", last_offset=7, log_partition=1)),
        *(run("3", last_offset=None, log_partition=2), run("3", last_offset=1, log_topic=CONNECT_LOG)),
        *(run("3", "decode", last_offset=99), run("1", last_offset=99, **OTHER), run("3", last_offset=20)),
    ]
    found = tables(tmp_path, {RUNS: ledger})
    assert last_offsets(found, "c", "3") == {(GROUP_LOG, 0): 9, (GROUP_LOG, 1): 7}
    assert last_offsets(found, "c") == {(GROUP_LOG, 0): 20, (GROUP_LOG, 1): 7, (CONNECT_LOG, 0): 1}


def test_runs_to_decode_and_those_that_are_decoded(tmp_path: Path) -> None:
    ledger = [*(run("1"), run("1", "decode")), *(run("2"), run("2", log_partition=1)), run("3", records=0)]
    ledger += [run("5", "decode", records=1), run("5", "decode", records=2, log_partition=1)]
    ledger += [run("0", "decode", **OTHER), run("4", "decode", records=0)]
    found = tables(
        tmp_path, {RUNS: ledger, LOG_RANGES: [{"run_id": number} for number in "12"] + [{"run_id": "1", **OTHER}]}
    )
    assert undecoded(found) == [Undecoded("2", 2), Undecoded("3", 0)]
    assert decoded_runs(found) == {"c": ["1", "5"], "other": ["0"]}
    assert (newest_run(found, "ingest"), newest_run(found, "decode"), newest_run(found, "replay")) == ("3", "5", "")


@pytest.mark.parametrize("table", [LOG_RANGES, COMMIT_SUMMARIES, GROUP_STATES, GROUP_RECORDS, OFFSET_COMMITS])
def test_runs_of_which_a_table_has_rows(tmp_path: Path, table: Table) -> None:
    found = tables(tmp_path, {table: [{"run_id": number} for number in "31223"] + [{"run_id": "1", **OTHER}]})
    assert newest_runs(found, table) == {"c": "3", "other": "1"}
    assert (runs_behind(found, table, "1"), runs_behind(found, table, "")) == (["2", "3"], ["1", "2", "3"])


def test_records_of_a_run_are_in_one_table_each(tmp_path: Path) -> None:
    log = [
        {"run_id": "1", "kind": kind, "log_offset": n}
        for n, kind in enumerate(("record", "record", "control", "empty"))
    ]
    log += [{**log[0], "run_id": "2"}, {**log[0], **OTHER}, {**log[0], "log_partition": 1}]
    decoded: dict[Table, list[Row]] = {
        table: [{"run_id": "1", **row} for row in rows] + [{"run_id": "2"}] * 2
        for table, rows in (
            (OFFSET_COMMITS, [{}, OTHER]),
            (GROUP_RECORDS, [{"log_partition": 1}]),
            (CLUSTER_RECORDS, [{"log_topic": CONNECT_LOG}]),
            (QUARANTINE, [{}]),
        )
    }
    found = balance(tables(tmp_path, {LOG_RECORDS: log, **decoded}), "1")
    assert sorted(found) == [
        LedgerBalance("c", GROUP_LOG, 0, 3, 1, 1, 1, 1),
        LedgerBalance("c", GROUP_LOG, 1, 1, 0, 0, 1, 0),
        LedgerBalance("other", GROUP_LOG, 0, 1, 0, 0, 1, 0),
    ]
    assert [of.missing for of in sorted(found)] == [0, 0, 0]


def test_gaps_are_looked_for_from_the_last_offset_before_new_ones(tmp_path: Path) -> None:
    offsets: list[Row] = [{"log_offset": number} for number in (1, 3, 5, 7)]
    others: list[Row] = [
        {"log_offset": 4, **other} for other in (OTHER, {"log_topic": CONNECT_LOG}, {"log_partition": 1})
    ]
    begins, values = listed({(GROUP_LOG, 0): 5, (GROUP_LOG, 1): 3})
    rows = reader(tmp_path, {LOG_RECORDS: [*offsets, *others]}).tuples(
        FLOORS.format(begins=begins), cluster="c", **values
    )
    assert sorted(rows) == [(GROUP_LOG, 0, 3), (GROUP_LOG, 1, 3)]


@pytest.mark.parametrize(("again", "expected"), [([], {0: 1, 1: 2}), ([0], {0: 3, 1: 2})])
def test_slices_follow_what_the_ledger_says(tmp_path: Path, again: list[int], expected: dict[int, int]) -> None:
    of = commits.SLICE_ROWS
    ledger = [
        *(run("1", records=2 * of), run("2", records=of), run("3", records=9 * of)),
        run("2", records=2 * of, log_partition=1),
        *(run("2", records=9 * of, **other) for other in (OTHER, {"log_topic": CONNECT_LOG}, {"log_partition": None})),
        run("2", "decode", records=9 * of),
    ]
    assert commits.of_log_partitions(tables(tmp_path, {RUNS: ledger}), "c", ("1", "2"), again, 8) == expected


def test_records_to_order_are_those_of_partitions_with_gaps(tmp_path: Path) -> None:
    ledger = [
        *(run("2", records=10, first_offset=0, last_offset=9), run("2", records=5, first_offset=0, last_offset=9)),
        *(run(number, records=50, first_offset=0, last_offset=99) for number in "13"),
        *(
            {**run("2", job, records=70), "first_offset": 0, "last_offset": 99, **other}
            for job, other in (("decode", {}), ("ingest", OTHER))
        ),
    ]
    given = {"cluster": "c", "done": "1", "upto": "2"}
    assert list(reader(tmp_path, {RUNS: ledger}).tuples(TO_ORDER, **given)) == [(5,)]


SPAN = {"run_id": "1", "first_ms": 10, "last_ms": 40}
NEW_SPAN = {"run_id": "2", "first_ms": 50, "last_ms": 60}
LAG = {
    "nothing new": ([SPAN], [{"run_id": "1", "timestamp_ms": 5}], None),
    "a snapshot": ([SPAN], [{"run_id": "2", "timestamp_ms": 7}, {"run_id": "2", "timestamp_ms": 9}], 7),
    "a snapshot of another cluster": ([SPAN], [{"run_id": "2", "timestamp_ms": 7, **OTHER}], None),
    "records behind": ([SPAN, {**SPAN, "last_ms": 30}, NEW_SPAN], [], 40),
    "records before": ([SPAN, {**NEW_SPAN, "first_ms": 3}, NEW_SPAN], [], 3),
    "records of a new partition": ([SPAN, {**NEW_SPAN, "log_partition": 1}], [], 50),
    "records without a time": ([SPAN, {**NEW_SPAN, "first_ms": None}], [], -1),
    "records of another log": ([SPAN, {**NEW_SPAN, "log_topic": CONNECT_LOG}], [], None),
    "records of another cluster": ([SPAN, {**NEW_SPAN, **OTHER}], [], None),
}


@pytest.mark.parametrize("case", LAG)
def test_lag_is_computed_again_since_what_is_new(tmp_path: Path, case: str) -> None:
    spans, snapshots, expected = LAG[case]
    assert lag_since(reader(tmp_path, {LOG_RANGES: spans, END_OFFSETS: snapshots}), "c", "1") == expected


def test_a_setting_between_equal_values_can_be_left_out(tmp_path: Path) -> None:
    def shown(values: str, **of: Any) -> list[Row]:
        row = {"resource_type": "broker", "resource": "1", "name": "n", **of}
        return [{**row, "timestamp_ms": time_ms, "value": value} for time_ms, value in enumerate(values)]

    rows = [*shown("aaa"), *shown("abba", resource="2"), *shown("aaa", **OTHER), *shown("aab", name="m")]
    rows += [*shown("ccc", resource_type=ResourceKind.FINALIZED_FEATURES, name="level"), *shown("ddd", name=MISSING)]
    kept = [(ResourceKind.SUPPORTED_FEATURES, METADATA_VERSION), (ResourceKind.FINALIZED_FEATURES, MISSING)]
    for resource_type, name in kept:
        rows += shown("aaa", resource_type=resource_type, name=name)
    names = ("cluster", "resource", "name", "timestamp_ms")
    found = reader(tmp_path, {SNAPSHOT_SETTINGS: rows}).rows(NEEDLESS, cluster="c")
    needless = sorted(tuple(row[name] for name in names) for row in found)
    assert needless == [("c", "1", name, 1) for name in ("level", MISSING, "n")]


def test_what_a_night_has_found_is_counted_by_cluster(tmp_path: Path) -> None:
    unstable = sorted(nights.UNSTABLE)[0]
    lags = [("t", 1, 5, "OK"), ("t", 3, 9, nights.LAGGING[0]), ("t", 2, 90, "OK"), ("u", 1, 4, "OK"), ("v", 1, 0, "OK")]
    rows: dict[Table, list[Row]] = {
        HISTORY["group_epochs"]: [
            {"group_id": "g", "is_open": True},
            {"group_id": "g", "is_open": True},
            {"group_id": "h", "is_open": False},
        ],
        HISTORY["rebalances"]: [{"group_id": "g"}],
        HISTORY["violations"]: [{"group_id": "g"}],
        HISTORY["target_audits"]: [
            {"group_id": "g", "verdict": name} for name in ("divergent", "invalid", "identical")
        ],
        FINDINGS: [{"group_id": "g", "kind": kind} for kind in (unstable, unstable)]
        + [{"group_id": name, "kind": "other"} for name in "hi"],
        LAG_HISTORY: [
            {"group_id": "g", "topic": topic, "partition": 0, "timestamp_ms": at, "lag": lag, "status": status}
            for topic, at, lag, status in lags
        ],
        GROUP_STATES: [],
    }
    twice = {
        table: [*of_table, *({**row, "group_id": f"{row['group_id']}?", **OTHER} for row in of_table)]
        for table, of_table in rows.items()
    }
    found = reader(tmp_path, twice)
    counts = {name: nights._count(found, name, "c") for name in nights.COUNTS}
    expected = {"groups": 1, "rebalances": 1, "violations": 1, "wrong_targets": 2, "findings": 4, "unstable": 1}
    assert counts == expected | {"total_lag": 13, "max_lag": 9, "lagging": 1}


def test_steps_take_what_they_took_in_the_last_night_that_took_records_in(tmp_path: Path) -> None:
    steps = [
        ("1", "ingest", 1.0, "done"),
        ("2", "ingest", 2.0, "done"),
        ("2", "replay", 3.0, "failed"),
        ("2", "report", 4.0, "skipped"),
    ]
    steps += [("3", "ingest", 9.0, "failed"), ("4", "report", 9.0, "done")]
    rows = [dict(zip(("night", "step", "seconds", "ended"), row, strict=True)) for row in steps]
    ledger = [
        run("1", records=8),
        run("2", records=3),
        run("2", records=4),
        run("2", "decode", records=9),
        run("3", "decode"),
    ]
    found: Any = reader(tmp_path, {NIGHTLY_STEPS: rows, RUNS: ledger})
    times = last_night(found)
    assert (times.seconds, times.records) == ({"ingest": 2.0, "report": 4.0}, 7)


NEWS: dict[str, tuple[Row, bool]] = {
    "news of records": ({"run_id": "1", "revised_by": "2"}, True),
    "old news of records": ({"run_id": "1", "revised_by": "1"}, False),
    "new records": ({"run_id": "2"}, False),
    "news of another cluster": ({"run_id": "1", "revised_by": "2", **OTHER}, False),
    "news of another partition": ({"run_id": "1", "revised_by": "2", "log_partition": 1}, False),
    "news of another log": ({"run_id": "1", "revised_by": "2", "log_topic": CONNECT_LOG}, False),
}
EMPTY: dict[Table, list[Row]] = {
    table: [] for table in (LOG_RANGES, COMMIT_SUMMARIES, LOG_RECORDS, GROUP_STATES, GROUP_RECORDS, GROUP_PAGES)
}
GROUPS = {GROUP_STATES: "of a state", GROUP_RECORDS: "of a record", COMMIT_SUMMARIES: "of commits"}


@pytest.mark.parametrize("case", NEWS)
def test_groups_in_whose_log_partition_more_is_known_of_old_records(tmp_path: Path, case: str) -> None:
    row, is_new = NEWS[case]
    rows = {**EMPTY, LOG_RECORDS: [row]}
    for of, name in GROUPS.items():
        known = {"group_id": name, "run_id": "1"}
        rows[of] = [known, {**known, "group_id": f"{name}?", **OTHER}, {**known, "group_id": None}]
    assert changed_groups(reader(tmp_path, rows), "c", "1") == (sorted(GROUPS.values()) if is_new else [])


@pytest.mark.parametrize("table", GROUPS, ids=lambda table: table.name)
def test_groups_with_new_rows_have_changed(tmp_path: Path, table: Table) -> None:
    named = (("new", "2", "c"), ("known", "1", "c"), ("of another cluster", "2", "other"), (None, "2", "c"))
    rows = [dict(zip(("group_id", "run_id", "cluster"), row, strict=True)) for row in named]
    assert changed_groups(reader(tmp_path, {**EMPTY, table: rows}), "c", "1") == ["new"]


def test_what_is_known_of_groups_holds_until_their_log_reaches_a_time(tmp_path: Path) -> None:
    states = [{"group_id": name, "run_id": "1", "log_partition": int(name == "b")} for name in ("a", "b", "page")]
    ends = [{"run_id": "1", "log_partition": 0, "last_ms": 10}, {"run_id": "1", "log_partition": 1, "last_ms": 20}]
    of_pages = (("a", 11, "{}"), ("b", 20, "{}"), ("without a log", 1, "{}"), ("always", 0, "{}"), ("page", 11, None))
    pages = [dict(zip(("group_id", "until_ms", "summary"), row, strict=True)) for row in of_pages]
    rows = {**EMPTY, GROUP_STATES: states, LOG_RANGES: ends, GROUP_PAGES: [*pages, {**pages[3], **OTHER}]}
    tables = reader(tmp_path, rows)
    assert changed_groups(tables, "c", "1") == ["always", "b"]
    assert changed_groups(tables, "c", "1", with_pages=True) == ["always", "b", "page"]
    assert changed_groups(tables, "c", "1", [f"{GROUP_LOG}-0"]) == ["a", "always", "b", "page"]


STATE = {"group_id": "g", "run_id": "1", "version": STATE_VERSION, "timestamp_ms": 5, "log_partition": 1}
RECORD: Row = {"group_id": "g", "run_id": "1", "log_offset": 3, "timestamp_ms": 6, "log_partition": 1}
UNREAD: Row = {"part": "value", "record_type": RecordType.GROUP_METADATA.value}
BEFORE: Row = {"run_id": "2", "log_partition": 0}
REPLAYS: dict[str, tuple[Table, Row, bool]] = {
    "nothing new": (GROUP_RECORDS, RECORD, False),
    "a state of another form": (GROUP_STATES, {**STATE, "group_id": "h", "version": "0"}, True),
    "a state of a later form": (GROUP_STATES, {**STATE, "group_id": "h", "version": f"{STATE_VERSION}+"}, True),
    "a state of another form of another cluster": (GROUP_STATES, {**STATE, "version": "0", **OTHER}, False),
    "a state behind news": (GROUP_STATES, {**STATE, "group_id": "h", "timestamp_ms": 100}, True),
    "a state before news": (GROUP_STATES, {**STATE, "group_id": "h", "timestamp_ms": 99}, False),
    "a state behind news of another cluster": (GROUP_STATES, {**STATE, "timestamp_ms": 100, **OTHER}, False),
    "a record in an earlier partition": (GROUP_RECORDS, {**RECORD, **BEFORE}, True),
    "an unreadable record in an earlier partition": (QUARANTINE, {**RECORD, **UNREAD, **BEFORE}, True),
    "an interrupted replay": (REPLAYED, {"group_id": "g"}, True),
    "an interrupted replay of another cluster": (REPLAYED, {"group_id": "g", **OTHER}, False),
    "a known record whose topics are known now": (GROUP_RECORDS, {**RECORD, "timestamp_ms": 50}, True),
    "a record before such topics": (GROUP_RECORDS, {**RECORD, "timestamp_ms": 49}, False),
    "a new record with such topics": (GROUP_RECORDS, {**RECORD, "run_id": "2", "timestamp_ms": 50}, False),
    "such a record of another cluster": (GROUP_RECORDS, {**RECORD, "timestamp_ms": 50, **OTHER}, False),
    "such a record of the share state log": (
        GROUP_RECORDS,
        {**RECORD, "timestamp_ms": 50, "log_topic": SHARE_LOG},
        False,
    ),
    "such a record without a place": (GROUP_RECORDS, {**RECORD, "timestamp_ms": 50, "log_offset": None}, False),
    "records before known ones": (LOG_RANGES, {"run_id": "2", "first_offset": 0, "last_offset": 1}, True),
}


@pytest.mark.parametrize("case", REPLAYS)
def test_groups_begin_again_where_a_small_question_says_so(tmp_path: Path, case: str) -> None:
    table, row, expected = REPLAYS[case]
    empty: dict[Table, list[Row]] = {of: [] for of in (GROUP_RECORDS, QUARANTINE, REPLAYED, COMMIT_SUMMARIES)}
    known: dict[Table, list[Row]] = {
        GROUP_STATES: [STATE],
        LOG_RANGES: [{"run_id": "1", "first_offset": 2, "last_offset": 5}],
    }
    rows = {**empty, **known}
    rows[table] = [*rows[table], row]
    replayed = _Run(tables(tmp_path, rows), "c", AuditSettings(), Span("1", "2", "2", False))
    replayed._given |= {"news_ms": 100, "shown_ms": 50}
    assert replayed._may_rebuild(replayed._tables.engine()) == expected


def test_new_records_without_a_place_are_counted(tmp_path: Path) -> None:
    counted: list[Row] = [{"log_offset": None}, {"log_partition": None}]
    others: list[Row] = [
        *({}, {}),
        *({**row, **other} for row in counted for other in (OTHER, {"run_id": "1"}, {"run_id": "3"})),
    ]
    others.append({"log_offset": None, "log_topic": "another"})
    rows = [{**RECORD, "run_id": "2", **row} for row in (*counted, *others)]
    found = _Run(tables(tmp_path, {GROUP_RECORDS: rows}), "c", AuditSettings(), Span("1", "2", "2", False))
    assert found._unplaced() == 2


REPEATED: Row = {"kind": "record", "log_offset": 5}
OF_DUMP: Final = [DumpExtent(GROUP_LOG, 0, 5), DumpExtent(CONNECT_LOG, None, 7), DumpExtent(GROUP_LOG, 2, 1)]
REPEATS: dict[str, tuple[Row, bool]] = {
    "from the first offset on": ({}, True),
    "behind it": ({"log_offset": 6}, True),
    "before it": ({"log_offset": 4}, False),
    "in a partition that was not given": ({"log_partition": 1}, False),
    "in another partition that was given": ({"log_partition": 2, "log_offset": 1}, True),
    "before the first offset of that": ({"log_partition": 2, "log_offset": 0}, False),
    "of another log": ({"log_topic": SHARE_LOG}, False),
    "in any partition": ({"log_topic": CONNECT_LOG, "log_partition": 9, "log_offset": 7}, True),
    "in any partition, before the first offset": ({"log_topic": CONNECT_LOG, "log_offset": 6}, False),
    "without a place": ({"log_topic": None, "log_partition": None, "log_offset": None, "stray": "offset"}, True),
    "of another cluster": (OTHER, False),
    "without a place, of another cluster": ({**OTHER, "stray": "offset"}, False),
}


@pytest.mark.parametrize("case", REPEATS)
def test_a_dump_may_repeat_known_records_from_its_first_offsets_on(tmp_path: Path, case: str) -> None:
    row, expected = REPEATS[case]
    found = tables(tmp_path, {LOG_RECORDS: [{**REPEATED, **row}]})
    condition, values = _within("c", OF_DUMP)
    assert has_any(found, condition, **values) == expected


@pytest.mark.parametrize("revised_by", ["1", "3", None])
def test_nothing_is_passed_on_where_a_run_learned_nothing(tmp_path: Path, revised_by: str | None) -> None:
    pass_on(tables(tmp_path, {LOG_RECORDS: [{**REPEATED, "revised_by": revised_by}]}), "2")


def test_what_a_run_learned_is_passed_on(tmp_path: Path) -> None:
    with pytest.raises(AttributeError, match="made"):
        pass_on(tables(tmp_path, {LOG_RECORDS: [{**REPEATED, "revised_by": "2"}]}), "2")


def test_offsets_and_topics_that_are_stored(tmp_path: Path) -> None:
    offsets = [{"run_id": run_id, "partition": number} for number, run_id in enumerate("122")]
    topics = [{"topic": "t", "topic_id": "i"}, {"topic": "u", "topic_id": "j", **OTHER}]
    found = tables(tmp_path, {GROUP_OFFSETS: offsets, TOPIC_HISTORY: topics})
    assert (stored_offsets(found, "1"), stored_offsets(found, "2"), stored_offsets(found, "3")) == (1, 2, 0)
    assert [each.topic for each in _stored_topics(found, "c")] == ["t"]
