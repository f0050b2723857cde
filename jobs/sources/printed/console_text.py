"""What Kafka's console formatters printed until release 3.8: one line of Scala's text for each record.

``OffsetsMessageFormatter`` prints all fields of a commit. ``GroupMetadataMessageFormatter`` prints of a member neither
its subscription nor what it was assigned, and of a group neither its leader nor its time.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from coordinator_core.errors import CoordinatorAuditError, InputError
from coordinator_core.records import GROUP_LOG, Fields, RecordType
from coordinator_core.wire.kafka_text import NO_BLOB, NOT_PRINTED, printed_key, printed_value
from jobs.sources.printed.printed_rows import NOT_PRINTED_BYTES, Row, damaged

COMMIT: Final = re.compile(
    r"\[(?P<group>.*),(?P<topic>[a-zA-Z0-9._-]+),(?P<partition>\d+)\]::(?:NULL|OffsetAndMetadata\("
    r"offset=(?P<offset>-?\d+), leaderEpoch=Optional(?:\.empty|\[(?P<epoch>-?\d+)\]), metadata=(?P<metadata>.*), "
    r"commitTimestamp=(?P<time>-?\d+), expireTimestamp="
    r"(?:None|Some\((?P<expires>-?\d+)\)|OptionalLong(?:\.empty|\[(?P<expiry>-?\d+)\]))\))",
    re.DOTALL,
)
GROUP: Final = re.compile(
    r"(?P<id>.*)::(?:NULL|GroupMetadata\(groupId=(?P=id), generation=(?P<generation>-?\d+), "
    r"protocolType=(?:None|Some\((?P<protocol>.*?)\)), currentState=(?P<state>\w+), members=\w*\((?P<members>.*)\)\))",
    re.DOTALL,
)
MEMBER: Final = re.compile(
    r"MemberMetadata\(memberId=(?P<memberId>.*?), groupInstanceId=(?:None|Some\((?P<groupInstanceId>.*?)\)), "
    r"clientId=(?P<clientId>.*?), clientHost=(?P<clientHost>.*?), sessionTimeoutMs=(?P<sessionTimeout>\d+), "
    r"rebalanceTimeoutMs=(?P<rebalanceTimeout>\d+), supportedProtocols=List\((?P<protocols>.*?)(?:, )?\)",
    re.DOTALL,
)


def rows(lines: Iterable[bytes]) -> Iterator[Row]:
    """Yield a row for each line that is not empty; ``place`` is its number. Others become damaged rows."""
    for number, line in enumerate(lines, 1):
        text = line.decode("utf-8", "surrogateescape").rstrip("\r\n")
        if not text:
            continue
        try:
            yield {**_parse(text), "place": number}
        except (CoordinatorAuditError, ValueError) as error:
            yield damaged(line, f"line {number}: {error}", number)


def _parse(text: str) -> Row:
    """Return a line as a row without a position.

    Raises:
        InputError: it is not such a line.
        EncodeError: its fields do not fit the schema.
    """
    row: Row = {"log_topic": GROUP_LOG, "kind": "record", "outcome": "unknown", "value": None}
    if (commit := COMMIT.fullmatch(text)) is not None:
        key = {"group": commit["group"], "topic": commit["topic"], "partition": int(commit["partition"])}
        row["key"] = printed_key(RecordType.OFFSET_COMMIT, key)
        if commit["offset"] is not None:
            row["value"] = _commit(commit)
        return row
    if (group := GROUP.fullmatch(text)) is not None:
        row["key"] = printed_key(RecordType.GROUP_METADATA, {"group": group["id"]})
        if group["generation"] is not None:
            row["value"] = _group(group)
            row["extra"] = {NOT_PRINTED_BYTES: "unknown"}
        return row
    raise InputError("neither a commit nor a group, as Kafka's console formatters print them")


def _commit(commit: re.Match[str]) -> bytes:
    expires = commit["expires"] or commit["expiry"]
    fields: Fields = {
        "offset": int(commit["offset"]),
        "metadata": commit["metadata"],
        "commitTimestamp": int(commit["time"]),
        "leaderEpoch": int(commit["epoch"] or -1),
        "expireTimestamp": int(expires or -1),
    }
    return printed_value(RecordType.OFFSET_COMMIT, 3 if expires is None else 1, fields)


def _group(group: re.Match[str]) -> bytes:
    members = [*_members(group["members"])]
    protocols = {protocol for _, protocol in members}
    fields: Fields = {
        "protocolType": group["protocol"] or "",
        "generation": int(group["generation"]),
        "protocol": protocols.pop() if len(protocols) == 1 else NOT_PRINTED if members else None,
        "leader": NOT_PRINTED if members else None,
        "currentStateTimestamp": -1,
        "members": [member for member, _ in members],
    }
    return printed_value(RecordType.GROUP_METADATA, 3, fields)


def _members(text: str) -> Iterator[tuple[Fields, str]]:
    """Yield each member, and the protocols that it supports: of a loaded group the one that was chosen."""
    for found in MEMBER.finditer(text):
        member: Fields = {**found.groupdict(), "subscription": NO_BLOB, "assignment": NO_BLOB}
        protocol = member.pop("protocols")
        for name in ("sessionTimeout", "rebalanceTimeout"):
            member[name] = int(member[name])
        if member["groupInstanceId"] == "null":  # as releases until 2.4 print that there is none
            member["groupInstanceId"] = None
        yield member, protocol
