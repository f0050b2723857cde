"""Each scripted deed is found as the cause of the rebalance that it made, and what is found was scripted."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple

import pytest

from coordinator_core.groups.group import Group
from coordinator_core.history.causes import CauseKind
from coordinator_core.history.rows import Cause, MembershipRow, RebalanceRow
from tests.core.whole_log import fold
from tests.differential.histories import groups_of
from tests.differential.logs_by_group import corpus_log
from tests.differential.metadata import topic_history
from tests.differential.scripted import LEFT, Deed, deeds, events
from tests.shared_data import CORPUS

Tally = dict[str, Counter[str]]
CORPORA = ["scenarios", "misc", "upgrade"]
WITHIN_MS = 30_000
"""Metadata refreshes and session timeouts take their time."""
BEFORE_MS = 3_000
"""A script notes some things when they are done, such as the close of all its clients."""

CONSEQUENCES = frozenset(
    (
        CauseKind.DELAY_ELAPSED,
        CauseKind.PARTITIONS_REVOKED,
        CauseKind.SHARE_STATE_INITIALIZED,
        CauseKind.REGEX_RESOLVED,
        CauseKind.GROUP_UPGRADED,
        CauseKind.GROUP_DOWNGRADED,
    )
)
"""What the protocols do of themselves after a deed."""


AFTER_RESTART = (CauseKind.UNKNOWN, CauseKind.TOPIC_METADATA_CHANGED)


class Found(NamedTuple):
    """A cause, with the client id of the member that it is about and the time of the rebalance."""

    cause: Cause
    client_id: str
    ts: int


class History(NamedTuple):
    """What the fold made of one group."""

    memberships: list[MembershipRow]
    rebalances: list[RebalanceRow]
    causes: list[Found]


@cache
def histories(corpus: str) -> dict[str, History]:
    made = {}
    topics = topic_history(CORPUS / corpus / "logs")
    for group_id, records in groups_of(corpus).items():
        rows = list(fold(records, Group(group_id), topics))
        memberships = [row for row in rows if isinstance(row, MembershipRow)]
        rebalances = [row for row in rows if isinstance(row, RebalanceRow)]
        client_ids = {row.member_id: row.client_id or "" for row in memberships}
        causes = [
            Found(each, client_ids.get(each.member_id or "", ""), row.at.timestamp_ms)
            for row in rebalances
            for each in row.causes
        ]
        made[group_id] = History(memberships, rebalances, causes)
    return made


def is_of(client_id: str | None, client: str) -> bool:
    return client_id == client or (client_id or "").startswith(f"{client}-")


def in_time(ts: int, deed: Deed) -> bool:
    return deed.ts - BEFORE_MS <= ts <= deed.ts + WITHIN_MS


def explains(deed: Deed, found: Found) -> bool:
    return (
        found.cause.kind in deed.kinds
        and (deed.client is None or is_of(found.client_id, deed.client))
        and (deed.instance is None or found.cause.instance_id == deed.instance)
        and (deed.topic is None or deed.topic in found.cause.topics)
        and in_time(found.ts, deed)
    )


def excuse(deed: Deed, history: History) -> str | None:
    """Why the log cannot show a deed as a cause; None if it should."""
    replaced = (row for row in history.memberships if row.came_by == "static replacement")
    if deed.event == "static-bounce-start" and any(
        row.instance_id == deed.instance and in_time(row.joined.timestamp_ms, deed) for row in replaced
    ):
        return "no rebalance"
    if deed.client is not None:
        its = [row for row in history.memberships if is_of(row.client_id, deed.client)]
        if not its:
            return "never in the log"
        if deed.topics and not any(row.subscribed_topics == deed.topics for row in its):
            return "never in the log"
    if any(row.skipped_generations and in_time(row.at.timestamp_ms, deed) for row in history.rebalances):
        return "generation never completed"
    return None


def recall(corpus: str) -> Tally:
    """By event of the script, how many of its deeds were found, how many cannot be (and why), and the missed."""
    tally: Tally = defaultdict(Counter)
    for deed in deeds(CORPUS / corpus):
        history = histories(corpus)[deed.group]
        found = any(explains(deed, each) for each in history.causes)
        tally[deed.event]["found" if found else excuse(deed, history) or "missed"] += 1
    return tally


def precision(corpus: str) -> Tally:
    """By kind of cause, where those found come from."""
    acts = defaultdict(list)
    for deed in deeds(CORPUS / corpus):
        acts[deed.group].append(deed)
    tally: Tally = defaultdict(Counter)
    for group in acts:
        for found in histories(corpus)[group].causes:
            tally[found.cause.kind][origin(corpus, group, found, acts[group]) or "wrong"] += 1
    return tally


def total(tallies: Iterable[Tally]) -> Tally:
    """The tallies of several corpora as one."""
    summed: Tally = defaultdict(Counter)
    for tally in tallies:
        for kind, outcomes in tally.items():
            summed[kind] += outcomes
    return summed


def show(title: str, tally: Tally, good: Callable[[Counter[str]], int], all_of: Callable[[Counter[str]], int]) -> None:
    print(f"\n{title}")
    for kind, outcomes in sorted(tally.items()):
        print(f"  {kind:28} {good(outcomes):4} of {all_of(outcomes):4}  {dict(outcomes)}")


def test_recall_by_event():
    tally = total(map(recall, CORPORA))
    show("recall", tally, lambda each: each["found"], lambda each: each["found"] + each["missed"])
    assert {event: outcomes["missed"] for event, outcomes in tally.items() if outcomes["missed"]} == {}
    assert sum(outcomes["found"] for outcomes in tally.values()) > 400


def origin(corpus: str, group: str, found: Found, acts: list[Deed]) -> str | None:
    """Where a cause comes from; None if from nothing that the script did."""
    kind, topics = found.cause.kind, found.cause.topics
    if kind in CONSEQUENCES:
        return "consequence"
    if any(explains(deed, found) for deed in acts):
        return "scripted"
    if kind == CauseKind.TOPIC_CREATED and topics[0].startswith(f"{group}-"):
        return "internal topic"
    for event in events(CORPUS / corpus):
        if not event["ts"] - BEFORE_MS <= found.ts <= event["ts"] + WITHIN_MS:
            continue
        if kind == CauseKind.TOPIC_CREATED and event.get("topic") in topics:
            return "matched by a regex, or created again by its subscribers"
        if event["event"] == "broker-start" and kind in (*AFTER_RESTART, *LEFT):
            return "broker restart"
    return None


def test_precision_by_kind():
    tally = total(map(precision, CORPORA))
    show("precision", tally, lambda each: each.total() - each["wrong"], Counter.total)
    assert {kind: outcomes["wrong"] for kind, outcomes in tally.items() if outcomes["wrong"]} == {}
    assert sum(map(Counter.total, tally.values())) > 500


def test_a_client_that_learns_of_its_topics_late_has_a_cause():
    first, second, *_ = histories("scenarios")["G-kafka-python"].rebalances
    assert [each.kind for each in first.causes] == ["member_joined"]
    assert [(each.kind, each.topics) for each in second.causes] == [("topic_metadata_changed", ("g-1", "g-2"))]


@pytest.mark.parametrize(
    ("group", "kinds"),
    [
        ("B-online-1", {"group_upgraded", "group_downgraded"}),
        ("B-offline", {"group_upgraded", "group_downgraded"}),
        ("E-classic", {"group_upgraded"}),
    ],
)
def test_changes_of_type_are_found(group, kinds):
    changes = {found.cause.kind for found in histories("scenarios")[group].causes}
    assert changes & {"group_upgraded", "group_downgraded"} == kinds


def test_the_member_that_stopped_polling_held_its_rebalance_up():
    history = histories("scenarios")["B-hold"]
    (slow,) = (row for row in history.rebalances if (row.time_to_converge_ms or 0) > 5000)
    clients = {row.member_id: row.client_id for row in history.memberships}
    (revocation,) = slow.revocations
    assert clients[revocation.member_id] == "B-hold-m0"
    assert slow.delayed_by == revocation.member_id
    assert revocation.duration_ms is not None
    assert revocation.duration_ms > 5000


def test_what_random_churn_proves_is_not_unknown() -> None:
    """Static members that came back with other topics made 26 generations, leaders that learned of topics 11, and
    leaders whose list of topics or partitions was not the newest 9.
    """
    topics, log = topic_history(CORPUS / "wild" / "logs"), corpus_log("wild")
    causes = Counter[str]()
    for (_, group_id), records in log.groups.items():
        for row in fold(records, Group(group_id, from_start=True), topics, log.coverage):
            if isinstance(row, RebalanceRow):
                causes.update(each.kind for each in row.causes)
                assert not (row.group_type != "CLASSIC" and any(each.kind == "unknown" for each in row.causes))
    print(causes)
    assert causes["unknown"] == 4
