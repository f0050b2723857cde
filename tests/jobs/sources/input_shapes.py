"""One log partition in each shape in which people bring it."""

import bz2
import csv
import gzip
import io
import json
import lzma
import shutil
import tarfile
import zipfile
from base64 import b64encode
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

from coordinator_core.records import GROUP_LOG, Family
from coordinator_core.wire.batch_format import Damage
from coordinator_core.wire.batches import read_rows
from coordinator_core.wire.kafka_text import FORMATTERS, batch_line, formatted, record_line
from tests.jobs.conftest import SAMPLE_LOGS

LOG: Final = SAMPLE_LOGS / f"{GROUP_LOG}-3" / "00000000000000000000.log"
FOLDER: Final = LOG.parent.name
Fields = dict[str, Any]


def rows() -> list[Any]:
    """The rows of the segment, records and ends of transactions."""
    return rows_in(LOG)


def rows_in(segment: Path) -> list[Any]:
    """The rows of a segment that is whole, records and ends of transactions."""
    data, found = segment.read_bytes(), list[Any]()
    for row in read_rows(lambda at, size: data[at : at + size], len(data)):
        assert not isinstance(row, Damage)
        found.append(row)
    return found


def records() -> list[Fields]:
    """What a consumer reads of the log."""
    return [
        {"key": row.key, "value": row.value, "offset": row.offset, "timestamp": row.timestamp}
        for row in rows()
        if hasattr(row, "key") and not row.batch.is_control
    ]


def _text(fields: Fields) -> str:
    return json.dumps(fields, default=lambda value: b64encode(value).decode())


def _lines(made: Callable[[Fields], Fields] = dict) -> bytes:
    return "".join(f"{_text(made(each))}\n" for each in records()).encode()


def _placed(fields: Fields) -> Fields:
    return fields | {"topic": GROUP_LOG, "partition": 3}


def _envelope(fields: Fields) -> Fields:
    place = {"topic": GROUP_LOG, "partition": 3, "offset": fields["offset"], "timestamp": fields["timestamp"]}
    return {"key": fields["key"], "value": fields["value"], "metadata": place}


def _in(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return folder


def _tar(mode: str = "") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=f"w:{mode}") as tar:
        tar.add(SAMPLE_LOGS / f"{GROUP_LOG}-0", f"{GROUP_LOG}-0")
        tar.add(LOG.parent, FOLDER)
    return out.getvalue()


def _zip() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(LOG, f"{FOLDER}/{LOG.name}")
    return out.getvalue()


def _packed(data: bytes, codec: str) -> bytes:
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, codec) as stream:
        stream.write(data)
    return out.getvalue().to_pybytes()


def dump_log() -> bytes:
    """What kafka-dump-log of 3.9 and later prints."""
    return dump_text(LOG, f"/data/{FOLDER}/{LOG.name}").encode()


def dump_text(segment: Path, name: object) -> str:
    """What kafka-dump-log prints of a segment that it finds under this name."""
    lines, position = [f"Dumping {name}", "Log starting offset: 0"], -1
    for row in rows_in(segment):
        batch = getattr(row, "batch", row)
        if batch.position != position:
            position = batch.position
            lines.append(batch_line(batch))
        if batch is not row:
            lines.append(record_line(row, Family.GROUP))
    return "\n".join(lines) + "\n"


def console(name: str) -> bytes:
    """What a formatter of the console consumer prints, of 4.1 and later."""
    family, types = FORMATTERS[name]
    lines = (formatted(row, types, family) for row in rows() if hasattr(row, "key"))
    return "".join(f"{line}\n" for line in lines if line is not None).encode()


