"""How many bytes a record takes in a batch, as SQL; ``audit.folds.record_sizes`` counts the same in a log."""

from __future__ import annotations

from typing import Final


def _varint(length: str) -> str:
    """Return SQL for the bytes of a zigzag varint that is not negative."""
    steps = " ".join(f"WHEN {length} < {1 << bits} THEN {size}" for size, bits in enumerate((6, 13, 20, 27), start=1))
    return f"CASE {steps} ELSE 5 END"


_BODY: Final = (
    f"(3 + {_varint('(log_offset - base)')} + {_varint('key_bytes')} + key_bytes"
    f" + {_varint('value_bytes')} + value_bytes)"
)

RECORD_BYTES: Final = f"CAST({_BODY} + {_varint(_BODY)} AS BIGINT)"
"""The bytes of a record within its batch, from ``key_bytes``, ``value_bytes``, ``log_offset`` and ``base``, the first
offset of the batch. Attributes, time and number of headers take a byte each: a coordinator writes no headers, and the
records of a batch within a few milliseconds.
"""
