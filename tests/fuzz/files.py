"""Files that people give, changed: topics, end offsets, cases, traces, scenarios, settings, archives, broker logs."""

import gzip
import io
import json
import random
import re
import tarfile
import zipfile
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from copy import deepcopy
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from coordinator_core.audit.settings import AuditSettings
from coordinator_core.errors import CoordinatorAuditError
from coordinator_core.records import Family
from coordinator_core.wire.batch_format import Damage, Kind
from coordinator_core.wire.batches import read_rows
from coordinator_core.wire.kafka_text import FORMATTERS, batch_line, formatted, record_line
from jobs.settings import load
from jobs.sources.log_reader import LogRow
from jobs.sources.printed.parquet_source import READ
from jobs.watch.followed_groups import FollowedGroups
from jobs.watch.new_rows import LogPlace, NewRows
from jobs.watch.state_file import StateFile
from tests.core.wire.test_mutations import mutated
from tests.fuzz.mutations import NAMES, NUMBERS
from tests.fuzz.samples import HERE, SAMPLES, Logs
from tests.shared_data import ROOT

MOST_STEPS: Final = 6
"""The steps of a trace that are run."""

VALUES: Final = (None, True, False, 0.5, 1e308, float("inf"), float("nan"), [], {}, [[]], [None], {"": None}, {"a": {}})

RAW: Final = (
    b"[" * 20_000, b'{"a":' * 20_000, b"9" * 5000, b'"\\ud800"', b"\xff\xfe", b"-", b"NaN", b'{"a": 1e400}', b"\x00",
    b"9" * 400, b'"\\udfff\\ud800"', b"{" * 300 + b"}" * 300, b'"' + b"x" * 70_000 + b'"',
)  # fmt: skip
"""What may stand for a line of JSON."""


class Given(NamedTuple):
    """A changed file: its name and content, and a command that reads it; see ``Input`` for the places in it."""

    name: str
    content: bytes
    command: tuple[str, ...]


class About(NamedTuple):
    """What a file is made for: the logs beside it, and a group that they have."""

    logs: Logs
    group: str


LONG: Final = re.compile(rb"\b[1-9]\d{2,9}\b")
"""Numbers that make a scenario large: what is asked for is simulated, however long it takes."""

OF_TOPICS: Final = (("groups",), ("audit",), ("findings",), ("describe", "--all"), ("metrics",), ("rebalances",))
OF_ENDS: Final = (("metrics",), ("metrics", "--names", "burrow"), ("offsets", "G"), ("describe", "--all"))


def changed_file(kind: str, about: About, choose: random.Random) -> Given:
    """Return a changed file of a kind of ``KINDS``; JSON lines are sometimes compressed."""
    given = KINDS[kind](about, choose)
    if given.name.endswith(".jsonl") and choose.random() < 0.1:
        packed = gzip.compress(given.content, 1)
        content = _bytes(packed, choose) if choose.random() < 0.3 else packed
        name = f"{given.name}.gz"
        given = given._replace(name=name, content=content)
    group = about.group if about.group and not about.group.startswith("-") else "g"
    return given._replace(command=tuple({"G": group}.get(word, word) for word in given.command))


def _topics(about: About, choose: random.Random) -> Given:
    question = choose.choice((*OF_TOPICS, ("whatif", "G", "--assignor", "range")))
    return Given("topics.jsonl", _snapshots(choose), (*question, "--log", "LOGS", "--topics", "FILE", "--json"))


def _ends(about: About, choose: random.Random) -> Given:
    question = ("offsets", "G", "--lag-history") if choose.random() < 0.2 else choose.choice(OF_ENDS)
    command = (*question, "--log", "LOGS", "--end-offsets", "FILE")
    if choose.random() < 0.1:
        return Given("ends.parquet", _bytes(_parquet(), choose), command)
    return Given("ends.jsonl", _snapshots(choose), command)


