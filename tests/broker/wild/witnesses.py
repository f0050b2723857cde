"""What the history says of a recorded life, against what its clients wrote down and what the broker logged.

``against_clients`` compares who had a partition at some moments, who committed, how members went, who joined, and when
rebalances began and ended. It yields what is wrong; ``tally`` counts what was compared, and what was not known.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.offsets.steps import CommitStep, commit_steps
from coordinator_core.groups.owners import owners
from coordinator_core.history.causes import CauseKind
from coordinator_core.history.rows import MembershipRow, RebalanceRow
from jobs.queries.from_logs.answers import LogAnswers
from jobs.queries.from_logs.commits import group_commits
from jobs.relations.moment import AsOf
from jobs.settings import load
from jobs.sources.files import find_logs
from tests.broker.kafka import Line

MOMENTS = 30
"""At so many moments owners are compared."""
SETTLED_MS = 1_500
"""A client has what it was given, and has not begun to give it up, for so long before and after a moment."""
NEAR_MS = 100
"""A client's reading of the clock and the record that it belongs to are this near each other."""
LOGGED_MS = 500
"""The broker logs what it does as it handles a request, and the record has the time of its batch."""
WAITED_MS = 20_000
"""A process that was started may need so long until it joins."""

LINE = re.compile(r"^(?P<time>\S+) \[[^\]]*\] INFO \S+ - (?P<text>.*)$")
LEFT = re.compile(r"[Mm]ember (?P<member>\S+)(?: with instance id \S+)? (?:left the|has left group through explicit)")
EXPIRED = re.compile(
    r"[Mm]ember (?P<member>\S+)(?: in group \S+)? (?:fenced from the group because|has failed, removing)"
)
PREPARES = re.compile(r"Preparing to rebalance group (?P<group>\S+) in state \S+ with old generation (?P<epoch>\d+)")
REACHED = re.compile(r"GroupId (?P<group>[^\]]+)\].* new assignment state: epoch=(?P<epoch>\d+),.* state=STABLE")


class Wrong(NamedTuple):
    """One statement that is not the truth: the question, where, and both."""

    question: str
    where: str
    truth: object
    ours: object


class Held(NamedTuple):
    """A client held a partition, as far as it knew."""

    group: str
    member: str
    name: str
    since_ms: int
    until_ms: int


class BrokerSaid(NamedTuple):
    """What the coordinator logged, by what it speaks of: times in ms since the epoch."""

    left: Mapping[str, list[int]]
    expired: Mapping[str, list[int]]
    prepares: Mapping[tuple[str, int], list[int]]
    reached: Mapping[tuple[str, int], list[int]]


def broker_said(folder: Path) -> BrokerSaid:
    """Read what the brokers of a life wrote into their application logs."""
    found: list[dict[object, list[int]]] = [defaultdict(list) for _ in range(4)]
    for file in sorted(folder.glob("broker*.out")):
        for line in file.read_text(errors="replace").splitlines():
            said = LINE.match(line)
            if said is None:
                continue
            at_ms = round(datetime.fromisoformat(said["time"]).timestamp() * 1000)
            for into, pattern in zip(found, (LEFT, EXPIRED, PREPARES, REACHED), strict=True):
                for each in pattern.finditer(said["text"]):
                    names = each.groupdict()
                    key = names["member"] if "member" in names else (names["group"], int(names["epoch"]))
                    into[key].append(at_ms)
    return BrokerSaid(*found)  # type: ignore[arg-type]


def against_clients(
    folder: Path, truth: Sequence[Line], tally: Counter[str], moments: int = MOMENTS
) -> Iterator[Wrong]:
    """Yield what is wrong in the answers about the log that a life left. Owners are compared at so many ``moments``."""
    answers = LogAnswers(find_logs([folder / "full"]), lambda message: None, load)
    said = broker_said(folder)
    groups = {history.group_id: history for history in answers._histories(None)}
    yield from _committers(folder, truth, groups, tally)
    yield from _owners(answers, truth, said, tally, moments)
    for history in groups.values():
        yield from _departures(history, said, tally)
        yield from _joins(history, truth, tally)
        yield from _times(history, said, tally)


# --- commits ---------------------------------------------------------------------------------------------------------


