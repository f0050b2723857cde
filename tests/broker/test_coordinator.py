"""The model answers as the group coordinator of Kafka 4.3.1: in all transcripts, and to random requests."""

from collections import Counter
from pathlib import Path

from tests.broker.reference import differences, is_of_kafka, kafkas_coordinator, scripts
from tests.shared_data import ROOT

TRANSCRIPTS = {path.stem: path.read_text() for path in sorted((ROOT / "tests" / "data" / "transcripts").glob("*.txt"))}
SCRIPTS, STEPS = 300, 80


def test_transcripts_show_what_kafka_does(tmp_path: Path) -> None:
    asked, differing = 0, {}
    with kafkas_coordinator(tmp_path) as do:
        for name, text in TRANSCRIPTS.items():
            if is_of_kafka(text):
                count, found = differences(text, do)
                asked += count
                if found:
                    differing[name] = found
    assert differing == {}
    assert asked > 400


def test_random_requests_are_answered_alike(tmp_path: Path) -> None:
    differing: Counter[str] = Counter()
    with kafkas_coordinator(tmp_path) as do:
        for seed in range(SCRIPTS):
            _, found = scripts.differences(seed, STEPS, do)
            differing.update(f"seed {seed}: {each.command}: {each.part}" for each in found)
    assert differing == {}
