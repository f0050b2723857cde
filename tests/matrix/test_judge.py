"""What the judge of the matrix excuses, and that it excuses no more: a judge that lets a wrong answer pass hides it."""

from dataclasses import replace
from typing import Any

import pytest

from tests.matrix.answers import Answer, questions
from tests.matrix.judge import judge
from tests.matrix.other_removals import of_clocks, of_dumps
from tests.matrix.removals import Removal, removals

ASKS = questions(["g"], "t", [])
REMOVALS = removals([0]) | of_clocks() | of_dumps([0])
SEGMENT = REMOVALS["middle segment of 0"]
NO_METADATA = REMOVALS["metadata absent"]
DUMP = REMOVALS["Parquet of a consumer"]
NUMBERED = REMOVALS["JSON lines without partitions"]
LOST = '{"warning": "the log lacks records"}'
NO_TOPICS = '{"warning": "no topics are known"}'
AT = {"partition": 0, "offset": 7, "timestamp_ms": 1000}
REBALANCE = {
    "group_id": "g",
    "at": AT,
    "outcome": "converged",
    "units_lost": 2,
    "idle_ms": 10,
    "delayed_by": "m1",
    "broker_away": None,
    "causes": [{"kind": "topic_deleted", "detail": None}],
    "history_complete": True,
    "missing": None,
}


def verdict(question: str, true: Any, said: Any, removal: Removal, warning: str = "", *, touched: bool = True) -> str:
    """Judge an answer of one row."""
    rows = [[] if row is None else [row] for row in (true, said)]
    answers = Answer(rows[0], "", 0), Answer(rows[1], warning, 0)
    return judge(ASKS[question], *answers, removal, lambda _: touched).verdict


@pytest.mark.parametrize(
    ("said", "warning", "touched", "judged"),
    [
        ({}, LOST, True, "same"),
        ({"outcome": "superseded"}, LOST, True, "wrong"),
        ({"outcome": None, "history_complete": False}, LOST, True, "unknown"),
        ({"outcome": None, "history_complete": False}, LOST, False, "needless"),
        ({"outcome": None}, "", True, "wrong"),
        ({"outcome": "superseded", "history_complete": False}, LOST, True, "wrong"),
        ({"outcome": "unknown", "history_complete": False}, LOST, True, "unknown"),
        ({"units_lost": 3}, LOST, True, "wrong"),
        ({"delayed_by": "m2"}, LOST, True, "wrong"),
        ({"delayed_by": None}, LOST, True, "unknown"),
        ({"delayed_by": None}, LOST, False, "needless"),
        ({"causes": [{"kind": "unknown", "detail": None}]}, LOST, True, "unknown"),
        ({"causes": [{"kind": "topic_metadata_changed", "detail": None}]}, LOST, True, "unknown"),
        ({"causes": [{"kind": "member_joined", "detail": None}]}, LOST, True, "wrong"),
    ],
)
def test_a_rebalance_behind_a_lost_segment(said: dict[str, Any], warning: str, touched: bool, judged: str) -> None:
    assert verdict("rebalances", REBALANCE, REBALANCE | said, SEGMENT, warning, touched=touched) == judged


def test_a_row_that_is_missing_or_too_many() -> None:
    assert verdict("rebalances", REBALANCE, None, SEGMENT) == "wrong"
    assert verdict("rebalances", REBALANCE, None, SEGMENT, LOST) == "unknown"
    assert verdict("rebalances", REBALANCE, None, SEGMENT, LOST, touched=False) == "needless"
    assert verdict("rebalances", None, REBALANCE, SEGMENT, LOST) == "wrong"
    assert verdict("rebalances", None, REBALANCE | {"history_complete": False}, SEGMENT, LOST) == "unknown"


@pytest.mark.parametrize(
    ("removal", "warning", "true", "said", "judged"),
    [
        (NO_METADATA, NO_TOPICS, (None, True), ("m1", None), "same"),
        (NO_METADATA, NO_TOPICS, (None, None), ("m1", None), "wrong"),
        (NO_METADATA, NO_TOPICS, ("m1", None), ("m2", None), "wrong"),
        (NO_METADATA, "", (None, True), ("m1", None), "wrong"),
        (SEGMENT, LOST, (None, True), ("m1", None), "wrong"),
        (DUMP, "", ("m1", None), (None, True), "same"),
        (DUMP, "", ("m1", None), (None, None), "wrong"),
        (DUMP, "", ("m1", None), ("m2", True), "wrong"),
        (SEGMENT, "", ("m1", None), (None, True), "wrong"),
    ],
)
def test_a_member_is_blamed_unless_the_log_that_shows_a_broker_away_is_given(
    removal: Removal, warning: str, true: tuple[str | None, bool], said: tuple[str | None, bool], judged: str
) -> None:
    """Leader epochs, which dumps lack, prove that a coordinator stayed; the metadata log that a broker was down."""
    rows = [REBALANCE | {"delayed_by": member, "broker_away": is_away} for member, is_away in (true, said)]
    assert verdict("rebalances", *rows, removal, warning) == judged


