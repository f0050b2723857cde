"""Files that people write, changed: topics, end offsets, cases, traces, scenarios, settings and archives of logs."""

from __future__ import annotations

import gzip
import io
import json
import random
import tarfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from tests.core.wire.test_mutations import mutated
from tests.fuzz.mutations import NAMES, NUMBERS
from tests.fuzz.samples import HERE, SAMPLES, Logs
from tests.shared_data import ROOT

MOST_LINES: Final = 40
"""A longer file is cut: many are tried in a minute."""

VALUES: Final = (None, True, False, 0.5, 1e308, float("inf"), float("nan"), [], {}, [[]], [None], {"": None}, {"a": {}})

RAW: Final = (
    b"[" * 20_000, b'{"a":' * 20_000, b"9" * 5000, b'"\\ud800"', b"\xff\xfe", b"-", b"NaN", b'{"a": 1e400}', b"\x00",
    b"9" * 400, b'"\\udfff\\ud800"', b"{" * 300 + b"}" * 300, b'"' + b"x" * 70_000 + b'"',
)  # fmt: skip
"""What may stand for a line of JSON."""


class Given(NamedTuple):
    """A changed file: its name and content, and commands that read it; ``FILE`` and ``LOGS`` stand for the places."""

    name: str
    content: bytes
    commands: tuple[tuple[str, ...], ...]


def changed_file(logs: Logs, group: str, choose: random.Random) -> Given:
    """Return a changed file of any kind."""
    kind: Callable[[Logs, str, random.Random], Given] = choose.choice(
        (_topics, _ends, _cases, _cases, _traces, _scenario, _settings, _archive)
    )
    given = kind(logs, group, choose)
    if given.name.endswith(".jsonl") and choose.random() < 0.15:
        packed = gzip.compress(given.content, 1)
        return given._replace(
            name=f"{given.name}.gz", content=_bytes(packed, choose) if choose.random() < 0.3 else packed
        )
    return given


def _topics(logs: Logs, group: str, choose: random.Random) -> Given:
    rows = [row for at in (1, 10**12, 1_700_000_000_000) for row in _snapshot(at)]
    questions = (
        ("groups",),
        ("audit",),
        ("findings",),
        ("describe", "--all"),
        ("metrics",),
        ("whatif", group, "--assignor", "range"),
    )
    question = choose.choice(questions)
    return Given("topics.jsonl", _json_lines(rows, choose), ((*question, "--log", "LOGS", "--topics", "FILE"),))


def _ends(logs: Logs, group: str, choose: random.Random) -> Given:
    rows = [row for at in (1, 10**12, 1_700_000_000_000) for row in _snapshot(at)]
    question = choose.choice(
        (("metrics",), ("metrics", "--names", "burrow"), ("offsets", group), ("report", "--out", "OUT"))
    )
    return Given("ends.jsonl", _json_lines(rows, choose), ((*question, "--log", "LOGS", "--end-offsets", "FILE"),))


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


def _cases(logs: Logs, group: str, choose: random.Random) -> Given:
    content = _json_lines(choose.sample(_sample_cases(), 1), choose)
    return Given("cases.jsonl", content, (("assign", "--presented", "FILE"), ("compare", "FILE")))


def _traces(logs: Logs, group: str, choose: random.Random) -> Given:
    return Given("traces.jsonl", _json_lines(_sample_traces()[:MOST_LINES], choose), (("trace", "FILE"),))


def _scenario(logs: Logs, group: str, choose: random.Random) -> Given:
    content = _yaml((HERE / "scenario.yaml").read_bytes(), choose)
    return Given("scenario.yaml", content, (("simulate", "FILE", "--out", "OUT"),))


def _settings(logs: Logs, group: str, choose: random.Random) -> Given:
    content = _yaml((ROOT / "conf" / "defaults.yaml").read_bytes(), choose)
    return Given(
        "settings.yaml", content, (("config", "--config", "FILE"), ("findings", "--log", "LOGS", "--config", "FILE"))
    )


def _archive(logs: Logs, group: str, choose: random.Random) -> Given:
    out = io.BytesIO()
    mode = choose.choice(("", "gz", "bz2", "xz"))
    with tarfile.open(fileobj=out, mode=f"w:{mode}") as archive:
        for name, data in logs.items():
            member = tarfile.TarInfo(
                choose.choice((name, name, name, f"../{name}", name.replace("-", "-9"), "x" * 300))
            )
            member.size = len(data)
            member.type = choose.choice((tarfile.REGTYPE,) * 8 + (tarfile.SYMTYPE, tarfile.DIRTYPE))
            archive.addfile(member, io.BytesIO(data))
    content = out.getvalue()
    content = _bytes(content, choose) if choose.random() < 0.6 else content
    return Given("logs.tar", content, (("groups", "--log", "FILE"), ("dump", "FILE")))


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


def _json_lines(rows: list[Any], choose: random.Random) -> bytes:
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
            within[name] = choose.choice(VALUES)
        case 4:
            within[name] = choose.choice((*NAMES, "\ud800", str(choose.choice(NUMBERS))))
        case 5 if isinstance(inner, list):
            within[name] = inner * choose.choice((2, 50))
        case _:
            within[name] = choose.choice((*NUMBERS, 10**30, -(10**400)))


def _parts(value: Any) -> Iterator[tuple[Any, Any]]:
    names = list(value) if isinstance(value, dict) else range(len(value))
    for name in names:
        yield value, name
        if isinstance(value[name], dict | list):
            yield from _parts(value[name])


def write_file(given: Given, folder: Path) -> list[tuple[str, ...]]:
    """Write the file beside the logs of a folder, and return the commands with their places."""
    file = folder.parent / f"{folder.name}-{given.name}"
    file.write_bytes(given.content)
    places = {"FILE": str(file), "LOGS": str(folder), "OUT": str(folder.parent / "out" / "page.html")}
    return [tuple(places.get(word, word) for word in command) for command in given.commands]
