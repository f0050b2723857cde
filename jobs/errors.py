"""What Spark says when something goes wrong, in one line."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError

from coordinator_core.errors import CoordinatorAuditError

OURS = re.compile(r"^coordinator_core\.errors\.\w+: (.+)$", re.MULTILINE)
"""An error of our tree at the end of a Python worker's traceback."""


CAUSED_BY = re.compile(r"^Caused by: (?:[\w.$]+\.)?([\w$]+(?:: .+)?)$", re.MULTILINE)
"""The causes in a trace of the JVM; the last one is at the bottom of it."""

THROWN = re.compile(r"^: (?:[\w.$]+\.)?([\w$]+(?:: .+)?)$", re.MULTILINE)
"""What py4j says was thrown, where the trace names no cause."""


RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] (.+?)(?: SQLSTATE.*)?$", re.MULTILINE)
"""An error that a job raises in the middle of a query."""


class SparkJobError(CoordinatorAuditError):
    """A Spark job failed; the message is the cause as far as Spark tells it."""


def one_line(error: Exception) -> str:
    """The cause in what may be a page from the JVM: our own error within it, the cause of all, or its first line."""
    text = str(error)
    if ours := OURS.findall(text) or RAISED.findall(text):
        return str(ours[-1])
    if isinstance(error, Py4JError) and (causes := CAUSED_BY.findall(text) or THROWN.findall(text)):
        return str(causes[-1])
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
