"""Records that Kafka's tools and sinks printed are read as the logs that they are of."""

import gzip
import json
import re
import shutil
import tarfile
import zipfile
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coordinator_core.errors import InputError
from coordinator_core.records import GROUP_LOG
from coordinator_core.wire.batch_format import Damage
from coordinator_core.wire.batches import read_rows
from coordinator_core.wire.kafka_text import FORMATTERS, formatted
from coordinator_core.wire.log_columns import LOG_COLUMNS
from jobs.sources.files import KNOWN_TOPICS, LogFile, find_group_logs, find_logs, numbered
from jobs.sources.log_reader import LogRow, log_rows
from jobs.sources.segments import Ranges, SegmentsReader
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.sources.input_shapes import dump_log, dump_text

LOG = max((SAMPLE_LOGS / "__consumer_offsets-1").glob("*.log"), key=lambda path: path.stat().st_size)
WITH_RECORDS = sorted(path for path in SAMPLE_LOGS.glob("__consumer_offsets-*/*.log") if path.stat().st_size)

OF_TEXT = [name for name in LOG_COLUMNS.names if name not in ("headers", "base_sequence")]
"""What the text of kafka-dump-log has: neither the values of headers nor the first sequence of a batch."""


def rows_of(log: LogFile) -> list[LogRow]:
    return [row for part in log.parts() if not isinstance(part, Damage) for row in log_rows(part)]


