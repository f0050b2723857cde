"""JSON lines: rows and columns print the same text, and nothing that does not decode is left out."""

import json
import random

import pytest

from coordinator_core.records import Family, RecordType
from coordinator_core.wire import json_lines
from coordinator_core.wire.batch_writer import NewRecord, Producer, encode_batch
from coordinator_core.wire.batches import read_columns
from coordinator_core.wire.control import COMMIT
from coordinator_core.wire.json_lines import Place, line, lines
from coordinator_core.wire.record_codec import encode_key, encode_value
from tests.core.wire.other_batches import encode_empty_batch, encode_marker_batch
from tests.core.wire.samples import sample_records
from tests.core.wire.segments import reader
from tests.core.wire.test_mutations import mutated

PLACE = Place(3, "00000000000000000007.log", Family.GROUP)
TOPIC_ID = "rtBKLTkuQfqz2e1w3xbhRA"


def commit(offset, *, version=4, metadata="m", topic_id=TOPIC_ID, group="g"):
    key = encode_key(RecordType.OFFSET_COMMIT, {"group": group, "topic": "t", "partition": offset % 3})
    fields = {"offset": offset * 7, "leaderEpoch": -1, "metadata": metadata, "commitTimestamp": 1000 + offset}
    fields |= {"topicId": topic_id} if topic_id else {}
    return NewRecord(offset, 5, key, encode_value(RecordType.OFFSET_COMMIT, version, fields))


def printed(*batches, place=PLACE):
    """The lines of a segment, after making sure that rows and columns agree however few rows count as few."""
    data = b"".join(batches)
    told = []
    for few in (0, 3, 1000):
        json_lines.FEW_ROWS, kept = few, json_lines.FEW_ROWS
        try:
            parts = [lines(part, place) for part in read_columns(reader(data), len(data))]
        finally:
            json_lines.FEW_ROWS = kept
        written = [text for part in parts for text in part.text.rows().to_pylist()]
        told.append((written, [error for part in parts for error in part.errors]))
    assert told[0] == told[1] == told[2]
    rows = [row for part in read_columns(reader(data), len(data)) for row in part.to_pylist()]
    assert told[0][0] == [line(row, place) + "\n" for row in rows]
    return told[0]


def test_a_commit_in_full():
    (text,), errors = printed(encode_batch([commit(8)], leader_epoch=2))
    assert errors == []
    assert text == (
        '{"partition":3,"offset":8,"timestamp":5,"segment":"00000000000000000007.log","batchBase":8,"batchLast":8,'
        '"leaderEpoch":2,"compression":"none","tsType":"CreateTime","isTransactional":false,"isControl":false,'
        '"keySize":12,"valueSize":43,"type":1,"typeName":"OFFSET_COMMIT","key":{"group":"g","topic":"t","partition":2},'
        '"valueVersion":4,"value":{"offset":56,"leaderEpoch":-1,"metadata":"m","commitTimestamp":1008,'
        '"topicId":"rtBKLTkuQfqz2e1w3xbhRA"}}\n'
    )


def test_tombstones_markers_and_emptied_batches():
    producer = Producer(9, 4, 0)
    texts, _ = printed(
        encode_batch([NewRecord(0, 5, commit(0).key, None)]),
        encode_batch([commit(1)], producer=producer, transactional=True, log_append_time=77),
        encode_marker_batch(COMMIT, 6, offset=2, timestamp=8, producer=Producer(9, 5)),
        encode_empty_batch(3, 5, producer=Producer(9, 5), transactional=True, control=True),
    )
    tombstone, data, marker = map(json.loads, texts[:3])
    assert (tombstone["valueSize"], tombstone["valueVersion"], tombstone["value"]) == (-1, None, None)
    assert (data["tsType"], data["timestamp"], data["producerId"], data["baseSequence"]) == ("LogAppendTime", 77, 9, 0)
    assert list(marker)[-2:] == ["control", "coordinatorEpoch"]
    assert (marker["control"], marker["coordinatorEpoch"], marker["isControl"]) == ("COMMIT", 6, True)
    assert texts[3] == (
        '{"partition":3,"emptyBatch":true,"segment":"00000000000000000007.log","batchBase":3,"batchLast":5,'
        '"isTransactional":true,"isControl":true,"producerId":9,"producerEpoch":5,"baseSequence":-1}\n'
    )