OLD_CONSOLE: Final = (
    b"[g,t,0]::OffsetAndMetadata(offset=9, leaderEpoch=Optional[2], metadata=, commitTimestamp=1795256858117, "
    b"expireTimestamp=None)\n[g,t,1]::NULL\n"
)
OLD_DUMP: Final = (
    b"Dumping __consumer_offsets-3/00000000000000000000.log\nStarting offset: 0\nbaseOffset: 0 lastOffset: 0 count: 1 "
    b"baseSequence: 0 lastSequence: 0 producerId: -1 producerEpoch: -1 partitionLeaderEpoch: 0 isTransactional: false "
    b"isControl: false position: 0 CreateTime: 1795257228074 size: 111 magic: 2 compresscodec: NONE crc: 1 isvalid: "
    b"true\n| offset: 0 CreateTime: 1795257228074 keysize: 32 valuesize: 24 sequence: 0 headerKeys: [] key: "
    b"offset_commit::group=g,partition=t-0 payload: offset=6\n"
)


def _csv() -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(
        [b64encode(each["key"]).decode(), b64encode(each["value"] or b"").decode(), each["offset"]]
        for each in records()
    )
    return out.getvalue().encode()


def _parquet(made: Callable[[Fields], Fields] = dict) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([made(each) for each in records()]), out)
    return out.getvalue()


def _delta(folder: Path) -> Path:
    """A table that was written anew: files of its first version are beside, and no part of it."""
    table = pa.Table.from_pylist([_placed(each) for each in records()])
    write_deltalake(folder, table.slice(0, 1))
    write_deltalake(folder, table, mode="overwrite")
    return folder


def avro() -> bytes:
    """Raises ImportError where fastavro is not installed."""
    import fastavro

    names = {"key": ["null", "bytes"], "value": ["null", "bytes"], "offset": "long", "timestamp": "long"}
    fields = [{"name": name, "type": of} for name, of in names.items()]
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema({"type": "record", "name": "r", "fields": fields}), records())
    return out.getvalue()


def _beside(folder: Path, *names: str) -> Path:
    """The segment with other files and folders of a broker."""
    _in(folder, f"{FOLDER}/{LOG.name}", LOG.read_bytes())
    for name in names:
        _in(folder, name, LOG.read_bytes() if "/" in name and name.endswith(".log") else bytes(8))
    return folder


SEGMENT: Final = f"{FOLDER}/{LOG.name}"
SINK: Final = f"topics/{GROUP_LOG}/partition=3/{GROUP_LOG}+3+0000000000"