def _snapshots(choose: random.Random) -> bytes:
    times = choose.sample((1, 10**12, 1_700_000_000_000), choose.randint(1, 2))
    rows = [row for at in times for row in choose.sample(_snapshot(at), 5)]
    return json_lines_changed(rows, choose)


@cache
def _parquet() -> bytes:
    rows = [row for row in _snapshot(1_700_000_000_000) if "topic" in row]
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


def _snapshot(time_ms: int) -> list[dict[str, Any]]:
    """A snapshot of a small cluster, as the command of that name writes it."""
    rows: list[dict[str, Any]] = [
        {
            "topic": topic, "topic_id": "AAAAAAAAAAAAAAAAAAAA" + topic[:2], "partition": partition,
            "replica_racks": ["a", None], "timestamp_ms": time_ms, "end_offset": 1000 + time_ms % 1000,
        }
        for topic in ("orders", "clicks", "jdbc") for partition in range(3)
    ]  # fmt: skip
    for kind in ("GROUP", "BROKER", "SUPPORTED_FEATURES", "FINALIZED_FEATURES"):
        configs = {"metadata.version": "25", "consumer.session.timeout.ms": "45000"}
        rows.append(
            {"resource_type": kind, "resource": "1", "timestamp_ms": time_ms, "configs": configs, "missing": None}
        )
    return rows


@cache
def _sample_cases() -> list[Any]:
    return [json.loads(line) for line in (SAMPLES / "assignor_cases.jsonl").read_text().splitlines()]


@cache
def _sample_traces() -> list[Any]:
    with gzip.open(ROOT / "tests" / "data" / "trace-sample.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def _cases(about: About, choose: random.Random) -> Given:
    content = json_lines_changed(choose.sample(_sample_cases(), 1), choose)
    commands = (
        ("assign", "FILE"),
        ("assign", "--presented", "FILE"),
        ("compare", "FILE"),
        ("compare", "FILE", "--json"),
    )
    return Given("cases.jsonl", content, choose.choice(commands))


def _traces(about: About, choose: random.Random) -> Given:
    header, *steps = _sample_traces()
    lines = [header, *steps[: choose.randint(1, MOST_STEPS)]]
    return Given(
        "traces.jsonl", json_lines_changed(lines, choose), ("trace", "FILE", choose.choice(("--json", "--quiet")))
    )


def _scenario(about: About, choose: random.Random) -> Given:
    whole = _sample_scenario()
    name = choose.choice(list(whole["groups"]))
    small = {**whole, "lasts": "20s", "groups": {name: whole["groups"][name]}}
    content = _yaml(yaml.safe_dump(small, sort_keys=False).encode(), choose)
    content = LONG.sub(b"12", content)
    return Given("scenario.yaml", content, ("simulate", "FILE", "--out", "NEW"))


@cache
def _sample_scenario() -> dict[str, Any]:
    return dict(yaml.safe_load((HERE / "scenario.yaml").read_text()))


def _settings(about: About, choose: random.Random) -> Given:
    content = _yaml(yaml.safe_dump(_some_settings(choose)).encode(), choose)
    command = choose.choice((("config",), ("findings", "--log", "LOGS"), ("audit", "--log", "LOGS")))
    return Given("settings.yaml", content, (*command, "--config", "FILE"))


def _some_settings(choose: random.Random) -> dict[str, Any]:
    """One to three sections of the default settings, with some of what they have."""
    whole = deepcopy(_default_settings())
    some: dict[str, Any] = {}
    for name in choose.sample(list(whole), choose.randint(1, 3)):
        section = whole[name]
        some[name] = section
        if isinstance(section, dict):
            some[name] = {key: section[key] for key in choose.sample(list(section), min(3, len(section)))}
    return some


@cache
def _default_settings() -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "conf" / "defaults.yaml").read_text()))


def _assignments(about: About, choose: random.Random) -> Given:
    """Settings on the command line; the file has what they are."""
    some = _some_settings(choose)
    _change(some, choose)
    texts = [f"{name}={json.dumps(value)}" for name, value in some.items()]
    texts = [_bytes(text.encode(), choose).decode("utf-8", "replace") for text in texts]
    return Given("settings.txt", "\n".join(texts).encode(), ("config", *(f"--set={text}" for text in texts)))


