"""Real records of every type, from logs and traces of Kafka 3.9.1, 4.0.0 and 4.3.1."""

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

from coordinator_core.records import Family

FILE = Path(__file__).resolve().parents[2] / "data" / "records.jsonl"


class RawRecord(NamedTuple):
    family: Family
    key: bytes | None
    value: bytes | None


@cache
def sample_records() -> list[RawRecord]:
    lines = (json.loads(line) for line in FILE.read_text().splitlines())
    return [RawRecord(Family(line["family"]), _bytes(line["key"]), _bytes(line["value"])) for line in lines]


def _bytes(hex_text: str | None) -> bytes | None:
    return None if hex_text is None else bytes.fromhex(hex_text)