def _committers(
    folder: Path, truth: Sequence[Line], groups: Mapping[str, GroupHistory], tally: Counter[str]
) -> Iterator[Wrong]:
    """The owner of a commit is the member that made it."""
    events = [each for each in truth if each.get("event") == "commits" and each["kept"] and each.get("member")]
    for group in sorted({each["group"] for each in events} & groups.keys()):
        commits = group_commits(find_logs([folder / "full"]), lambda message: None, group, None)
        steps: dict[str, list[CommitStep]] = defaultdict(list)
        for row in commit_steps(groups[group], commits):
            steps[f"{row.topic}-{row.partition}"].append(row)
        for event in events:
            for name in event["offsets"] if event["group"] == group else ():
                rows = [
                    row
                    for row in steps[name]
                    if row.since.timestamp_ms <= event["at_ms"] + NEAR_MS
                    and row.until.timestamp_ms >= event["began_ms"] - NEAR_MS
                    and row.commits
                ]
                named = {each for row in rows for each in (row.owner, *row.others)}
                kind = "commits while revoking" if event.get("while") else "commits"
                tally[kind] += 1
                if None in named and event["member"] not in named:
                    tally[f"{kind}, owner unknown"] += 1
                elif event["member"] not in named:
                    where = f"{group} {name} {event['began_ms']} to {event['at_ms']}"
                    yield Wrong(kind, where, event["member"], sorted(map(str, named)))


# --- owners ----------------------------------------------------------------------------------------------------------


def held(truth: Sequence[Line]) -> Iterator[Held]:
    """Yield what each client held, and gave up by itself: of what it lost it did not know when."""
    since: dict[tuple[str, str], dict[str, tuple[str, int]]] = defaultdict(dict)
    for each in truth:
        what, name = each.get("event"), each.get("name")
        if what == "assigned":
            for partition in each["partitions"]:
                since[each["group"], str(name)][partition] = each["member"], each["at_ms"]
        elif what in ("revoked", "lost"):
            mine = since[each["group"], str(name)]
            for partition in each["partitions"]:
                got = mine.pop(partition, None)
                if got is not None and what == "revoked":
                    yield Held(each["group"], got[0], partition, got[1], each["at_ms"])


