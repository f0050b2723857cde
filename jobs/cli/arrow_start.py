"""A quick start of Arrow for commands that answer one question."""

from __future__ import annotations

import sys

import pyarrow as pa


def start_without_pandas() -> None:
    """Keep Arrow from importing pandas, which it does for the first array that it makes, and which takes most of 1 s.

    Arrow tries it once in a process, and works without it. Whoever needs pandas can import it afterwards.
    """
    if "pandas" in sys.modules:
        return
    sys.modules["pandas"] = None  # type: ignore[assignment]  # Python's way to say that an import fails
    try:
        pa.array([0])
    finally:
        del sys.modules["pandas"]