@pytest.mark.parametrize(
    ("removal", "left", "judged"), [(DUMP, AT, "same"), (DUMP, None, "wrong"), (SEGMENT, AT, "wrong")]
)
def test_a_member_that_left_in_the_last_operation_of_a_dump_is_in_an_open_row(
    removal: Removal, left: Any, judged: str
) -> None:
    row = {"table": "memberships", "joined": AT, "left": left, "is_open": False, "history_complete": True}
    assert verdict("history g", row, row | {"is_open": True}, removal) == judged


@pytest.mark.parametrize(("removal", "warning", "judged"), [(NO_METADATA, NO_TOPICS, "same"), (SEGMENT, LOST, "wrong")])
def test_another_version_of_the_topics_behind_a_hole_of_the_metadata_log_only(
    removal: Removal, warning: str, judged: str
) -> None:
    row = {"table": "group_epochs", "opened": AT, "history_complete": True, "missing": None, "topics_at": AT}
    assert verdict("history g", row, row | {"topics_at": AT | {"offset": 9}}, removal, warning) == judged


@pytest.mark.parametrize(
    ("shift_ms", "field", "judged"),
    [(20, "delayed_by", "same"), (20, "units_lost", "wrong"), (300, "units_lost", "wrong"), (300, "outcome", "wrong")],
)
def test_clocks_apart_change_what_only_times_tell(shift_ms: int, field: str, judged: str) -> None:
    said = REBALANCE | {field: "another"}
    assert verdict("rebalances", REBALANCE, said, REMOVALS[f"clock of metadata +{shift_ms} ms"]) == judged


@pytest.mark.parametrize(
    ("shift_ms", "group_type", "apart_ms", "lacks", "judged"),
    [
        (300, "CLASSIC", 200, "topic_deleted", "same"),
        (300, "CLASSIC", 400, "topic_deleted", "wrong"),
        (300, "CLASSIC", 200, "member_joined", "wrong"),
        (300, "CONSUMER", 200, "topic_deleted", "wrong"),
        (20, "CLASSIC", 10, "topic_deleted", "wrong"),
    ],
)
def test_clocks_apart_move_a_change_of_a_topic_past_a_classic_generation_that_is_near(
    shift_ms: int, group_type: str, apart_ms: int, lacks: str, judged: str
) -> None:
    deleted_at = AT | {"timestamp_ms": AT["timestamp_ms"] + apart_ms}
    causes = [
        {"kind": "member_joined", "topics": [], "source": "group log", "at": AT},
        {"kind": "topic_deleted", "topics": ["t"], "source": "cluster metadata", "at": deleted_at},
    ]
    true = REBALANCE | {"group_type": group_type, "causes": causes}
    said = true | {"causes": [each for each in causes if each["kind"] != lacks]}
    assert verdict("rebalances", true, said, REMOVALS[f"clock of metadata +{shift_ms} ms"]) == judged


@pytest.mark.parametrize(("cause", "judged"), [("topic_deleted", "same"), ("member_joined", "wrong")])
def test_clocks_apart_change_how_often_a_topic_was_the_cause(cause: str, judged: str) -> None:
    line = f'coordinator_audit_rebalance_causes_total{{cause="{cause}",group="g",type="CLASSIC"}} 1'
    assert verdict("metrics", {"line": line}, None, REMOVALS["clock of metadata -300 ms"]) == judged


@pytest.mark.parametrize(("touched", "judged"), [(True, "unknown"), (False, "wrong")])
def test_there_may_be_more_than_was_counted_only_where_something_is_lost(touched: bool, judged: str) -> None:
    true, said = ({"line": f'coordinator_audit_rebalances_total{{group="g"}} {count}'} for count in (3, 2))
    assert verdict("metrics", true, said, SEGMENT, LOST, touched=touched) == judged


