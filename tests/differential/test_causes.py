"""Each scripted deed is found as the cause of the rebalance that it made, and what is found was scripted."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache
from typing import NamedTuple

import pytest

from coordinator_core.groups.group import Group
from coordinator_core.history.causes import CauseKind
from coordinator_core.history.fold import fold
from coordinator_core.history.rows import Cause, MembershipRow, RebalanceRow
from tests.differential.histories import groups_of
from tests.differential.metadata import topic_history
from tests.differential.scripted import LEFT, Deed, deeds, events
from tests.shared_data import CORPUS

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


@pytest.mark.parametrize("corpus", CORPORA)
def test_each_deed_is_found(corpus):
    tally: dict[str, Counter[str]] = defaultdict(Counter)
    missed = []
    for deed in deeds(CORPUS / corpus):
        history = histories(corpus)[deed.group]
        found = any(explains(deed, each) for each in history.causes)
        outcome = "found" if found else excuse(deed, history) or "missed"
        tally[deed.event][outcome] += 1
        if outcome == "missed":
            missed.append(deed)
    for event, outcomes in sorted(tally.items()):
        print(f"{corpus}: {event}: {dict(outcomes)}")
    assert missed == []


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


@pytest.mark.parametrize("corpus", CORPORA)
def test_what_is_found_was_scripted(corpus):
    acts = defaultdict(list)
    for deed in deeds(CORPUS / corpus):
        acts[deed.group].append(deed)
    tally: dict[str, Counter[str]] = defaultdict(Counter)
    wrong = []
    for group in acts:
        for found in histories(corpus)[group].causes:
            where = origin(corpus, group, found, acts[group])
            tally[found.cause.kind][where or "wrong"] += 1
            if where is None:
                wrong.append((group, found))
    for kind, outcomes in sorted(tally.items()):
        print(f"{corpus}: {kind}: {dict(outcomes)}")
    assert wrong == []


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
    assert slow.held_up_by == revocation.member_id
    assert revocation.duration_ms is not None
    assert revocation.duration_ms > 5000
