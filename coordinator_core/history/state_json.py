"""The open history of a group as JSON, for the table that keeps it from night to night."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeVar

from coordinator_core.groups.state_json import Json, coder, read_stored
from coordinator_core.history.holdings import Holdings, Interval, Ownership
from coordinator_core.history.open_history import OpenHistory
from coordinator_core.history.work_units import OfUnits, Resource, UnitOwners
from coordinator_core.records import LogPosition

T = TypeVar("T")

VERSION = 7
"""Of the form of the ledger; raised with every change of one of its classes, so that older forms are refused."""


class _Owned(NamedTuple):
    resource: Resource
    partition: int
    owner: str


class _Idle(NamedTuple):
    resource: Resource
    partition: int
    since: LogPosition


@dataclass(slots=True)
class _Units:
    """Holdings and owners as lists: their keys are no text."""

    current: list[Interval]
    target: list[Interval]
    owners: list[_Owned]
    idle: list[_Idle]
    before: list[_Owned]
    replaced: dict[str, str]
    idle_ms: int
    idle_max_ms: int


_UNITS = ("current", "target", "ownership")
_HINTS = typing.get_type_hints(OpenHistory)
_CODERS = {each.name: coder(_HINTS[each.name]) for each in fields(OpenHistory) if each.name not in _UNITS}


def ledger_to_json(ledger: OpenHistory) -> Json:
    """Return the open history as what ``json`` can write."""
    owned = ledger.ownership
    units = _Units(
        list(ledger.current),
        list(ledger.target),
        [_Owned(*each) for each in _flat(owned.owners)],
        [_Idle(*each) for each in _flat(owned.idle)],
        [_Owned(*each) for each in _flat(owned.before)],
        owned.replaced,
        owned.idle_ms,
        owned.idle_max_ms,
    )
    return {
        "version": VERSION,
        "ledger": {name: each.to_json(getattr(ledger, name)) for name, each in _CODERS.items()},
        "units": coder(_Units).to_json(units),
    }


def ledger_from_json(stored: Json) -> OpenHistory:
    """Return the open history that ``ledger_to_json`` wrote.

    Raises:
        StateFormatError: it is something else, or of another version.
    """
    return read_stored(stored, "history", VERSION, _ledger_from)


def _ledger_from(stored: Json) -> OpenHistory:
    values: dict[str, Any] = {name: each.from_json(stored["ledger"][name]) for name, each in _CODERS.items()}
    ledger = OpenHistory(**values)
    units: _Units = coder(_Units).from_json(stored["units"])
    ledger.current, ledger.target = Holdings.of(units.current), Holdings.of(units.target)
    ledger.ownership = Ownership(
        UnitOwners(_nested(units.owners)),
        _nested(units.idle),
        _nested(units.before),
        units.replaced,
        units.idle_ms,
        units.idle_max_ms,
    )
    return ledger


def _flat(of_units: OfUnits[T]) -> Iterator[tuple[Resource, int, T]]:
    """In the order of the units: that in which they came is not the same after every restart."""
    for resource in sorted(of_units):
        for partition, value in sorted(of_units[resource].items()):
            yield resource, partition, value


def _nested(entries: Iterable[tuple[Resource, int, T]]) -> OfUnits[T]:
    nested: OfUnits[T] = {}
    for resource, partition, value in entries:
        nested.setdefault(resource, {})[partition] = value
    return nested
