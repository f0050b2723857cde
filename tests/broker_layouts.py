"""The lines of a recorded ``server.log`` in the layouts in which people have them."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

HEAD: Final = re.compile(r"\[(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d),(\d{3})\] (\w+) (.*?)(?: \(([\w.$]+)\))?$", re.S)


class Said(NamedTuple):
    """A line in Kafka's default layout, and its parts; the time as if its zone were UTC."""

    line: str
    date: str
    clock: str
    ms: str
    level: str
    message: str
    logger: str
    at: datetime

    @property
    def at_ms(self) -> int:
        return round(self.at.timestamp() * 1000)

    @property
    def iso(self) -> str:
        return f"{self.date}T{self.clock}.{self.ms}Z"


def parts(line: str) -> Said | None:
    match = HEAD.match(line)
    if match is None:
        return None
    date, clock, ms, level, message, logger = match.groups()
    at = datetime.fromisoformat(f"{date}T{clock}.{ms}+00:00")
    return Said(line, date, clock, ms, level, message, logger or "kafka.X", at)


def _csv(*columns: str, quote_all: bool = True) -> str:
    made = io.StringIO()
    csv.writer(made, quoting=csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL, lineterminator="").writerow(columns)
    return made.getvalue()


def _kibana_time(said: Said) -> str:
    return f"{said.at:%b} {said.at.day}, {said.at:%Y} @ {said.clock}.{said.ms}"


def _thread(said: Said) -> str:
    return f"group-coordinator-event-processor-{said.at_ms % 3}"


