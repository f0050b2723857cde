"""What the HighAvailabilityTaskAssignor of Kafka Streams gives to groups, to compare ``highly_available`` with it.

``pytest tests/broker/test_highly_available.py`` compares a thousand groups.
``python -m tests.broker.highly_available`` prints the cases of ``tests/data/vectors/streams-highly-available.jsonl``.
Both need a JDK and Maven.
"""

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.broker.kafka import jars
from tests.core.assignors.streams.kafka_cases import DOCUMENTED, Case, documented

ERRORS_ONLY = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
HERE = Path(__file__).parent


def with_results(cases: Iterable[Case], home: Path) -> list[Case]:
    """The cases with their ``expected``; those that KIP-1071 reads in another way are there twice (``documented``).

    Files go to the folder ``home``.
    """
    source, given = HERE / "HighlyAvailableReference.java", home / "cases.jsonl"
    with given.open("w", encoding="utf-8") as file:
        for case in cases:
            other = documented(case["input"])
            ways = [case] if other == case["input"] else [case, {"id": case["id"] + DOCUMENTED, "input": other}]
            file.writelines(json.dumps(way) + "\n" for way in ways)
    subprocess.run(["javac", "-nowarn", "-d", str(home), "-cp", jars(), str(source)], check=True, capture_output=True)
    command = ["java", ERRORS_ONLY, "-cp", f"{home}:{jars()}", source.stem, str(given)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8")
    return [json.loads(line) for line in done.stdout.splitlines()]
