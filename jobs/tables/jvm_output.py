"""What the JVM of Spark prints (its launcher, Ivy, log4j), kept in a file apart from the output of the commands."""

import atexit
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


class _Output:
    """The file of this process, None until a JVM was started; it is deleted at the end unless it was named."""

    file: Path | None = None
    is_named = False


def jvm_output() -> Path | None:
    """Return the file with the output of the JVM, to be named in an error: it is kept. None: no JVM was started."""
    _Output.is_named = True
    return _Output.file


@contextmanager
def kept_apart() -> Iterator[None]:
    """Give a JVM that is started meanwhile a file for its standard output and its standard error.

    What Python prints on standard error meanwhile, such as a spinner, goes where it always goes.
    """
    handle, name = tempfile.mkstemp(prefix="coordinator-audit-spark-", suffix=".log")
    _Output.file = Path(name)
    atexit.register(_delete_unless_named, _Output.file)
    own = {number: os.dup(number) for number in (1, 2)}
    stream = sys.stderr
    try:
        with os.fdopen(os.dup(2), "w", buffering=1, encoding=stream.encoding) as same:
            if _is_standard_error(stream):
                sys.stderr = same
            for number in own:
                os.dup2(handle, number)
            yield
    finally:
        sys.stderr = stream
        for number, copy in own.items():
            os.dup2(copy, number)
            os.close(copy)
        os.close(handle)


def _is_standard_error(stream: TextIO) -> bool:
    """Return whether a stream is that of the process; notebooks and tests have others."""
    try:
        return stream.fileno() == 2
    except (OSError, ValueError):
        return False


def _delete_unless_named(file: Path) -> None:
    if not _Output.is_named:
        file.unlink(missing_ok=True)