EXACT: Final[dict[str, Callable[[Said], str]]] = {
    "strimzi until 0.45": lambda said: (
        f"{said.date} {said.clock},{said.ms} {said.level} {said.message} ({said.logger}) [{_thread(said)}]"
    ),
    "a space behind": lambda said: f"{said.line} ",
    "a thread behind": lambda said: f"{said.line} [data-plane-kafka-request-handler-3]",
    "csv of kibana": lambda said: _csv(_kibana_time(said), said.line),
    "csv with columns behind": lambda said: _csv(
        _kibana_time(said), said.message, said.level, said.logger, "kafka-0", quote_all=False
    ),
    "logfmt": lambda said: (
        f"ts={said.iso} level={said.level.lower()} logger={said.logger} msg={json.dumps(said.message)} pod=kafka-0"
    ),
    "journald": lambda said: f"{said.at:%b %d} {said.clock} host1 kafka-server-start.sh[4711]: {said.line}",
    "journald json": lambda said: json.dumps(
        {"__REALTIME_TIMESTAMP": str(said.at_ms * 1000 + 37), "MESSAGE": said.line, "PRIORITY": "6"}
    ),
    "docker": lambda said: json.dumps({"log": f"{said.line}\n", "stream": "stdout", "time": f"{said.iso[:-1]}123456Z"}),
    "kubectl": lambda said: f"[pod/kafka-0/kafka] {said.iso[:-1]}123456Z {said.line}",
    "cri": lambda said: f"{said.iso[:-1]}123456+00:00 stdout F {said.line}",
    "syslog": lambda said: f"<134>1 {said.iso} host1 kafka 12 - - {said.line}",
    "ecs": lambda said: json.dumps(
        {"@timestamp": said.iso, "log.level": said.level, "message": said.message, "log.logger": said.logger}
    ),
    "log4j json": lambda said: json.dumps(
        {
            "instant": {"epochSecond": said.at_ms // 1000, "nanoOfSecond": said.at_ms % 1000 * 10**6},
            "level": said.level,
            "message": said.message,
        }
    ),
    "loki lines": lambda said: json.dumps({"labels": {"app": "kafka"}, "line": said.line, "timestamp": said.iso}),
    "gcp": lambda said: json.dumps(
        {"jsonPayload": {"message": said.message}, "severity": said.level, "timestamp": said.iso}
    ),
    "colours": lambda said: f"\x1b[32m{said.line}\x1b[0m",
    "log4j date": lambda said: f"{said.at:%d %b %Y} {said.clock},{said.ms} {said.level} {said.logger}: {said.message}",
    "since the epoch": lambda said: f"{said.at_ms} {said.level} {said.message} {said.logger}",
    "columns": lambda said: "\t".join((said.iso, "kafka-0", said.level, said.message, said.logger, "main")),
    "short iso of journald": lambda said: (
        f"{said.date}T{said.clock}+0000 host1 kafka[4711]: {said.date} {said.clock},{said.ms} {said.level} "
        f"{said.message} ({said.logger}) [{_thread(said)}]"
    ),
    "logcli": lambda said: f'{said.date}T{said.clock}Z {{app="kafka", pod="kafka-0"}} {said.line}',
    "csv of splunk": lambda said: _csv(said.line, f"{said.iso[:-1]}+0000", "kafka-0", "server.log", quote_all=False),
    "json of splunk": lambda said: json.dumps(
        {"preview": False, "offset": 1, "result": {"_raw": said.line, "_time": f"{said.date} {said.clock} UTC"}}
    ),
    "objects over many lines": lambda said: json.dumps(
        {
            "instant": {"epochSecond": said.at_ms // 1000, "nanoOfSecond": said.at_ms % 1000 * 10**6},
            "level": said.level,
            "message": said.message,
        },
        indent=2,
    ),
    "otlp": lambda said: json.dumps(
        {"timeUnixNano": str(said.at_ms * 10**6), "severityText": said.level, "body": {"stringValue": said.message}}
    ),
    "gelf": lambda said: json.dumps(
        {"version": "1.1", "short_message": said.message, "timestamp": said.at_ms / 1000, "level": 6}
    ),
    "day first": lambda said: f"{said.at:%d.%m.%Y} {said.clock},{said.ms} {said.level} {said.message} ({said.logger})",
    "month first": lambda said: f"{said.at:%m/%d/%Y} {said.clock}.{said.ms} {said.level} {said.message}",
    "half days": lambda said: _csv(
        f"{said.at.month}/{said.at.day}/{said.at:%Y}, {said.at:%I:%M:%S}.{said.ms} {said.at:%p}", said.message
    ),
    "basic": lambda said: f"{said.at:%Y%m%dT%H%M%S},{said.ms} {said.level} {said.message} ({said.logger})",
    "compact": lambda said: f"{said.at:%Y%m%d%H%M%S}{said.ms} {said.level} {said.message} ({said.logger})",
    "carriage returns": lambda said: f"{said.line}\r",
}
"""Layouts of a line that have all that the original has."""

COARSE: Final[dict[str, Callable[[Said], str]]] = {
    "strimzi": lambda said: (
        f"{said.date} {said.clock} {said.level:<5} [{_thread(said)}] {said.logger.split('.')[-1]}:{said.at_ms % 900} "
        f"- {said.message}"
    ),
    "zeros": lambda said: json.dumps({"ts": f"{said.date}T{said.clock}.000Z", "message": said.message}),
}
"""Layouts of a line that have its second."""

DOCUMENTS: Final[dict[str, Callable[[Sequence[Said]], str]]] = {
    "grafana": lambda lines: json.dumps(
        [{"line": said.line, "timestamp": f"{said.at_ms * 10**6 + 13}", "fields": {"app": "kafka"}} for said in lines],
        indent=2,
    ),
    "cloudwatch": lambda lines: json.dumps(
        {
            "events": [
                {"timestamp": said.at_ms, "message": said.message, "ingestionTime": said.at_ms + 3000} for said in lines
            ],
            "nextForwardToken": "f/1",
        },
        indent=4,
    ),
    "elasticsearch": lambda lines: json.dumps(
        {
            "hits": {
                "hits": [
                    {"_source": {"@timestamp": said.iso, "message": said.line, "log": {"file": {"path": "/x"}}}}
                    for said in lines
                ]
            }
        },
        indent=2,
    ),
    "fields of elasticsearch": lambda lines: json.dumps(
        {"hits": {"hits": [{"fields": {"@timestamp": [said.iso], "message": [said.message]}} for said in lines]}}
    ),
    "loki": lambda lines: json.dumps(
        {
            "status": "success",
            "data": {
                "result": [
                    {"stream": {"app": "kafka"}, "values": [[str(said.at_ms * 10**6), said.line] for said in lines]}
                ]
            },
        }
    ),
}
"""Layouts of a whole file."""


def layouts(text: str) -> Iterator[tuple[str, str]]:
    """The name of each layout, and the file in it; lines that are not in Kafka's default layout are left out."""
    lines = [said for line in text.splitlines() if (said := parts(line)) is not None]
    for name, layout in (EXACT | COARSE).items():
        yield name, "".join(f"{layout(said)}\n" for said in lines)
    for name, document in DOCUMENTS.items():
        yield name, document(lines)
