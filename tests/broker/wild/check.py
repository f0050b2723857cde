"""Command ``python -m tests.broker.wild.check FOLDER``: what the commands say of a recorded life, against its truth.

Prints one JSON line for each thing that differs or that somebody should look at, the findings, and a line of counts at
the end; the exit code is 1 if an answer is wrong.
"""

import json
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.broker.against_admin import differences, like
from tests.broker.kafka import Line
from tests.broker.wild.witnesses import against_clients
from tests.commands import rows_of_command

REBALANCING = ("PREPARING_REBALANCE", "COMPLETING_REBALANCE")
OWNERS_AT, EXPLAINED = 4, 12
"""At so many moments owners are compared; so many rebalances are explained."""
LATE_MS = 4000
"""A client says what it got at its next poll, which may come late."""


LOADING_MS = 20_000
"""For so long a broker that has started may list no groups, while it loads them."""

WRONG = frozenset(
    (
        *("divergent", "invalid", "equivalent", "describe", "held", "commits", "owners", "explain"),
        *("commits while revoking", "hint", "join", "duration", "commit_by_no_owner", "rolling_deploy"),
    )
)
"""Questions whose answers must be the truth. Somebody should look at the others: unknown verdicts and causes, broken
rules, as clients of Kafka break some (its sticky assignor gives partitions to two members), and offsets of share
groups, which move in another log while Admin answers.
"""


class Differing(NamedTuple):
    """One answer that is not the truth, or not known: the log it is about, the question, and both."""

    log: str
    question: str
    where: str
    truth: Any
    ours: Any


def read(folder: Path) -> list[Line]:
    """The recorded truth."""
    return [json.loads(line) for line in (folder / "truth.jsonl").read_text().splitlines()]


def log_partition(group: str, partitions: int) -> int:
    """The log partition of a group: Java's hash of its id."""
    value = 0
    for unit in group:
        value = (value * 31 + ord(unit)) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >= 1 << 31 else value
    return abs(signed) % partitions


def is_rebalancing(parts: Line) -> bool:
    """Whether Admin saw a classic rebalance under way, in one of its answers: only the coordinator knows of it."""
    return any("groupState" in each and each["groupState"] in REBALANCING for each in parts.values() if each)


def described(log: Path, truth: list[Line]) -> Iterator[Differing]:
    """Compare every group in whose log partition nothing was written while Admin answered."""
    starts = [each["at_ms"] for each in truth if each.get("did") == "starts the broker"]
    for each in truth:
        if each.get("did") != "describe" or not each["ends"]:
            continue
        if not each["groups"] and any(0 <= each["at_ms"] - start <= LOADING_MS for start in starts):
            continue
        ends = [f"--at-offset={partition}:{end}" for partition, end in each["ends"].items()]
        ours = {
            line["group"]: line
            for line in rows_of_command("describe", "--log", log, "--all", "--at", each["at_ms"], *ends)
        }
        quiet = {
            group
            for group in ours.keys() | each["groups"].keys()
            if each["ends"][at := str(log_partition(group, len(each["ends"])))] == each["ends_after"].get(at)
        }
        said = {group: parts for group, parts in each["groups"].items() if group in quiet and not is_rebalancing(parts)}
        mine = [
            line for group, line in ours.items() if group in said or (group in quiet and group not in each["groups"])
        ]
        for group, part, theirs, found in differences(said, mine):
            if _is_but_for_the_assignor(theirs, found):
                continue
            question = part if part == "share_offsets" else "describe"
            yield Differing(log.name, question, f"{group} {part} at {each['at_ms']}", theirs, found)


def _is_but_for_the_assignor(theirs: Any, ours: Any) -> bool:
    """Whether only the assignor differs, which a log does not show where no member asks for one: it is not known."""
    if not isinstance(theirs, dict) or not isinstance(ours, dict) or ours.get("partitionAssignor") is not None:
        return False
    without = {name: value for name, value in theirs.items() if name != "partitionAssignor"}
    return like(ours, without) == like(without, without)


