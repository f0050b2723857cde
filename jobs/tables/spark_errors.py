"""Errors of Spark, shortened to one line, or as those of this project."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from coordinator_core.errors import CoordinatorAuditError, InputError
from jobs.secret_values import redacted

OURS = re.compile(r"^coordinator_core\.errors\.\w+: (.+)$", re.MULTILINE)
"""One of the project's own errors, at the end of the traceback of a Python worker."""


CAUSED_BY = re.compile(r"^Caused by: (?:[\w.$]+\.)?([\w$]+(?:: .+)?)$", re.MULTILINE)
"""The causes in a stack trace of the JVM; the last one is the root cause."""

THROWN = re.compile(r"^: (?:[\w.$]+\.)?([\w$]+(?:: .+)?)$", re.MULTILINE)
"""The exception that py4j reports, for stack traces without a cause."""


RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] (.+?)(?: SQLSTATE.*)?$", re.MULTILINE)
"""An error that a job raises within a query (``raise_error``)."""


BELOW: Final = re.compile(r"\s*(?:\x1b\[\d+m)?↳(?:\x1b\[\d+m)?\s*")
"""What delta-rs writes before the cause of an error, on a line of its own."""


class SparkJobError(CoordinatorAuditError):
    """A Spark job failed; the message is the cause as far as Spark reports it."""


def one_line(error: Exception) -> str:
    """Return the cause in one line: the project's own error, else the root cause in the JVM, else the first line.

    Values of settings that may be secret are left out.
    """
    text = redacted(BELOW.sub(": ", str(error)))
    if ours := OURS.findall(text) or RAISED.findall(text):
        return str(ours[-1])
    if _is_of_jvm(error) and (causes := CAUSED_BY.findall(text) or THROWN.findall(text)):
        return str(causes[-1])
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)


@contextmanager
def own_errors() -> Iterator[None]:
    """Raise what a task of Spark raised on purpose as an error of this project; all other errors pass as they are.

    Raises:
        InputError: a task raised one of the project's own errors; Spark's is the cause.
    """
    try:
        yield
    except CoordinatorAuditError:
        raise
    except Exception as error:
        text = str(error)
        if OURS.search(text) or RAISED.search(text):
            raise InputError(one_line(error)) from error
        raise


def _is_of_jvm(error: Exception) -> bool:
    """Return whether py4j raised the error; a client that has only Spark Connect does not have that package."""
    return any(base.__module__ == "py4j.protocol" for base in type(error).__mro__)
