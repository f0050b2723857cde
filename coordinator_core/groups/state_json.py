"""Groups as JSON, where one worker hands them to another."""

from __future__ import annotations

from typing import Final

from coordinator_core.groups.certainty import Certainty
from coordinator_core.groups.group import Group
from coordinator_core.state_json import StateForm

_FORM: Final = StateForm(Group, "group")
_CERTAINTY: Final = StateForm(Certainty, "certainty")


def encode_group(group: Group) -> str:
    """Return the group as one JSON text."""
    return _FORM.encode(group)


def decode_group(text: str) -> Group:
    """Return the group that ``encode_group`` wrote.

    Raises:
        StateFormatError: it is something else, or of another version.
    """
    return _FORM.decode(text)


def encode_certainty(certainty: Certainty) -> str:
    """Return what is known of a group as one JSON text."""
    return _CERTAINTY.encode(certainty)


def decode_certainty(text: str) -> Certainty:
    """Return what ``encode_certainty`` wrote.

    Raises:
        StateFormatError: it is something else, or of another version.
    """
    return _CERTAINTY.decode(text)
