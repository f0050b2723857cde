"""Every recorded log, dumped: the same text as what Kafka's own classes and tools made of it."""

import gzip
from collections import Counter
from pathlib import Path

import pytest

from coordinator_core.wire import json_lines
from coordinator_core.wire.batches import read_columns
from coordinator_core.wire.json_lines import Place, line, lines
from jobs.sources.files import find_logs
from tests.commands import text_of_command
from tests.shared_data import CORPUS

DECODED = sorted(CORPUS.rglob("decoded.jsonl.gz"))
DUMPS = sorted(CORPUS.rglob("dump-*.txt.gz"))


def text_of(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode()


def dumped(*arguments: str | Path) -> str:
    return text_of_command("dump", *arguments)


def name(path: Path) -> str:
    return str(path.relative_to(CORPUS))


@pytest.mark.parametrize("few", [0, 64], ids=["columns", "mixed"])
@pytest.mark.parametrize("decoded", DECODED, ids=name)
def test_json_lines_are_what_kafka_decodes(decoded, few, monkeypatch):
    monkeypatch.setattr(json_lines, "FEW_ROWS", few)
    assert dumped(decoded.parent / "logs", "--jsonl") == text_of(decoded)


@pytest.mark.parametrize("corpus", ["scenarios", "wild"])
def test_share_state_likewise(corpus):
    folder = CORPUS / corpus
    printed = dumped(folder / "logs", "--topic", "__share_group_state")
    assert printed == text_of(folder / "decoded_share_state.jsonl.gz")


@pytest.mark.parametrize("log", find_logs([CORPUS]), ids=lambda log: str(Path(log.path).relative_to(CORPUS)))
def test_columns_and_rows_print_the_same(log):
    place = Place(log.partition, log.segment, log.family)
    with log.open() as read_at:
        for part in read_columns(read_at, log.size):
            expected = [line(row, place) + "\n" for row in part.to_pylist()]
            assert lines(part, place).text.rows().to_pylist() == expected


@pytest.mark.parametrize("dump", DUMPS, ids=name)
def test_kafka_dump_log_prints_the_same(dump):
    folder = dump.name.removeprefix("dump-").removesuffix(".txt.gz")
    logs = dump.parent.parent / "logs"
    printed = dumped(logs / folder, "--format", "kafka").replace(f"Dumping {logs}/", "Dumping /logs/")
    told_in_the_end = "Non-consecutive offsets"  # on standard error, which the recording has appended
    assert printed == text_of(dump).partition(told_in_the_end)[0]


@pytest.mark.parametrize("formatter", ["offsets", "groupmetadata", "sharegroup", "sharestate"])
def test_console_formatters_print_the_same(formatter):
    topic = "__share_group_state" if formatter == "sharestate" else "__consumer_offsets"
    logs = CORPUS / "scenarios" / "logs"
    printed = Counter(dumped(logs, "--topic", topic, "--format", "kafka", "--formatter", formatter).splitlines())
    recorded = Counter(text_of(CORPUS / "scenarios" / "formatters" / f"{formatter}.jsonl.gz").splitlines())
    # A consumer interleaves partitions as it likes; those that recorded this are groups too, and went on afterwards.
    assert recorded <= printed
    assert all('"group":"console-consumer-' in text for text in printed - recorded)
