"""``KnownFacts`` as JSON: what a later run needs to continue with a group's rules."""

from __future__ import annotations

from coordinator_core.audit.rules.known_facts import KnownFacts
from coordinator_core.groups.state_json import Json, coder, read_stored

VERSION = 6
"""The version of the form of ``KnownFacts``; raised with every change to it, so that older forms are refused."""


def watch_to_json(watch: KnownFacts) -> Json:
    """Return the facts in a form that ``json`` can write."""
    return {"version": VERSION, "watch": coder(KnownFacts).to_json(watch)}


def watch_from_json(stored: Json) -> KnownFacts:
    """Return the facts of ``watch_to_json``; raises StateFormatError if the form is not valid, or of another
    version.
    """
    return read_stored(stored, "state of the rules", VERSION, _watch_from)


def _watch_from(stored: Json) -> KnownFacts:
    watch: KnownFacts = coder(KnownFacts).from_json(stored["watch"])
    return watch
