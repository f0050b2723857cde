"""Single requests in transcripts, with any field, and how their answers are shown.

    ask NAME API VERSION FIELD=VALUE... TOPIC:PARTITION[=OFFSET[/METADATA]]...
    transaction PRODUCER commit|abort       the transaction ends

The group is that of the transcript, the member is none, unless a field says otherwise. A value is JSON, or else a text;
``@NAME`` is the member id of that client.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import Any

from coordinator_core.coordinator.protocol import ErrorCode
from coordinator_core.records import Fields

TopicId = Callable[[str], str]
"""Topic name to topic id."""
_TRANSACTION = {"transactionalId": "t", "producerId": 1, "producerEpoch": 0}


def data(api: str, version: int, words: list[str], group: str, members: Mapping[str, str], topic_id: TopicId) -> Fields:
    """Return the data of the request that an ``ask`` command describes."""
    fields: Fields = {}
    partitions: list[tuple[str, int, str]] = []
    for word in words:
        name, _, value = word.partition("=")
        if ":" in name:
            topic, _, number = name.partition(":")
            partitions.append((topic, int(number), value))
        else:
            fields[name] = _value(value, members)
    if partitions or api in _TOPICS:
        fields["topics"] = [
            {"name": "" if version >= 10 else topic, "topicId": topic_id(topic), **_TOPICS[api](list(asked))}
            for topic, asked in groupby(partitions, key=lambda each: each[0])
        ]
    for name, part in (("protocols", "metadata"), ("assignments", "assignment")):
        for each in fields.get(name, ()):
            each[part] = each[part].encode()
    if api == "OffsetFetch":
        stable = fields.pop("requireStable", False)
        asked = fields.pop("topics") or None
        return {"groups": [{"groupId": group, "topics": asked, **fields}], "requireStable": stable}
    return {"groupId": group, **(_TRANSACTION if api == "TxnOffsetCommit" else {}), **fields}


def _value(text: str, members: Mapping[str, str]) -> Any:
    for name, member_id in members.items():
        text = re.sub(rf"@{name}\b", member_id, text)
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _committed(asked: list[tuple[str, int, str]]) -> Fields:
    partitions = []
    for _, number, value in asked:
        offset, _, metadata = value.partition("/")
        partitions.append({"partitionIndex": number, "committedOffset": int(offset), "committedMetadata": metadata})
    return {"partitions": partitions}


def _fetched(asked: list[tuple[str, int, str]]) -> Fields:
    return {"partitionIndexes": [number for _, number, _ in asked]}


def _deleted(asked: list[tuple[str, int, str]]) -> Fields:
    return {"partitions": [{"partitionIndex": number} for _, number, _ in asked]}


_TOPICS: dict[str, Callable[[list[tuple[str, int, str]]], Fields]] = {
    "OffsetCommit": _committed,
    "TxnOffsetCommit": _committed,
    "OffsetFetch": _fetched,
    "OffsetDelete": _deleted,
}


def shown(response: Fields, topic_name: Callable[[str], str]) -> str:
    """Return the answer in one line: error codes and offsets of partitions, error codes of members, or ok."""
    groups = response.get("groups", [response])
    parts = [part for group in groups for part in _shown(group, topic_name)]
    return ", ".join(parts) or "ok"


def _shown(answer: Fields, topic_name: Callable[[str], str]) -> Iterator[str]:
    if answer.get("errorCode"):
        yield ErrorCode(answer["errorCode"]).name
    for topic in answer.get("topics") or ():
        name = topic["name"] if "name" in topic else topic_name(topic["topicId"])
        for each in topic["partitions"]:
            result = ErrorCode(each["errorCode"]).name if each["errorCode"] else each.get("committedOffset", "ok")
            yield f"{name} {each['partitionIndex']}: {result}"
    for member in answer.get("members") or ():
        if "errorCode" in member:
            yield f"{member['memberId'] or member['groupInstanceId']}: {ErrorCode(member['errorCode']).name}"
