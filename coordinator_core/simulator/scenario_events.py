"""What happens to a group in a scenario: events at a time, and random ones.

Times are whole milliseconds from the scenario's start; a file writes them as ``250ms``, ``30s``, ``5m``, ``2h`` or
``1d``, or as a plain number of milliseconds.
"""

import re
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

_UNITS = {None: 1, "ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LONGEST = 1e12
"""Longer than any duration that is accepted; a float may be infinite."""
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?")


def _milliseconds(value: object) -> object:
    if isinstance(value, str):
        match = _DURATION.fullmatch(value.strip())
        if match is None:
            raise ValueError("a duration is a number with a unit: 250ms, 30s, 5m, 2h, 1d")
        return round(min(float(match[1]), _LONGEST) * _UNITS[match[2]])
    return value


Duration = Annotated[int, BeforeValidator(_milliseconds), Field(ge=0, le=366 * 86_400_000)]
Positive = Annotated[int, BeforeValidator(_milliseconds), Field(gt=0, le=366 * 86_400_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Few = Annotated[int, Field(ge=1, le=100_000)]
Many = Annotated[int, Field(ge=1, le=10_000_000)]


class Part(BaseModel):
    """A part of a scenario: immutable, and without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _ascending(versions: tuple[int, int]) -> tuple[int, int]:
    if versions[0] > versions[1]:
        raise ValueError("versions are written as [lowest, highest]")
    return versions


Version = Annotated[int, Field(ge=0, le=1_000)]
Versions = Annotated[tuple[Version, Version], AfterValidator(_ascending)]


class Deploy(Part):
    """Every member in turn stops and returns after ``away``; the next one follows ``step`` later.

    Workers of Connect on KIP-848 may return with assignors that know other ``versions`` of their metadata.
    """

    away: Duration = 3_000
    step: Positive = 15_000
    versions: Versions | None = None


class Storm(Part):
    """For the time ``lasts``, at the interval ``every``, some member leaves and is back at once."""

    lasts: Positive = 120_000
    every: Positive = 3_000


class Flap(Part):
    """For the time ``lasts``, one member joins and leaves in turn: it stays for ``stay`` and is away for ``away``."""

    lasts: Positive = 300_000
    stay: Positive = 20_000
    away: Positive = 5_000


class Slow(Part):
    """From now on this many members take the time ``revocation`` to give up partitions."""

    members: Few = 1
    revocation: Positive


class Zombie(Part):
    """A member hangs (a long pause of its process) and then continues as if nothing had happened."""

    lasts: Positive


class Event(Part):
    """Something that happens to a group at a time: exactly one of the actions; ``every`` repeats it to the end."""

    at: Duration
    every: Positive | None = None
    join: Few | None = None
    leave: Few | None = None
    crash: Few | None = None
    scale: Annotated[int, Field(ge=0, le=100_000)] | None = None
    deploy: Deploy | None = None
    subscribe: list[str] | None = None
    assignor: str | None = None
    storm: Storm | None = None
    flap: Flap | None = None
    slow: Slow | None = None
    zombie: Zombie | None = None
    replace: Few | None = None
    migrate: Literal["classic", "consumer", "streams", "classic-streams", "connect", "connect-kip-848"] | None = None
    connectors: dict[str, Annotated[int, Field(ge=0, le=10_000)]] | None = None
    topology: Deploy | None = None
    shutdown: Literal[True] | None = None
    delete: Literal[True] | None = None

    @cached_property
    def action(self) -> str:
        """Return the name of the action."""
        return next(name for name in ACTIONS if getattr(self, name) is not None)

    @model_validator(mode="after")
    def _one_action(self) -> Self:
        named = [name for name in ACTIONS if getattr(self, name) is not None]
        if len(named) != 1:
            raise ValueError(f"an event needs exactly one action ({', '.join(ACTIONS)}), not {len(named)}")
        return self


ACTIONS = tuple(name for name in Event.model_fields if name not in ("at", "every"))


class Chaos(Part):
    """Random actions at the mean interval ``every``, for a group of at most ``most`` members."""

    every: Positive
    of: Annotated[list[Literal["join", "leave", "crash", "deploy", "zombie", "replace"]], Field(min_length=1)]
    most: Few = 10