SHAPES: Final[Mapping[str, Callable[[Path], Path]]] = {
    "folders of a broker": lambda folder: _in(folder, SEGMENT, LOG.read_bytes()),
    "a segment alone, `.log`": lambda folder: _in(folder, LOG.name, LOG.read_bytes()) / LOG.name,
    "segments packed one by one, `.log.gz`": lambda folder: _in(
        folder, f"{SEGMENT}.gz", gzip.compress(LOG.read_bytes())
    ),
    "`.swap`": lambda folder: _in(folder, f"{SEGMENT}.swap", LOG.read_bytes()),
    "`-delete`, `-future`, `-stray` beside": lambda folder: _beside(
        folder, *(f"{GROUP_LOG}-2.5f0e-{why}/{LOG.name}" for why in ("delete", "future", "stray"))
    ),
    "`.deleted`, `.cleaned`, `.index`, `.snapshot` beside": lambda folder: _beside(
        folder,
        f"{SEGMENT}.deleted",
        f"{SEGMENT}.cleaned",
        f"{FOLDER}/{LOG.stem}.index",
        f"{FOLDER}/{LOG.stem}.snapshot",
    ),
    "`.index` alone": lambda folder: _in(folder, f"{FOLDER}/{LOG.stem}.index", bytes(8)),
    "MirrorMaker's `source.__consumer_offsets`": lambda folder: _in(folder, f"source.{SEGMENT}", LOG.read_bytes()),
    "tar": lambda folder: _in(folder, "broker.tar", _tar()),
    "tar.gz": lambda folder: _in(folder, "broker.tgz", _tar("gz")),
    "tar.bz2": lambda folder: _in(folder, "broker.tar.bz2", bz2.compress(_tar())),
    "tar.xz": lambda folder: _in(folder, "broker.tar.xz", lzma.compress(_tar())),
    "tar.zst": lambda folder: _in(folder, "broker.tar.zst", _packed(_tar(), "zstd")),
    "tar.lz4": lambda folder: _in(folder, "broker.tar.lz4", _packed(_tar(), "lz4")),
    "zip": lambda folder: _in(folder, "broker.zip", _zip()),
    "a tar that was cut": lambda folder: _in(folder, "broker.tar", _tar()[:-30_000]),
    "7z, rar": lambda folder: _in(folder, "broker.7z", b"7z\xbc\xaf\x27\x1c" + bytes(60)) / "broker.7z",
    "kafka-dump-log, 3.9 and later": lambda folder: _in(folder, "dump.txt", dump_log()),
    "kafka-dump-log until 3.8": lambda folder: _in(folder, "dump.txt", OLD_DUMP),
    "kafka-dump-log in a tar": lambda folder: _in(folder, "dump.tar", _tar_of("dump.txt", dump_log())),
    "console consumer, 3.8 and later": lambda folder: _in(
        _in(folder, "offsets.jsonl", console("offsets")), "groups.jsonl", console("groupmetadata")
    ),
    "console consumer until 3.7": lambda folder: _in(folder, "offsets.txt", OLD_CONSOLE),
    "console consumer without a formatter": lambda folder: _in(
        folder, "raw.txt", b"\0\x01\0\x01g\0\x01t\0\0\0\0\t\0\x03\0\0\0\0\0\0\0\x05\n"
    ),
    "kcat -J": lambda folder: _in(
        folder,
        "kcat.jsonl",
        b'{"topic":"__consumer_offsets","partition":3,"offset":0,"tstype":"create","ts":1,'
        b'"key":"\\u0000\\u0001","payload":"x"}\n',
    ),
    "JSON lines with positions": lambda folder: _in(folder, "dump.jsonl", _lines(_placed)),
    "a list of JSON objects": lambda folder: _in(
        folder, "dump.json", b"[\n" + _lines(_placed).strip().replace(b"\n", b",\n") + b"\n]\n"
    ),
    "sinks: JSON with positions in `metadata`": lambda folder: _in(folder, f"{SINK}.json", _lines(_envelope)),
    "sinks: JSON, partition in the file's name": lambda folder: _in(folder, f"{GROUP_LOG}-3-0.jsonl", _lines()),
    "sinks: Parquet, partition in the file's name": lambda folder: _in(folder, f"{SINK}.parquet", _parquet()),
    "sinks: Parquet with positions in `metadata`": lambda folder: _in(folder, "dump.parquet", _parquet(_envelope)),
    "sinks: Avro": lambda folder: _in(folder, f"{GROUP_LOG}-3-0.avro", avro()),
    "sinks: CSV": lambda folder: _in(folder, f"{GROUP_LOG}-3-0.csv", _csv()),
    "Spark: Parquet of Kafka's columns": lambda folder: _in(folder, "part-0.parquet", _parquet(_placed)),
    "Spark: Parquet in folders `partition=3`": lambda folder: _in(folder, "partition=3/part-0.parquet", _parquet()),
    "Spark: a Delta table": _delta,
    "a broker's log": lambda folder: (
        _in(folder, "server.log", b"[2026-11-28 02:04:38,903] INFO [GroupCoordinator 0]: x\n") / "server.log"
    ),
    "end offsets": lambda folder: _in(folder, "ends.txt", b"orders:0:90\norders:1:110\n") / "ends.txt",
    "only the metadata log": lambda folder: shutil.copytree(
        SAMPLE_LOGS / "__cluster_metadata-0", folder / "__cluster_metadata-0"
    ),
}
"""What makes each shape in a folder, and returns what is given to a command."""


def _tar_of(name: str, content: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    return out.getvalue()
