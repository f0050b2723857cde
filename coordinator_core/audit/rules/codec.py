"""The state of the rules as JSON, for the table that keeps it from night to night."""

from __future__ import annotations

import json

from coordinator_core.audit.rules.watch import Watch
from coordinator_core.groups.codec import coder, decode_group, encode_group, read_stored
from coordinator_core.groups.group import Group

VERSION = 3
"""Of the form of ``Watch``; raised with every change of it, so that older forms are refused."""


def encode_rules(group: Group, watch: Watch) -> str:
    """Group and watch as one JSON text."""
    stored = {"version": VERSION, "group": encode_group(group), "watch": coder(Watch).to_json(watch)}
    return json.dumps(stored, separators=(",", ":"))


def decode_rules(text: str) -> tuple[Group, Watch]:
    """What ``encode_rules`` wrote; raises StateFormatError if this is none, or of another version."""
    return read_stored(
        text,
        "state of the rules",
        VERSION,
        lambda stored: (decode_group(stored["group"]), coder(Watch).from_json(stored["watch"])),
    )