def owned(log: Path, truth: list[Line]) -> Iterator[Differing]:
    """Compare the owners of each partition with the assignments that Admin gave, at some of the moments."""
    moments = [each for each in truth if each.get("did") == "describe" and each["ends"]]
    for each in moments[:: max(len(moments) // OWNERS_AT, 1)]:
        theirs: dict[str, set[tuple[str, int, str]]] = defaultdict(set)
        quiet = set()
        for group, parts in each["groups"].items():
            at = str(log_partition(group, len(each["ends"])))
            described = parts.get("describe_consumer") or parts.get("describe_share")
            if described is None or is_rebalancing(parts):
                continue
            if each["ends"][at] == each["ends_after"].get(at):
                quiet.add(group)
            for member in described["members"]:
                for name in member["assignment"]["topicPartitions"]:
                    topic, _, number = name.rpartition("-")
                    theirs[topic].add((group, int(number), member["consumerId"]))
        ends = [f"--at-offset={partition}:{end}" for partition, end in each["ends"].items()]
        for topic, wanted in sorted(theirs.items()):
            lines = rows_of_command("owners", topic, "--log", log, "--at", each["at_ms"], *ends)
            ours = {(line["group_id"], line["partition"], line["member_id"]) for line in lines}
            for one in sorted({each for each in wanted ^ ours if each[0] in quiet}, key=str):
                yield Differing(log.name, "owners", f"{topic} at {each['at_ms']}", one in wanted, one)


def explained(log: Path) -> Iterator[Differing]:
    """Every rebalance can be explained, and every group has a history and offsets."""
    rows = rows_of_command("rebalances", "--log", log)
    for row in rows[:: max(len(rows) // EXPLAINED, 1)]:
        which = f"{row['at']['partition']}:{row['at']['offset']}"
        if not rows_of_command("explain", which, "--log", log):
            yield Differing(log.name, "explain", which, None, None)


def held(log: Path, truth: list[Line]) -> Iterator[Differing]:
    """Compare what consumers were told that they hold with the partitions that the history says they had then."""
    events = [each for each in truth if each.get("event") == "assigned" and each["partitions"]]
    for group in sorted({each["group"] for each in events}):
        rows = [each for each in rows_of_command("history", group, "--log", log) if each["table"] == "assignments"]
        had: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
        for row in rows:
            if (
                row["kind"] in ("current", "assigned", "held", "owned")
                or row["kind"] != "target"
                or "generation" in row
            ):
                until = row["until"]["timestamp_ms"] if row["until"] else float("inf")
                name = f"{row['topic']}-{row['partition']}"
                had[row["member_id"], name].append((row["since"]["timestamp_ms"], until))
        for event in events:
            if event["group"] != group:
                continue
            missing = [
                name
                for name in event["partitions"]
                if not any(
                    since <= event["at_ms"] + 50 and until >= event["at_ms"] - LATE_MS
                    for since, until in had[event["member"], name]
                )
            ]
            if missing:
                yield Differing(
                    log.name, "held", f"{group} {event['member']} at {event['at_ms']}", event["partitions"], missing
                )


def committed(log: Path, truth: list[Line]) -> Iterator[Differing]:
    """Compare every acknowledged commit with the steps of the group's commits; aborted ones must not be there."""
    events = [each for each in truth if each.get("event") == "commits"]
    for group in sorted({each["group"] for each in events}):
        steps: dict[str, list[Line]] = defaultdict(list)
        for row in rows_of_command("commits", group, "--log", log):
            steps[f"{row['topic']}-{row['partition']}"].append(row)
        acknowledged: Counter[str] = Counter()
        for event in events:
            if event["group"] != group or not event["kept"]:
                continue
            for name, offset in event["offsets"].items():
                acknowledged[name] += 1
                if not any(
                    row["until"]["timestamp_ms"] >= event["began_ms"] - 50
                    and row["since"]["timestamp_ms"] <= event["at_ms"] + 50
                    for row in steps[name]
                ):
                    yield Differing(
                        log.name, "commits", f"{group} {name} at {event['at_ms']}", offset, len(steps[name])
                    )


def causes(log: Path, truth: list[Line]) -> Iterator[Differing]:
    """Look for rebalances whose cause nobody did, or that have none."""
    done: dict[str, list[int]] = defaultdict(list)
    for each in truth:
        done[each.get("did") or each.get("event", "")].append(each.get("began_ms", each["at_ms"]))
    needs = {
        "topic_grown": ("grow",),
        "topic_deleted": ("delete",),
        "topic_created": ("create", "delete", "wild_streams"),
    }
    for row in rows_of_command("rebalances", "--log", log):
        for cause in row["causes"]:
            at = cause["at"]["timestamp_ms"]
            where = f"{row['group_id']}@{row['to_epoch']} {cause['kind']} at {at}"
            if cause["kind"] == "unknown":
                yield Differing(log.name, "cause", where, None, row["missing"] or cause["detail"])
            wanted = needs.get(cause["kind"])
            if wanted and not any(at - 30_000 <= when <= at + 2000 for what in wanted for when in done[what]):
                yield Differing(log.name, "cause", where, None, cause)


def judged(log: Path, *, has_topics: bool = True) -> Iterator[Differing]:
    """Everything that the audit says is wrong or not known; without topics it is right not to know."""
    for row in rows_of_command("audit", "--log", log):
        if row["table"] == "violations":
            yield Differing(log.name, "violation", f"{row['group_id']}", None, row)
        elif row["verdict"] != "identical" and (has_topics or row["verdict"] != "unknown"):
            kept = {
                name: row[name] for name in ("verdict", "basis", "assignor", "fitted", "missing", "differences", "at")
            }
            yield Differing(
                log.name, row["verdict"], f"{row['group_id']}@{row['epoch']} {row['group_type']}", None, kept
            )


def alarmed(log: Path) -> Iterator[Differing]:
    """Alarms that must not be there: nobody commits what he does not have, and no client is ever started again."""
    for row in rows_of_command("audit", "--log", log):
        if row["table"] == "violations" and row["rule"] == "commit_by_no_owner":
            yield Differing(log.name, row["rule"], row["group_id"], None, row)
    for row in rows_of_command("findings", "--log", log):
        if row["kind"] == "rolling_deploy":
            yield Differing(log.name, row["kind"], row["group_id"], None, row)


def compared(folder: Path, tally: Counter[str]) -> Iterator[Differing]:
    """Every answer that is not the truth, or that somebody should look at; see ``WRONG``. ``tally`` counts what clients
    and brokers told.

    The log is asked as it was first written (``full``), without the metadata log (``bare``), and as the cleaner left it
    (``logs``), of which only the verdicts are looked at.
    """
    truth, full, bare = read(folder), folder / "full", folder / "bare"
    for log in full.glob("__consumer_offsets-*"):
        shutil.copytree(log, bare / log.name, dirs_exist_ok=True)
    yield from judged(full)
    yield from causes(full, truth)
    yield from held(full, truth)
    yield from committed(full, truth)
    yield from described(full, truth)
    yield from owned(full, truth)
    yield from explained(full)
    yield from alarmed(full)
    for each in against_clients(folder, truth, tally):
        yield Differing(full.name, each.question, each.where, each.truth, each.ours)
    yield from judged(bare, has_topics=False)
    yield from judged(folder / "logs")


def main(folder: Path) -> int:
    """Print what differs, the findings and the counts; return the exit code."""
    counts: Counter[str] = Counter()
    tally: Counter[str] = Counter()
    is_wrong = False
    for each in compared(folder, tally):
        counts[f"{each.log} {each.question}"] += 1
        is_wrong |= each.question in WRONG
        print(json.dumps(each._asdict(), default=str), flush=True)
    for row in rows_of_command("findings", "--log", folder / "full"):
        print(json.dumps({"finding": row["kind"], "group": row["group_id"], "detail": row["detail"]}))
    rows = rows_of_command("audit", "--log", folder / "full")
    verdicts = Counter(row["verdict"] for row in rows if row["table"] == "target_audits")
    print(json.dumps({"differ": counts, "verdicts": verdicts, "told by clients and brokers": tally}))
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