def _archive(about: About, choose: random.Random) -> Given:
    mode = choose.choice(("", "gz", "bz2", "xz", "zip", "zst", "lz4"))
    names = {
        choose.choice((name, name, name, f"../{name}", name.replace("-", "-9"), "x" * 300)): name for name in about.logs
    }
    files = {called: about.logs[name] for called, name in names.items()}
    content = _zip(files) if mode == "zip" else _tar(files, mode, choose)
    content = _bytes(content, choose) if choose.random() < 0.6 else content
    suffix = f".{mode}" if mode else ""
    command = ("dump", "FILE") if choose.random() < 0.3 else (*choose.choice(OF_TOPICS), "--log", "FILE")
    return Given(f"logs.tar{suffix}", content, command)


def _zip(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def _tar(files: Mapping[str, bytes], mode: str, choose: random.Random) -> bytes:
    out = io.BytesIO()
    codec = {"zst": "zstd", "lz4": "lz4"}.get(mode)
    with tarfile.open(fileobj=out, mode="w" if codec else f"w:{mode}") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            member.type = choose.choice((tarfile.REGTYPE,) * 8 + (tarfile.SYMTYPE, tarfile.DIRTYPE))
            archive.addfile(member, io.BytesIO(data))
    return _compressed(out.getvalue(), codec)


def _compressed(data: bytes, codec: str | None) -> bytes:
    if codec is None:
        return data
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, codec) as stream:
        stream.write(data)
    return bytes(out.getvalue())


@cache
def _sample_broker_lines() -> list[bytes]:
    return (ROOT / "tests" / "data" / "broker_log" / "server-4.3.1.log").read_bytes().splitlines()


def _broker_log(about: About, choose: random.Random) -> Given:
    """Lines of a broker about the group, with other words, numbers, times and bytes."""
    lines = [line.replace(b"payments", about.group.encode("utf-8", "replace")) for line in _sample_broker_lines()]
    lines = choose.sample(lines, choose.randint(1, len(lines)))
    for _ in range(choose.randint(1, 3)):
        at = choose.randrange(len(lines))
        words = lines[at].split(b" ")
        match choose.randrange(4):
            case 0:
                lines[at] = _bytes(lines[at], choose)
            case 1:
                words[choose.randrange(len(words))] = str(choose.choice((*NUMBERS, *NAMES))).encode()
                lines[at] = b" ".join(words)
            case 2:
                lines[at] = b" ".join(words[: choose.randrange(len(words))])
            case _:
                lines[at] = choose.choice(RAW)
    questions = (("explain", "G"), ("rebalances",), ("history", "G"), ("findings",), ("audit",))
    command = (*choose.choice(questions), "--log", "LOGS", "--broker-log", "FILE", "--broker-log-zone")
    return Given("server.log", b"\n".join(lines), (*command, choose.choice(("UTC", "+02:00", "Europe/Berlin", "x"))))


def _progress(about: About, choose: random.Random) -> Given:
    """What a watch remembers."""
    return Given("watch.db", _bytes(_watched(), choose), ("watch", "--log", "LOGS", "--state", "FILE"))


@cache
def _watched() -> bytes:
    """The state of a watch that has read nothing but the beginning of a log."""
    place = LogPlace("__consumer_offsets", Family.GROUP, 0)
    groups = FollowedGroups(AuditSettings(), load(environment={}).findings, None, print)
    groups.feed(NewRows(place, [LogRow(Kind.CONTROL.value, 0, 1, b"", b"", None, False, -1, 0, 0)], from_start=True))
    with TemporaryDirectory() as folder:
        file = Path(folder) / "state"
        with closing(StateFile(file, "")) as state:
            state.save(groups)
        return file.read_bytes()