def _owners(
    answers: LogAnswers, truth: Sequence[Line], said: BrokerSaid, tally: Counter[str], moments: int
) -> Iterator[Wrong]:
    """At a moment at which a client has long had a partition and will have it for longer, it is an owner; but for one
    whose session expired meanwhile, and for topics that were deleted.
    """
    deleted = [(each["topic"], each["at_ms"]) for each in truth if each.get("did") == "delete"]
    sure = [
        each
        for each in held(truth)
        if each.until_ms - each.since_ms > 2 * SETTLED_MS
        and not any(each.since_ms < at_ms < each.until_ms for at_ms in said.expired.get(each.member, ()))
        and not any(
            name == each.name.rpartition("-")[0] and each.since_ms < at_ms < each.until_ms for name, at_ms in deleted
        )
    ]
    stops = [(each["at_ms"], each["name"]) for each in truth if each.get("event") == "pauses"]
    stops += [(each["at_ms"], name) for each in truth if each.get("did") == "freezes" for name in each["names"]]
    starts = sorted(each.since_ms + SETTLED_MS + 1 for each in sure)
    for moment in starts[:: max(len(starts) // moments, 1)]:
        then = answers.at(AsOf(moment))
        image, replayed = then.image(), [each.group for each in then.groups()]
        wanted = [each for each in sure if each.since_ms + SETTLED_MS < moment < each.until_ms - SETTLED_MS]
        found = {
            (owner.group_id, f"{topic}-{owner.partition}", owner.member_id)
            for topic in {each.name.rpartition("-")[0] for each in wanted}
            for owner in owners(replayed, image, topic)
        }
        names = {name for at_ms, name in stops if moment - 30_000 < at_ms < moment + 30_000}
        for each in wanted:
            if any(each.member.startswith(name) for name in names):
                continue  # it stands still, and may not know yet what it has lost
            tally["owners"] += 1
            if (each.group, each.name, each.member) not in found:
                theirs = sorted(str(owner) for group, name, owner in found if (group, name) == (each.group, each.name))
                yield Wrong("owners", f"{each.group} {each.name} at {moment}", each, theirs)


# --- causes ----------------------------------------------------------------------------------------------------------


def _departures(history: GroupHistory, said: BrokerSaid, tally: Counter[str]) -> Iterator[Wrong]:
    """A hint that a member left, or expired, is what the broker says of it."""
    for row in history.memberships:
        if row.left is None or row.went_by != "leave or expiry":
            continue
        near = row.left.timestamp_ms
        since = row.joined.timestamp_ms
        left = any(since <= at_ms <= near + NEAR_MS for at_ms in said.left.get(row.member_id, ()))
        expired = any(since <= at_ms <= near + NEAR_MS for at_ms in said.expired.get(row.member_id, ()))
        truth = "left" if left and not expired else "expired" if expired and not left else "both or none"
        hint = (row.hint or "").partition(":")[0]
        tally[f"departures, broker: {truth}, hint: {hint if hint in ('left', 'expired') else 'none'}"] += 1
        if hint in ("left", "expired") and truth in ("left", "expired") and hint != truth:
            yield Wrong("hint", f"{history.group_id} {row.member_id} at {near}", truth, row.hint)


def _joins(history: GroupHistory, truth: Sequence[Line], tally: Counter[str]) -> Iterator[Wrong]:
    """Who is said to have joined was started before, and had not ended; who was started joined."""
    by_id: dict[str, MembershipRow] = {row.member_id: row for row in history.memberships}
    started = {
        each["name"]: each.get("began_ms", each["at_ms"])
        for each in truth
        if each.get("did") in ("wild_consumer", "wild_share", "wild_streams", "foreigner")
    }
    ended = {each["name"]: each["at_ms"] for each in truth if each.get("event") == "ended"}
    ended |= {name: each["at_ms"] for each in truth if each.get("did") == "killed" for name in each["names"]}
    for row in history.rebalances:
        for cause in row.causes:
            client = by_id[cause.member_id].client_id if cause.member_id in by_id else None
            name = re.sub(r"-StreamThread-\d+-consumer$", "", client or "")
            if cause.kind != CauseKind.MEMBER_JOINED or name not in started:
                continue
            tally["joins"] += 1
            last_ms = ended.get(name, cause.at.timestamp_ms) + WAITED_MS
            if not started[name] - NEAR_MS <= cause.at.timestamp_ms <= last_ms:
                where = f"{history.group_id}@{row.to_epoch} at {cause.at.timestamp_ms}"
                yield Wrong("join", where, (started[name], ended.get(name)), cause)


# --- durations -------------------------------------------------------------------------------------------------------


def _times(history: GroupHistory, said: BrokerSaid, tally: Counter[str]) -> Iterator[Wrong]:
    """When a rebalance began, of a classic group; when all members had reached the epoch, of the others."""
    rows = sorted(history.rebalances, key=lambda row: row.at.offset)
    for row in rows:
        where = f"{history.group_id}@{row.to_epoch} at {row.at.timestamp_ms}"
        if row.group_type == "CLASSIC":
            yield from _beginning(row, said, where, tally)
        elif row.outcome == "converged" and row.finished is not None:
            near = row.finished.timestamp_ms
            lines = said.reached.get((row.group_id, row.to_epoch), ())
            reached = [each for each in lines if row.at.timestamp_ms - LOGGED_MS <= each <= near + 10 * LOGGED_MS]
            tally["ends of rebalances" if reached else "ends of rebalances, no line of the broker"] += 1
            if reached and min(abs(each - near) for each in reached) > LOGGED_MS:
                yield Wrong("duration", where, reached, near)


def _beginning(row: RebalanceRow, said: BrokerSaid, where: str, tally: Counter[str]) -> Iterator[Wrong]:
    """The first time that the broker prepared this generation, since the one before was complete."""
    first = row.from_epoch if row.from_epoch is not None else row.to_epoch - 1
    times = [
        at_ms
        for epoch in range(first, row.to_epoch)
        for at_ms in said.prepares.get((row.group_id, epoch), ())
        if (row.began_after_ms or 0) - LOGGED_MS <= at_ms <= row.at.timestamp_ms + LOGGED_MS
    ]
    if not times:
        tally["beginnings of classic rebalances, no line of the broker"] += 1
        return
    tally["beginnings of classic rebalances"] += 1
    began, took = min(times), row.at.timestamp_ms - min(times)
    longest = took if row.duration_max_ms is None else row.duration_max_ms
    if began > row.began_before_ms + LOGGED_MS or not took - (row.duration_min_ms or 0) >= -LOGGED_MS:
        yield Wrong("duration", where, began, (row.began_after_ms, row.began_before_ms))
    elif took > longest + LOGGED_MS:
        yield Wrong("duration", where, took, (row.duration_min_ms, row.duration_max_ms))