@pytest.mark.parametrize("segment", WITH_RECORDS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_the_text_of_kafka_dump_log_gives_the_rows_of_the_segment(tmp_path: Path, segment: Path) -> None:
    sample = segment.parent.name
    (tmp_path / "dump.txt").write_text(dump_text(segment, segment), encoding="utf-8")
    (log,) = find_logs([tmp_path / "dump.txt"])
    assert (log.topic, f"{log.topic}-{log.partition}", log.segment) == ("__consumer_offsets", sample, segment.name)
    (whole,) = find_logs([segment])
    found, wanted = (pa.Table.from_batches([*each.parts()]).select(OF_TEXT) for each in (log, whole))
    assert found.to_pylist() == wanted.to_pylist()


def test_old_text_of_kafka_dump_log_is_filled_with_what_follows_and_marked(tmp_path: Path) -> None:
    head = "baseOffset: {number} lastOffset: {number} count: 1 baseSequence: 0 lastSequence: 0 producerId: -1 "
    head += "producerEpoch: -1 partitionLeaderEpoch: 0 isTransactional: false isControl: false position: 0 "
    head += "CreateTime: 1795257228074 size: 111 magic: 2 compresscodec: NONE crc: 1 isvalid: true\n"
    record = (
        "| offset: {number} CreateTime: 1795257228074 keysize: 32 valuesize: {size} sequence: 0 headerKeys: [] key: "
    )
    assigned = '{"protocolType":"consumer","protocol":"range","generationId":3,"assignment":"{m-1=[t-0, t-1],m-2=[]}"}'
    (tmp_path / "__consumer_offsets-7.txt").write_text(
        "Dumping 00000000000000000000.log\nStarting offset: 0\n"
        + (head + record).format(number=0, size=24)
        + "offset_commit::group=g,partition=t-0 payload: offset=6\n"
        + (head + record).format(number=1, size=354)
        + f"group_metadata::group=g payload: {assigned}\n"
        + (head + record).format(number=2, size=-1)
        + "offset_commit::group=g,partition=t-0 payload: <DELETE>\n"
        + (head + record).format(number=3, size=20)
        + "unknown::version=5\n"
    )
    notes: list[str] = []
    (log,) = find_logs([tmp_path], warn=notes.append)
    assert (log.topic, log.partition) == ("__consumer_offsets", 7)
    commit, group, gone = rows_of(log)
    assert (commit.offset, commit.value) == (
        0,
        b"\x00\x03" + (6).to_bytes(8, "big") + b"\xff" * 4 + b"\0\0" + (1795257228074).to_bytes(8, "big"),
    )
    assert b"(not printed)" in (group.value or b"")
    assert (gone.offset, gone.value) == (2, None)
    (damage,) = [part for part in log.parts() if isinstance(part, Damage)]
    assert damage.base_offset == 3
    assert damage.cause.endswith(
        "the tool is older than records of type 5: print it with kafka-dump-log of the broker's release"
    )
    assert "did not print all fields of its records (3 of them)" in notes[0]


@pytest.mark.parametrize("letters", [str.lower, str.upper])
def test_what_old_tools_print_of_connect_workers_is_read(tmp_path: Path, letters: Callable[[str], str]) -> None:
    """The bytes of an assignment, which 3.6 prints in capitals."""
    assigned = letters("0001ab")
    group = {"protocolType": "connect", "protocol": "default", "generationId": 1, "assignment": f"{{w-1={assigned}}}"}
    (tmp_path / "__consumer_offsets-7.txt").write_text(
        "Starting offset: 0\n"
        "| offset: 0 CreateTime: 1795257228074 keySize: 5 valueSize: 60 sequence: 0 headerKeys: [] key: "
        f"group_metadata::group=g payload: {json.dumps(group)}\n"
    )
    (log,) = find_logs([tmp_path])
    (row,) = rows_of(log)
    assert b"w-1" in (row.value or b"")
    assert (row.value or b"").endswith(bytes.fromhex(assigned))


def console_lines(name: str) -> list[str]:
    family, types = FORMATTERS[name]
    data = LOG.read_bytes()
    rows = read_rows(lambda at, size: data[at : at + size], len(data))
    lines = (formatted(row, types, family) for row in rows if hasattr(row, "key"))
    return [line for line in lines if line is not None]


@pytest.mark.parametrize("end", ["\n", ""])  # 3.8 to 4.0 print no line ends
def test_console_output_has_the_partition_of_its_keys_and_the_order_of_its_lines(tmp_path: Path, end: str) -> None:
    (tmp_path / "offsets.txt").write_text(end.join(console_lines("offsets")) + "\n", encoding="utf-8")
    (tmp_path / "groups.jsonl").write_text(end.join(console_lines("groupmetadata")), encoding="utf-8")
    notes: list[str] = []
    logs = find_logs([tmp_path], warn=notes.append)
    assert notes == []
    assert not any(log.is_placed for log in logs)
    assert numbered(logs) == tuple(f"{log.topic}-{log.partition}" for log in logs)
    found = [row for log in logs for row in rows_of(log)]
    (segment,) = find_logs([LOG])
    wanted = {(row.key, row.value) for row in rows_of(segment) if row.kind == "record" and row.key[1] <= 2}
    assert {(row.key, row.value) for row in found} == wanted
    for log in logs:
        times = [row.timestamp for row in rows_of(log) if row.timestamp >= 0]
        assert times == sorted(times)
        assert [row.offset for row in rows_of(log)] == list(range(1, len(rows_of(log)) + 1))


def test_text_of_old_console_formatters_is_read(tmp_path: Path) -> None:
    member = (
        "MemberMetadata(memberId=m-1, groupInstanceId=None, clientId=c, clientHost=/127.0.0.1, sessionTimeoutMs=5000, "
        "rebalanceTimeoutMs=300000, supportedProtocols=List(range), )"
    )
    (tmp_path / "old.txt").write_text(
        "[g,with,comma,t,0]::OffsetAndMetadata(offset=9, leaderEpoch=Optional[2], metadata=a, b, "
        "commitTimestamp=1795256858117, expireTimestamp=None)\n[g,t,1]::NULL\n"
        "g::GroupMetadata(groupId=g, generation=1, protocolType=Some(consumer), currentState=Stable, "
        f"members=HashMap(m-1 -> {member}))\ng2::NULL\n"
    )
    logs = find_logs([tmp_path / "old.txt"])
    rows = [row for log in logs for row in rows_of(log)]
    assert len(rows) == 4
    assert sum(row.value is None for row in rows) == 2
    assert any(b"a, b" in (row.value or b"") for row in rows)
    assert any(b"m-1" in (row.value or b"") and b"(not printed)" in (row.value or b"") for row in rows)


def sink_records() -> list[dict[str, object]]:
    (segment,) = find_logs([LOG])
    return [
        {"key": row.key, "value": row.value, "offset": row.offset, "timestamp": row.timestamp}
        for row in rows_of(segment)
        if row.kind == "record"
    ]


def as_text(value: object) -> object:
    return b64encode(value).decode() if isinstance(value, bytes) else value


def test_files_of_sinks_are_one_log_whatever_their_order(tmp_path: Path) -> None:
    records = sink_records()
    folder = tmp_path / "topics" / "__consumer_offsets" / "partition=1"
    folder.mkdir(parents=True)
    names = ("__consumer_offsets+1+0000000000.json", "__consumer_offsets-1-0.jsonl.gz")
    text = [
        "".join(json.dumps({k: as_text(v) for k, v in each.items()}) + "\n" for each in records[i::3]) for i in range(2)
    ]
    (folder / names[0]).write_text(text[0])
    (tmp_path / names[1]).write_bytes(gzip.compress(text[1].encode(), mtime=0))
    pq.write_table(pa.Table.from_pylist(records[2::3]), folder / "__consumer_offsets+1+2.parquet")
    envelope = [
        {
            "key": as_text(each["key"]),
            "value": as_text(each["value"]),
            "headers": {},
            "metadata": {
                "topic": "__consumer_offsets",
                "partition": 1,
                "offset": each["offset"],
                "timestamp": each["timestamp"],
            },
        }
        for each in records[:5]
    ]
    (tmp_path / "again.jsonl").write_text("\n".join(map(json.dumps, envelope)))
    (log,) = find_logs([tmp_path])
    assert (log.topic, log.partition) == ("__consumer_offsets", 1)
    found = [(row.key, row.value, row.offset, row.timestamp) for row in rows_of(log)]
    assert found == [(each["key"], each["value"], each["offset"], each["timestamp"]) for each in records]


def test_two_records_at_one_position_are_of_two_logs(tmp_path: Path) -> None:
    first, second, *_ = sink_records()
    for number, value in enumerate((first["value"], second["value"])):
        record = {"topic": "__consumer_offsets", "partition": 1, "offset": 5, "key": as_text(first["key"])}
        (tmp_path / f"{number}.jsonl").write_text(json.dumps({**record, "value": as_text(value)}))
    with pytest.raises(InputError, match="offset 5: two different records"):
        find_logs([tmp_path])


@pytest.mark.parametrize("name", ["logs.zip", "logs.tar.zst", "logs.tar.lz4", "logs.tar.bz2"])
def test_archives_of_every_packing_are_read(tmp_path: Path, name: str) -> None:
    plain = tmp_path / "plain.tar"
    with tarfile.open(plain, "w") as tar:
        tar.add(LOG, f"{LOG.parent.name}/{LOG.name}")
    packed = tmp_path / name
    if name.endswith("zip"):
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(LOG, f"{LOG.parent.name}/{LOG.name}")
    else:
        codec = {"zst": "zstd", "lz4": "lz4", "bz2": "bz2"}[name.rpartition(".")[2]]
        with pa.CompressedOutputStream(str(packed), codec) as out:
            out.write(plain.read_bytes())
    plain.unlink()
    (log,) = find_logs([tmp_path])
    (whole,) = find_logs([LOG])
    assert rows_of(log) == rows_of(whole)


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_of_an_archive_that_was_cut_whole_partitions_are_read(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "logs.tar"
    with tarfile.open(path, mode) as tar:
        for folder in sorted((SAMPLE_LOGS).glob("__consumer_offsets-*")):
            tar.add(folder, folder.name)
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 8 // 10])
    warnings: list[str] = []
    logs = find_logs([path], warn=warnings.append)
    whole = [log for log in find_logs([SAMPLE_LOGS]) if log.topic == "__consumer_offsets"]
    found = {log.partition for log in logs}
    assert found
    assert found < {log.partition for log in whole}
    assert [log.size for log in logs] == [log.size for log in whole if log.partition in found]
    assert "the archive is cut within __consumer_offsets-" in warnings[0]


def test_files_that_brokers_keep_beside_segments_are_read_or_named(tmp_path: Path) -> None:
    for name in ("__consumer_offsets-1", "__consumer_offsets-2.5f0e-delete", "__consumer_offsets-3.5f0e-future"):
        (tmp_path / name).mkdir()
        (tmp_path / name / LOG.name).write_bytes(LOG.read_bytes())
    folder = tmp_path / "__consumer_offsets-1"
    (folder / LOG.name).rename(folder / f"{LOG.name}.swap")
    (folder / f"{LOG.name}.deleted").write_bytes(b"")
    (folder / "00000000000000000000.index").write_bytes(bytes(8))
    warnings: list[str] = []
    (log,) = find_logs([tmp_path], warn=warnings.append)
    assert (log.partition, log.segment) == (1, LOG.name)
    assert len(rows_of(log)) > 10
    said = "\n".join(warnings)
    assert "-delete: a partition that the broker is deleting; name the folder itself" in said
    assert "-future: a copy that the broker is still making" in said
    assert "a segment that the broker has replaced" in said
    assert "index" not in said
    (named,) = find_logs([tmp_path / "__consumer_offsets-2.5f0e-delete"])
    assert (named.topic, named.partition) == ("__consumer_offsets", 2)


def test_a_copy_of_the_log_is_read_where_it_is_named_as_one(tmp_path: Path) -> None:
    folder = tmp_path / "source.__consumer_offsets-1"
    folder.mkdir()
    (folder / LOG.name).write_bytes(LOG.read_bytes())
    with pytest.raises(InputError, match=r"--copied-topic source\.__consumer_offsets"):
        find_logs([tmp_path])
    (log,) = find_logs([tmp_path], topics=["source.__consumer_offsets=__consumer_offsets"])
    assert (log.topic, log.partition) == ("__consumer_offsets", 1)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("00000000000000000000.index", bytes(16), "an index of a segment"),
        ("00000000000000000123.snapshot", bytes(16), "snapshot of producers"),
        ("a.log", b"[2026-11-28 02:04:38,903] INFO [GroupCoordinator 0]: x\n", "give it as --broker-log"),
        ("a.log", b"orders:0:90\norders:1:110\n", "give it as --end-offsets"),
        ("a.log", b"CreateTime:1795809601000\tPartition:0\tOffset:0\tx\n", "without a formatter"),
        ("a.log", b"7z\xbc\xaf\x27\x1c" + bytes(60), "neither tar nor zip"),
        ("a.log", gzip.compress(bytes(4096), mtime=0), "zeros"),
        ("a.log", bytes(4096), "a file of zeros"),
        ("a.log", b"hello", "text that is not output"),
        ("a.json", b'{\n  "name": 1\n}\n', "JSON that has no records"),
        ("a.txt", b"\nGROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET\n", "give it as --end-offsets"),
    ],
)
def test_a_file_that_is_no_log_is_named_for_what_it_is(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=said):
        find_logs([tmp_path / name])