def _printed(about: About, choose: random.Random) -> Given:
    """What Kafka's tools print of the logs, or a sink writes, with other words, lines and bytes."""
    form = choose.choice((_dump_log_text, _console_output, _envelopes))
    lines = [line for name, data in about.logs.items() for line in form(name, data)][: choose.randint(2, 200)]
    lines = lines or [b"Dumping x"]
    for _ in range(choose.randint(0, 3)):
        at = choose.randrange(len(lines))
        match choose.randrange(4):
            case 0:
                lines[at] = _bytes(lines[at], choose)
            case 1:
                lines[at] = re.sub(
                    rb"-?\d+", str(choose.choice(NUMBERS)).encode(), lines[at], count=choose.randint(1, 4)
                )
            case 2:
                lines[at] = choose.choice((*RAW, b"", lines[choose.randrange(len(lines))]))
            case _:
                del lines[at:]
                lines = lines or [b""]
    command = (*choose.choice((*OF_TOPICS, ("offsets", "G"), ("commits", "G"))), "--log", "FILE")
    return Given("printed.txt", choose.choice((b"\n", b"\n", b"")).join(lines), command)


def _records_in_parquet(about: About, choose: random.Random) -> Given:
    """What Spark writes of Kafka's columns, or a sink, with other columns, types and bytes."""
    rows = [
        {"key": row.key, "value": row.value, "topic": "__consumer_offsets", "partition": 0, "offset": row.offset,
         "timestamp": row.timestamp, "timestampType": 0, "headers": None}
        for data in about.logs.values() for row in _rows(data) if hasattr(row, "key")
    ][:200]  # fmt: skip
    table = pa.Table.from_pylist(rows or [{"key": b"", "value": None, "offset": 0}])
    for _ in range(choose.randint(0, 3)):
        number = choose.randrange(table.num_columns)
        name = table.column_names[number]
        values = [choose.choice((*NUMBERS, -1, 1 << 62)) for _ in range(table.num_rows)]
        match choose.randrange(4):
            case 0 if table.num_columns > 1:
                table = table.remove_column(number)
            case 1:
                table = table.set_column(number, name, pa.array([str(value) for value in values]))
            case 2:
                limited = [value % (1 << 62) if isinstance(value, int) else None for value in values]
                table = table.set_column(number, name, pa.array(limited, pa.int64()))
            case _:
                table = table.set_column(number, choose.choice((*READ, "extra", name)), table.column(number))
    out = io.BytesIO()
    pq.write_table(table, out)
    content = _bytes(out.getvalue(), choose) if choose.random() < 0.4 else out.getvalue()
    of_log = (*choose.choice((*OF_TOPICS, ("offsets", "G"))), "--log", "FILE")
    return Given("part-0.parquet", content, choose.choice((of_log, ("ingest", "FILE", "--tables", "NEW"))))


def _dump_log_text(name: str, data: bytes) -> Iterator[bytes]:
    yield f"Dumping /data/{name}".encode()
    position = -1
    for row in _rows(data):
        batch = getattr(row, "batch", row)
        if batch.position != position:
            position = batch.position
            yield batch_line(batch).encode()
        if batch is not row:
            yield record_line(row, Family.GROUP).encode("utf-8", "replace")


def _console_output(name: str, data: bytes) -> Iterator[bytes]:
    for row in _rows(data):
        for family, types in FORMATTERS.values():
            with suppress(CoordinatorAuditError):
                line = formatted(row, types, family) if hasattr(row, "key") else None
                if line is not None:
                    yield line.encode("utf-8", "replace")


def _envelopes(name: str, data: bytes) -> Iterator[bytes]:
    for row in _rows(data):
        if hasattr(row, "key"):
            key, value = (None if part is None else b64encode(part).decode() for part in (row.key, row.value))
            place = {"topic": "__consumer_offsets", "partition": 0, "offset": row.offset, "timestamp": row.timestamp}
            yield json.dumps({"key": key, "value": value, "headers": {}, "metadata": place}).encode()