@pytest.mark.parametrize(("status", "judged"), [(None, "unknown"), ("NOT_READY", "wrong")])
def test_the_reason_of_an_unknown_status_is_no_claim(status: str | None, judged: str) -> None:
    true, said = ({"status": state, "detail": detail} for state, detail in (("READY", None), (status, "why")))
    rows = [{"group": "g", "certainty": "certain", "topology": each} for each in (true, said)]
    assert verdict("describe", *rows, NO_METADATA, NO_TOPICS) == judged


@pytest.mark.parametrize(("status", "judged"), [("unknown", "unknown"), ("settled", "wrong")])
def test_the_state_of_a_share_partition_may_be_unknown(status: str, judged: str) -> None:
    true, said = ({"status": state, "available": count} for state, count in (("not set", 0), (status, None)))
    rows = [{"group": "g", "certainty": "certain", "share_partitions": [each]} for each in (true, said)]
    assert verdict("describe then", *rows, SEGMENT, LOST) == judged


@pytest.mark.parametrize(
    ("text", "judged"),
    [
        ("not ready for 9 ms; from epoch 4: its status is not known: no topics", "unknown"),
        ("not ready for 9 ms; from epoch 4: MISSING_SOURCE_TOPICS: x", "wrong"),
        ("not ready for 8 ms; from epoch 4: its status is not known: no topics", "wrong"),
    ],
)
def test_the_text_of_a_finding_may_say_that_a_status_is_not_known(text: str, judged: str) -> None:
    finding = {"group_id": "g", "kind": "not_ready", "subject": None, "since_ms": 5, "history_complete": True}
    true = "not ready for 9 ms; from epoch 3: INCORRECTLY_PARTITIONED_TOPICS: y"
    rows = [finding | {"detail": each} for each in (true, text)]
    assert verdict("findings", *rows, NO_METADATA, NO_TOPICS) == judged


@pytest.mark.parametrize(
    ("removal", "of_several", "judged"),
    [
        ("0 compacted with tombstones", True, "unknown"),
        ("0 compacted with tombstones", False, "wrong"),
        ("middle segment of 0", True, "wrong"),
    ],
)
def test_of_several_that_a_finding_is_about_compaction_may_leave_one(
    removal: str, of_several: bool, judged: str
) -> None:
    finding = {"group_id": "g", "kind": "static_member_expired", "history_complete": True}
    true = finding | {"subject": None if of_several else "instance a", "since_ms": 5}
    left = finding | {"subject": "instance b", "since_ms": 9}
    assert verdict("findings", true, left, REMOVALS[removal]) == judged


@pytest.mark.parametrize("is_hidden", [True, False])
def test_only_what_is_described_at_a_moment_whose_record_is_gone_may_be_in_doubt_in_other_partitions(
    is_hidden: bool,
) -> None:
    """Share state and topics of other groups are those of its time."""
    true = {"group": "g", "certainty": "certain", "epoch": 3}
    removal = replace(REMOVALS["middle segment of 0"], hides_time=is_hidden)
    verdicts = {
        "describe then": "unknown" if is_hidden else "needless",
        "describe": "needless",
        "groups then": "needless",
    }
    for question, judged in verdicts.items():
        is_touched = removal.touches_all(question)
        said = true | {"certainty": "possibly there", "epoch": None}
        assert verdict(question, true, said, removal, LOST, touched=is_touched) == judged


@pytest.mark.parametrize(
    ("said", "unnamed", "judged"),
    [
        (["t-0"], [], "same"),
        (["A-0"], ["A"], "unknown"),
        (["B-0", "t-0"], ["B"], "unknown"),
        (["B-0", "B-1", "A-0"], ["A", "B"], "unknown"),
        (["B-0", "t-0"], [], "wrong"),
        (["B-0", "B-1"], ["B"], "wrong"),
        (["t-0", "t-1"], ["B"], "wrong"),
        (["gone-0", "t-0"], [], "unknown"),
        (["gone-0"], [], "wrong"),
        (["gone-0", "A-0"], ["A"], "unknown"),
    ],
)
def test_a_topic_that_may_be_gone_is_named_by_its_id(said: list[str], unnamed: list[str], judged: str) -> None:
    true = {"group": "g", "certainty": "certain", "partitions": ["t-0"]}
    found = {**true, "partitions": said, "unnamedTopics": unnamed, "topicsInDoubt": ["gone"]}
    assert verdict("describe", true, found, NO_METADATA, NO_TOPICS) == judged