DUMP = (
    b"Dumping /var/lib/kafka/__consumer_offsets-3/00000000000000000000.log\nLog starting offset: 0\n"
    b"baseOffset: 0 lastOffset: 0 count: 1 baseSequence: 0 lastSequence: 0 producerId: -1 producerEpoch: -1 "
    b"partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: 0 "
    b"CreateTime: 1795257228074 size: 111 magic: 2 compresscodec: none crc: 1 isvalid: true\n"
    b'| offset: 0 CreateTime: 1795257228074 keySize: 8 valueSize: -1 sequence: 0 headerKeys: [] key: {"type":"2",'
    b'"data":{"group":"g"}} payload: <DELETE>\n'
)
CONSOLE = b'{"key":{"type":2,"data":{"group":"g"}},"value":null}\n'


@pytest.mark.parametrize(
    "content",
    [
        DUMP.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + DUMP,
        DUMP.decode().encode("utf-16"),
        gzip.compress(DUMP.decode().encode("utf-16"), mtime=0),
        b"$ kafka-dump-log --offsets-decoder --files x.log\n" + DUMP,
        b"Hello,\n\n```\n" + DUMP + b"```\nthanks\n",
        b"".join(b"> " + line for line in DUMP.splitlines(keepends=True)),
        pytest.param("zstd", id="zstd"),
        pytest.param("lz4", id="lz4"),
    ],
)
def test_a_text_is_read_as_people_keep_it(tmp_path: Path, content: bytes | str) -> None:
    file = tmp_path / "dump of the log.txt"
    if isinstance(content, str):
        with pa.CompressedOutputStream(str(file), content) as out:
            out.write(DUMP)
    else:
        file.write_bytes(content)
    (log,) = find_logs([file])
    assert (log.topic, log.partition) == ("__consumer_offsets", 3)
    assert [(row.offset, row.key) for row in rows_of(log)] == [(0, b"\x00\x02\x00\x01g")]