def _rows(data: bytes) -> Iterator[Any]:
    with suppress(CoordinatorAuditError):
        rows = read_rows(lambda at, size: data[at : at + size], len(data))
        yield from (row for row in rows if not isinstance(row, Damage))


def _printed_ends(about: About, choose: random.Random) -> Given:
    """What kafka-get-offsets or kafka-consumer-groups prints, with other bytes."""
    table = (
        b"GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID\ng orders 0 5 9 4 -\ng orders 1 - 9 - -\n"
    )
    text = choose.choice((b"orders:0:90\norders:1:110\nclicks:0:\n", b"\nGroup 'g' has no members.\n\n" + table))
    command = (*choose.choice(OF_ENDS), "--log", "LOGS", "--end-offsets", "FILE")
    return Given("ends.txt", _bytes(text, choose), command)


KINDS: Final[dict[str, Callable[[About, random.Random], Given]]] = {
    "printed records": _printed,
    "records in Parquet": _records_in_parquet,
    "printed end offsets": _printed_ends,
    "topics": _topics,
    "end offsets": _ends,
    "case": _cases,
    "trace": _traces,
    "scenario": _scenario,
    "settings": _settings,
    "settings of the command line": _assignments,
    "archive": _archive,
    "broker log": _broker_log,
    "progress of a watch": _progress,
}
"""What makes a changed file of each kind."""


def _yaml(text: bytes, choose: random.Random) -> bytes:
    match choose.randrange(4):
        case 0:
            return _bytes(text, choose)
        case 1:
            raw = choose.choice(
                (
                    b"[" * 3000,
                    b"- " * 3000,
                    b"&a [*a, *a]",
                    b"!!int ''",
                    b"2001-99-99",
                    b"!!python/name:os",
                    b"9" * 5000,
                )
            )
            at = choose.randrange(len(text))
            return text[:at] + raw + text[at:]
        case _:
            value = yaml.safe_load(text)
            _change(value, choose)
            return yaml.safe_dump(value, allow_unicode=True).encode("utf-8", "surrogatepass")


def json_lines_changed(rows: list[Any], choose: random.Random) -> bytes:
    """The rows as JSON lines, some of them changed, or with other bytes."""
    rows = [json.loads(json.dumps(row)) for row in rows]
    for _ in range(choose.randint(1, 3)):
        _change(choose.choice(rows), choose)
    lines = [json.dumps(row).encode() for row in rows]
    match choose.randrange(8):
        case 0:
            lines[choose.randrange(len(lines))] = choose.choice(RAW)
        case 1:
            at = choose.randrange(len(lines))
            lines[at] = _bytes(lines[at], choose)
        case 2:
            choose.shuffle(lines)
        case 3:
            del lines[choose.randrange(len(lines))]
        case _:
            pass
    return b"\n".join(lines) + b"\n"


def _bytes(data: bytes, choose: random.Random) -> bytes:
    return mutated(data, choose)


def _change(value: Any, choose: random.Random) -> None:
    """Change one part of a value, however deep it lies: another value, another name, or none."""
    if not isinstance(value, dict | list) or not value:
        return
    within, name = choose.choice(list(_parts(value)))
    inner = within[name]
    match choose.randrange(8):
        case 0 if isinstance(within, dict):
            within[choose.choice(NAMES)] = within.pop(name)
        case 1:
            del within[name]
        case 2 | 3:
            within[name] = deepcopy(choose.choice(VALUES))  # a later change may put it into itself
        case 4:
            within[name] = choose.choice((*NAMES, "\ud800", str(choose.choice(NUMBERS))))
        case 5 if isinstance(inner, list):
            within[name] = deepcopy(inner) * choose.choice((2, 50))
        case _:
            within[name] = choose.choice((*NUMBERS, 10**30, -(10**400)))


def _parts(value: Any) -> Iterator[tuple[Any, Any]]:
    names = list(value) if isinstance(value, dict) else range(len(value))
    for name in names:
        yield value, name
        if isinstance(value[name], dict | list):
            yield from _parts(value[name])
