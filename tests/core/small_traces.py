"""The short traces of ``tests/data/traces``: what Kafka 4.3.1's own coordinator did, step by step."""

import gzip
import json
from pathlib import Path

from tests.differential.decoded import Line

TRACES = sorted((Path(__file__).parents[1] / "data" / "traces").glob("*.jsonl*"))


def name_of(trace: Path) -> str:
    return trace.name.partition(".")[0]


def lines_of(trace: Path) -> list[Line]:
    content = trace.read_bytes()
    text = gzip.decompress(content) if trace.suffix == ".gz" else content
    return [json.loads(line) for line in text.splitlines()]