@pytest.mark.parametrize(
    "content",
    [
        CONSOLE * 3,
        b"[" + b",".join([CONSOLE.strip()] * 3) + b"]",
        b"[\n" + b",\n".join([CONSOLE.strip()] * 3) + b"\n]\n",
    ],
)
def test_objects_are_read_as_lines_and_as_elements_of_a_list(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "offsets.json").write_bytes(content)
    (log,) = find_logs([tmp_path / "offsets.json"])
    assert len(rows_of(log)) == 3


def test_a_packed_text_that_was_cut_is_read_up_to_there(tmp_path: Path) -> None:
    records = "".join(DUMP.decode().splitlines(keepends=True)[2:])
    text = DUMP + "".join(records.replace("ffset: 0", f"ffset: {number}") for number in range(1, 400)).encode()
    (tmp_path / "dump.txt.gz").write_bytes(gzip.compress(text, mtime=0)[:-30])
    (log,) = find_logs([tmp_path / "dump.txt.gz"])
    *_, last = log.parts()
    assert isinstance(last, Damage)
    assert "Compressed file ended" in last.cause
    assert len(rows_of(log)) > 10


@pytest.mark.parametrize("folder", ["", f"{LOG.parent.name}/"])
def test_a_packed_segment_is_read(tmp_path: Path, folder: str) -> None:
    packed = tmp_path / f"{folder}{LOG.name}.gz"
    packed.parent.mkdir(exist_ok=True)
    packed.write_bytes(gzip.compress(LOG.read_bytes(), mtime=0))
    (log,) = find_logs([packed if not folder else tmp_path])
    (whole,) = find_logs([LOG])
    assert (log.segment, rows_of(log)) == (LOG.name, rows_of(whole))
    assert log.topic == (whole.topic if folder else "")


