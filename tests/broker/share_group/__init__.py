"""What Kafka's own group coordinator does with a share group, to compare the model with it.

``pytest tests/broker/test_share_group.py`` compares random scripts; it needs a JDK and Maven.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.broker.kafka import jars

ERRORS_ONLY = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
HERE = Path(__file__).parent
Line = dict[str, Any]


@contextmanager
def kafkas_coordinator(home: Path) -> Iterator[Callable[[Line], Line]]:
    """A function that gives one line of a script to Kafka's coordinator and returns that line of the trace.

    Compiled classes go to the folder ``home``.
    """
    source = HERE / "ShareTraces.java"
    subprocess.run(["javac", "-nowarn", "-d", str(home), "-cp", jars(), str(source)], check=True, capture_output=True)
    command = ["java", ERRORS_ONLY, "-cp", f"{home}:{jars()}", "org.apache.kafka.coordinator.group.ShareTraces"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        given, said = process.stdin, process.stdout
        assert given is not None
        assert said is not None

        def do(line: Line) -> Line:
            given.write(json.dumps(line) + "\n")
            given.flush()
            answer: Line = json.loads(said.readline())
            return answer

        yield do
        given.close()