def test_many_records_of_many_kinds_in_any_order():
    records = []
    for offset in range(300):
        kind = offset * 7 % 11
        metadata = ["", 'a"b\\c', "\x00\n", "смена ☃"][offset % 4]
        if kind < 6:
            records.append(commit(offset, version=4, metadata=metadata, topic_id=TOPIC_ID if kind else None))
        elif kind < 8:
            records.append(commit(offset, version=3, topic_id=None, group=metadata))
        elif kind == 8:
            records.append(NewRecord(offset, offset, commit(offset).key, None))
        elif kind == 9:
            key = encode_key(RecordType.GROUP_METADATA, {"group": f"g{offset}"})
            member = {
                "memberId": "m",
                "groupInstanceId": None,
                "clientId": "c",
                "clientHost": "h",
                "rebalanceTimeout": 1,
                "sessionTimeout": 2,
                "subscription": b"\x00\xff",
                "assignment": b"",
            }
            fields = {
                "protocolType": "consumer",
                "generation": offset,
                "protocol": None if offset % 2 else "range",
                "leader": None,
                "currentStateTimestamp": -1,
                "members": [member] * (offset % 3),
            }
            records.append(NewRecord(offset, 1, key, encode_value(RecordType.GROUP_METADATA, 3, fields)))
        else:
            key = encode_key(RecordType.CONSUMER_GROUP_METADATA, {"groupId": "g"})
            fields = {"epoch": offset, **({"metadataHash": offset} if offset % 2 else {})}
            records.append(NewRecord(offset, 1, key, encode_value(RecordType.CONSUMER_GROUP_METADATA, 0, fields)))
    batches = [encode_batch(records[at : at + 7]) for at in range(0, 300, 7)]
    told, errors = printed(*batches)
    assert [json.loads(text)["offset"] for text in told] == list(range(300))
    assert errors == []


@pytest.mark.parametrize(
    ("key", "value", "cause"),
    [
        (b"\x00\x63rest", b"\x00\x00", "no record type 99"),
        (b"\x00", None, "key"),
        (None, b"\x00\x00", "without a key"),
        (commit(0).key, b"\x00\x63", "version 99"),
        (commit(0).key, b"\x00", "left"),
        (commit(0).key, commit(0).value[:9], "left"),
        (commit(0).key[:-1], None, "left"),
    ],
)
def test_what_does_not_decode_is_printed_with_its_bytes(key, value, cause):
    good = [commit(offset) for offset in range(20)]
    records = [*good[:9], NewRecord(9, 1, key, value), *good[10:]]
    texts, (error,) = printed(encode_batch(records))
    assert error.startswith("offset 9: ")
    assert cause in error
    bad = json.loads(texts[9])
    assert bad["error"] == error.removeprefix("offset 9: ")
    assert {"keyBytes", "valueBytes"} <= set(bad)
    assert [json.loads(text)["offset"] for text in texts] == list(range(20))


def test_unknown_tags_and_trailing_bytes_are_kept():
    plain = commit(1, topic_id=None)
    tagged = plain.value[:-1] + b"\x01\x05\x02hi"
    trailing = plain.value + b"more"
    records = [
        NewRecord(at, 1, plain.key, value) for at, value in enumerate([plain.value, tagged, trailing, plain.value])
    ]
    texts, errors = printed(encode_batch(records))
    values = [json.loads(text)["value"] for text in texts]
    assert errors == []
    assert values[1]["_unknownTaggedFields"] == {"5": "aGk="}
    assert values[2]["_trailingBytes"] == "bW9yZQ=="
    assert values[0] == values[3]


def test_records_of_the_metadata_log_have_no_key():
    value = encode_value(2, 0, {"name": "t", "topicId": TOPIC_ID}, Family.METADATA)
    texts, _ = printed(encode_batch([NewRecord(0, 1, None, value)]), place=PLACE._replace(family=Family.METADATA))
    told = json.loads(texts[0])
    assert (told["typeName"], told["key"], told["valueVersion"]) == ("TOPIC_RECORD", None, 0)
    assert told["value"] == {"name": "t", "topicId": TOPIC_ID}


def test_no_rows_no_lines():
    data = encode_batch([commit(0)])
    (part,) = read_columns(reader(data), len(data))
    assert lines(part.slice(0, 0), PLACE).text.rows().to_pylist() == []
    assert len(lines(part, PLACE).text) == 1


@pytest.mark.parametrize("few", [0, 64])
def test_mutated_records_print_the_same_from_columns_and_rows(few, monkeypatch):
    monkeypatch.setattr(json_lines, "FEW_ROWS", few)
    choose = random.Random(3)
    drawn = choose.choices([each for each in sample_records() if each.family is Family.GROUP], k=3_000)
    records = []
    for offset, record in enumerate(drawn):
        key, value = record.key, record.value
        if offset % 3 == 0:
            key = mutated(key, choose)
        elif offset % 3 == 1 and value is not None:
            value = mutated(value, choose)
        records.append(NewRecord(offset, 1, key, value))
    data = encode_batch(records)
    (part,) = read_columns(reader(data), len(data))
    found = lines(part, PLACE)
    assert found.text.rows().to_pylist() == [line(row, PLACE) + "\n" for row in part.to_pylist()]
    assert len(found.errors) > 100