def test_what_lies_beside_segments_or_in_an_archive_is_named(tmp_path: Path) -> None:
    (tmp_path / LOG.parent.name).mkdir()
    (tmp_path / LOG.parent.name / LOG.name).write_bytes(LOG.read_bytes())
    (tmp_path / "dump.txt").write_bytes(DUMP)
    warnings: list[str] = []
    find_logs([tmp_path], warn=warnings.append)
    assert warnings == [f"{tmp_path / 'dump.txt'}: left out, as there are segments beside it: name it to read it"]
    with tarfile.open(tmp_path / "copy.tar", "w") as tar:
        tar.add(tmp_path / LOG.parent.name, LOG.parent.name)
    shutil.rmtree(tmp_path / LOG.parent.name)
    of_archive: list[str] = []
    (log,) = find_logs([tmp_path], warn=of_archive.append)
    assert (log.path, of_archive) == (str(tmp_path / "copy.tar"), warnings)
    with tarfile.open(tmp_path / "dump.tar", "w") as tar:
        tar.add(tmp_path / "dump.txt", "dump.txt")
    with pytest.raises(InputError, match=r"dump.txt: output of kafka-dump-log in an archive: unpack it"):
        find_logs([tmp_path / "dump.tar"])


def test_printed_bytes_are_refused_with_what_to_print_instead(tmp_path: Path) -> None:
    """The console consumer without a formatter, and kcat -J, which prints bytes as text."""
    raw, kcat = tmp_path / "raw.txt", tmp_path / "kcat.jsonl"
    raw.write_bytes(b"\0\x01\0\x01g\0\x01t\0\0\0\0\t\0\x03\0\0\0\0\0\0\0\x05\n" * 3)
    with pytest.raises(InputError, match="as the console consumer prints them without a formatter: give the segments"):
        find_group_logs([raw], print)
    record = {
        "topic": GROUP_LOG,
        "partition": 0,
        "offset": 0,
        "tstype": "create",
        "ts": 1,
        "key": "\0\1",
        "payload": "x",
    }
    kcat.write_text(json.dumps(record))
    (log,) = find_logs([kcat])
    (damage,) = log.parts()
    assert isinstance(damage, Damage)
    assert "kcat prints bytes as text, which loses some: give the segments" in damage.cause


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        (b"producerEpoch: -1", b"producerEpoch: 40000"),
        (b"offset: 0 CreateTime", b"offset: 99999999999999999999 CreateTime"),
        (b"partitionLeaderEpoch: 0", b"partitionLeaderEpoch: 4294967296"),
        (b"sequence: 0 headerKeys", b"sequence: 4294967296 headerKeys"),
    ],
)
def test_a_number_that_is_too_large_is_damage(tmp_path: Path, field: bytes, wrong: bytes) -> None:
    assert field in DUMP
    (tmp_path / "dump.txt").write_bytes(
        DUMP + DUMP.replace(field, wrong).replace(b"__consumer_offsets-3", b"__consumer_offsets-4")
    )
    damages = [part for log in find_logs([tmp_path]) for part in log.parts() if isinstance(part, Damage)]
    assert damages
    assert "too large" in damages[0].cause
    rows = [
        row for part in SegmentsReader([str(tmp_path)], KNOWN_TOPICS, GROUP_LOG).partitions() for row in _rows(part)
    ]
    assert {row["kind"] for row in rows} >= {"record", "damaged"}


def _rows(part: Ranges) -> list[dict[str, object]]:
    reader = SegmentsReader([], KNOWN_TOPICS, GROUP_LOG)
    return [row for batch in reader.read(part) for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (lambda line: b"" if line.startswith(b"|") else line, "of the batch are not there: print it with"),
        (lambda line: re.sub(rb"offset: .*?headerKeys: \[\S*\] ", b"", line), "without --skip-record-metadata"),
        (lambda line: b"" if line.startswith(b"| offset: 5 ") else line, "1 of [0-9]+ records of the batch"),
    ],
)
def test_records_that_a_batch_has_and_the_text_lacks_are_told(
    tmp_path: Path, changed: Callable[[bytes], bytes], said: str
) -> None:
    (tmp_path / "dump.txt").write_bytes(b"".join(changed(line) for line in dump_log().splitlines(keepends=True)))
    damages = [part for log in find_logs([tmp_path]) for part in log.parts() if isinstance(part, Damage)]
    assert damages
    assert re.search(said, damages[0].cause)
