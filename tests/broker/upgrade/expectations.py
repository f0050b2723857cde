"""What a log of brokers of several releases must say, whoever reads it."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.broker.kafka import Line
from tests.commands import rows_of_command

PROFILES = {
    "3.9.2": "kafka-3.9",
    "4.0.2": "kafka-4.0.1",
    "4.1.2": "kafka-4.3.1",
    "4.2.1": "kafka-4.3.1",
    "4.3.1": "kafka-4.3.1",
    "4.4.0": "kafka-4.4",
}
"""The profile that a target of a release fits: those of consumer groups are alike from 4.1 on."""


def verdicts(logs: Path) -> list[Line]:
    """Return the rows of the audit's targets; there must be no others: no rule is broken."""
    rows = rows_of_command("audit", "--log", logs)
    assert [each for each in rows if each["table"] == "violations"] == []
    return [each for each in rows if each["table"] == "target_audits"]


def is_undecidable(row: Line) -> bool:
    """Whether a verdict is unknown for what no log has: 4.1's own assignors, or task offsets, which 4.4 goes by."""
    return row["verdict"] == "unknown" and ("kafka-4.1" in row["missing"] or "task offsets" in row["missing"])


def _release_then(row: Line, seen: Sequence[Line]) -> str | None:
    """The release that wrote a target; None: before the first one had started."""
    starts = [(each["at_ms"], each["release"]) for each in seen if each["what"] == "started"]
    return next((release for at_ms, release in reversed(starts) if at_ms <= row["at"]["timestamp_ms"]), None)


def streams_releases(rows: Sequence[Line], seen: Sequence[Line]) -> set[str | None]:
    """Return the releases that computed targets of streams groups."""
    return {_release_then(row, seen) for row in rows if row["group_type"] == "STREAMS"}


def profiles_by_release(rows: Sequence[Line], seen: Sequence[Line]) -> dict[str, set[str]]:
    """Return by release the profiles that its targets of groups with epochs fitted."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        release = _release_then(row, seen)
        is_since_settled = any(
            each["release"] == release and each.get("at_ms", 0) > row["at"]["timestamp_ms"] for each in seen
        )
        if row["verdict"] == "identical" and row["group_type"] != "CLASSIC" and release and is_since_settled:
            found[release].add(row["fitted"].split(", ")[-1].split(" on ")[0])
    return dict(found)


def differing_holders(logs: Path, seen: Sequence[Line]) -> Iterator[tuple[str, str, list[str], list[str]]]:
    """Yield moment, client, what it held, and what its group's description says, where they are not the same.

    Consumers of 3.9 give up at the first broker of 4.0, whose group.version is not raised yet.
    """
    for each in seen:
        if not each.get("clients"):
            continue
        ends = [f"--at-offset={partition}:{end}" for partition, end in each["ends"].items()]
        described = rows_of_command("describe", "--log", logs, "--all", "--at", each["at_ms"], *ends)
        ours = {
            member["consumerId"]: sorted(member["assignment"]["topicPartitions"])
            for group in described
            for member in group.get("describe_consumer", {}).get("members", [])
        }
        for name, held in each["clients"].items():
            if name.endswith("3.9.2") and each["release"] != "3.9.2":
                continue
            if held.get("member") and ours.get(held["member"]) != sorted(held.get("partitions", [])):
                yield f"{each['release']} {each['what']}", name, held.get("partitions", []), ours.get(held["member"])