@pytest.mark.parametrize(("topic", "judged"), [("gone", "unknown"), ("t", "wrong"), ("u", "wrong")])
def test_an_offset_may_be_of_a_topic_that_may_be_gone(topic: str, judged: str) -> None:
    true = {"group": "g", "certainty": "certain", "share_offsets": {"t-0": {"startOffset": 3}}}
    said = true["share_offsets"] | {f"{topic}-1": {"startOffset": 4}}
    found = {**true, "share_offsets": said, "topicsInDoubt": ["gone"]}
    assert verdict("describe", true, found, NO_METADATA, NO_TOPICS) == judged


@pytest.mark.parametrize(("text", "judged"), [("3 deliveries, 4 of t", "unknown"), ("2 deliveries, 4 of t", "wrong")])
def test_a_delivery_limit_that_is_not_known_is_left_out(text: str, judged: str) -> None:
    true = {"group_id": "g", "kind": "share_archived", "detail": "3 deliveries (the limit), 4 of t"}
    assert verdict("findings", true, true | {"detail": text}, NO_METADATA, NO_TOPICS) == judged


@pytest.mark.parametrize(
    ("removal", "until_log", "judged"),
    [
        ("clock of metadata +300 ms", None, "same"),
        ("clock of metadata +300 ms", "0:7", "wrong"),
        ("middle segment of 0", None, "wrong"),
    ],
)
def test_only_the_end_of_a_topic_is_told_by_the_other_clock(removal: str, until_log: str | None, judged: str) -> None:
    row = {"group_id": "g", "partition": 0, "history_complete": True, "until": "1", "until_log": until_log}
    assert verdict("owners over time", row, row | {"until": "2"}, REMOVALS[removal], LOST) == judged


@pytest.mark.parametrize(
    ("shift_ms", "second", "judged"), [(300, "00.182", "same"), (300, "00.301", "wrong"), (20, "00.010", "wrong")]
)
def test_a_record_that_is_near_the_end_of_a_topic_may_come_first(shift_ms: int, second: str, judged: str) -> None:
    row = {"group_id": "g", "partition": 0, "history_complete": True}
    true = row | {"until": "2026-01-01T00:01:00.000+00:00", "until_log": None}
    said = row | {"until": f"2026-01-01T00:01:{second}+00:00", "until_log": "0:7"}
    assert verdict("owners over time", true, said, REMOVALS[f"clock of metadata +{shift_ms} ms"]) == judged


@pytest.mark.parametrize(
    ("is_open", "topics_at", "judged"),
    [(True, None, "same"), (False, None, "wrong"), (True, AT | {"offset": 8}, "wrong")],
)
def test_the_last_generation_may_be_behind_the_metadata_log_by_its_clock(
    is_open: bool, topics_at: Any, judged: str
) -> None:
    row = {"table": "group_epochs", "group_id": "g", "opened": AT, "is_open": is_open, "topics_at": AT}
    assert verdict("history g", row, row | {"topics_at": topics_at}, REMOVALS["clock of metadata -20 ms"]) == judged


def test_of_a_group_in_two_logs_the_part_that_is_certain_is_compared() -> None:
    true = {"group": "g", "certainty": "certain", "epoch": 3}
    possible = {"group": "g", "certainty": "possibly there", "epoch": None}
    rows = Answer([true], "", 0), Answer([possible, true], LOST, 0)
    assert judge(ASKS["groups"], *rows, SEGMENT, lambda _: True).verdict == "unknown"


def test_one_of_several_open_transactions_may_be_lost() -> None:
    row = {"topic": "t", "partition": 0, "status": "pending"}
    true = [row | {"producerId": producer, "offset": 10 + producer} for producer in (1, 2)]
    answers = Answer(true, "", 0), Answer(true[1:], LOST, 0)
    assert judge(ASKS["offsets g"], *answers, SEGMENT, lambda _: True).verdict == "unknown"


def test_generations_have_causes_as_rebalances_have() -> None:
    row = {"table": "group_epochs", "group_id": "g", "group_type": "CLASSIC", "opened": AT, "causes": []}
    assert verdict("history g", row, row, REMOVALS["clock of metadata +300 ms"]) == "same"


def test_a_gate_that_passes_in_silence_or_fails_without_a_finding() -> None:
    def gate(true: int, said: int, warning: str) -> str:
        return judge(ASKS["findings gate"], Answer([], "", true), Answer([], warning, said), SEGMENT, bool).verdict

    assert [gate(3, 0, ""), gate(0, 3, LOST), gate(3, 0, LOST)] == ["wrong", "wrong", "same"]


