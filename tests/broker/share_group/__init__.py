"""What Kafka's own group coordinator does with a share group, to compare the model with it.

``pytest tests/broker/test_share_group.py`` compares random scripts; it needs a JDK and Maven.
"""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from tests.broker.kafka import jars

NOTHING_LOGGED = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
HERE = Path(__file__).parent
Line = dict[str, Any]


def kafkas_coordinator(home: Path) -> AbstractContextManager[Callable[[Line], Line]]:
    """A function that gives one line of a script to Kafka's coordinator and returns that line of the trace.

    Compiled classes go to the folder ``home``.
    """
    return driver(home, HERE / "ShareTraces.java", "org.apache.kafka.coordinator.group.ShareTraces")


@contextmanager
def driver(home: Path, source: Path, main: str) -> Iterator[Callable[[Line], Line]]:
    """A function that gives one line to a Java program and returns the line that it answers with."""
    subprocess.run(["javac", "-nowarn", "-d", str(home), "-cp", jars(), str(source)], check=True, capture_output=True)
    command = ["java", NOTHING_LOGGED, "-cp", f"{home}:{jars()}", main]
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
