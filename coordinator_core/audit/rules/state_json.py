"""What the rules know of a group's log as JSON, for the table that keeps it from night to night."""

from __future__ import annotations

from coordinator_core.audit.rules.known_facts import KnownFacts
from coordinator_core.groups.state_json import Json, coder, read_stored

VERSION = 5
"""Of the form of ``Watch``; raised with every change of it, so that older forms are refused."""


def watch_to_json(watch: KnownFacts) -> Json:
    """Return the watch as what ``json`` can write."""
    return {"version": VERSION, "watch": coder(KnownFacts).to_json(watch)}


def watch_from_json(stored: Json) -> KnownFacts:
    """Return the watch of ``watch_to_json``; raises StateFormatError if this is none, or of another version."""
    return read_stored(stored, "state of the rules", VERSION, _watch_from)


def _watch_from(stored: Json) -> KnownFacts:
    watch: KnownFacts = coder(KnownFacts).from_json(stored["watch"])
    return watch