@pytest.mark.parametrize(
    ("advanced", "warning", "judged"), [(None, LOST, "unknown"), (None, "", "wrong"), (AT, LOST, "wrong")]
)
def test_a_later_record_shows_an_offset_only_where_none_is_named_that_moved_it(
    advanced: dict[str, int] | None, warning: str, judged: str
) -> None:
    true = {"table": "share_partitions", "since": AT, "advanced": AT, "next_offset_shown": AT, "history_complete": True}
    said = true | {"advanced": advanced, "next_offset_shown": AT | {"offset": 9}}
    assert verdict("history g", true, said, SEGMENT, warning) == judged


@pytest.mark.parametrize(
    ("until_ms", "is_open", "judged"), [(8, True, "same"), (10, True, "wrong"), (8, False, "wrong")]
)
def test_what_goes_on_ends_with_the_logs_that_are_there(until_ms: int, *, is_open: bool, judged: str) -> None:
    true = {"group_id": "g", "kind": "flapping_member", "until_ms": 9, "is_open": is_open, "history_complete": True}
    warning = '{"warning": "1 of 2 partitions of __share_group_state were not given"}'
    absent = REMOVALS["share state 0 absent"]
    assert verdict("findings", true, true | {"until_ms": until_ms}, absent, warning) == judged
    true["detail"] = "without a worker for 2 min 28 s: 9 tasks"
    said = true | {"until_ms": until_ms, "detail": "without a worker for 0 ms: 9 tasks"}
    assert verdict("findings", true, said, absent, warning) == judged


@pytest.mark.parametrize(
    ("at", "more", "judged"),
    [
        ({"partition": 43, "offset": 12}, {}, "same"),
        ({"partition": 43, "offset": 12}, {"outcome": "superseded"}, "wrong"),
        ({"partition": 43, "offset": 12, "timestamp_ms": 1001}, {}, "wrong"),
        ({"partition": 43, "offset": 12, "timestamp_ms": 1001}, {"history_complete": False}, "unknown"),
    ],
)
def test_in_a_dump_without_positions_times_tell_which_record_is_which(
    at: dict[str, int], more: dict[str, Any], judged: str
) -> None:
    said = REBALANCE | {"at": AT | at} | more
    assert verdict("rebalances", REBALANCE, said, NUMBERED, '{"warning": "log partitions"}') == judged
    assert verdict("rebalances", REBALANCE, said, DUMP, '{"warning": "control"}') in ("wrong", "unknown")


@pytest.mark.parametrize("question", ["rebalances", "history g"])
def test_rebalances_of_one_time_are_told_apart_by_their_epochs(question: str) -> None:
    of_table = REBALANCE | {"table": "rebalances", "history_complete": False}
    true = [of_table | {"to_epoch": epoch, "at": AT | {"offset": epoch}} for epoch in (1, 2)]
    one_more = [of_table | {"to_epoch": 0, "outcome": "superseded"}, *true]
    answers = Answer(true, "", 0), Answer(one_more, '{"warning": "log partitions"}', 0)
    assert judge(ASKS[question], *answers, NUMBERED, lambda _: True).verdict == "unknown"


@pytest.mark.parametrize(
    ("ends", "judged"),
    [
        # A part whose owner is in doubt goes on over the end of the first true run, or up to an end that is not true.
        ((4, 9), "same"),
        ((4, 8), "wrong"),
    ],
)
def test_a_doubt_about_the_owner_hides_where_a_run_of_commits_ends(ends: tuple[int, int], judged: str) -> None:
    def runs(until: tuple[int, int], begins: int, missing: str | None) -> list[dict[str, Any]]:
        both = [(1, until[0], None), (begins, until[1], missing)]
        return [
            {"group_id": "g", "topic": "t", "partition": 0, "kind": "forward", "missing": doubt}
            | {"since": {"offset": first}, "until": {"offset": last}, "commits": last - first + 1}
            | {"offset_before": first - 1, "offset_after": last, "offsets_per_second": 1.0}
            for first, last, doubt in both
        ]

    true = Answer(runs((6, 9), 7, None), "", 0)
    said = Answer(runs(ends, ends[0] + 1, "the owner"), LOST, 0)
    assert judge(ASKS["commits g"], true, said, NO_METADATA, lambda _: True).verdict == judged
