"""What is concluded from the ends of the logs. Time passes in a log by the records of other groups, too: all that a
group's history says apart from that stays until a record of the group, or about it, comes.
"""

from typing import Any, Final, Generic, TypeVar, overload

T = TypeVar("T")

ALWAYS: Final = (1 << 63) - 1
"""A time (ms) that no log reaches."""


class UseOfEnds:
    """Notes until when what was concluded holds: as long as the logs of the group end before ``until_ms``."""

    __slots__ = ("until_ms",)

    def __init__(self) -> None:
        self.until_ms = ALWAYS

    def __repr__(self) -> str:
        return f"UseOfEnds({self.until_ms})"

    def note(self) -> None:
        """The ends themselves are part of what is concluded."""
        self.until_ms = 0

    def reaches(self, now_ms: int, time_ms: int) -> bool:
        """Return whether logs that end at ``now_ms`` reach a time. Once they do, they always do."""
        if now_ms >= time_ms:
            return True
        self.until_ms = min(self.until_ms, time_ms)
        return False


class Noted(Generic[T]):
    """A field of a class with ``ends_used`` that tells of the ends of the logs: whoever reads it uses them."""

    def __init__(self, *default: T) -> None:
        self._default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __set__(self, of: Any, value: T) -> None:
        of.__dict__[self._name] = value

    @overload
    def __get__(self, of: None, owner: type) -> T: ...
    @overload
    def __get__(self, of: object, owner: type) -> T: ...
    def __get__(self, of: Any, owner: type) -> T:
        if of is None:
            if not self._default:
                raise AttributeError(self._name)
            return self._default[0]
        of.ends_used.note()
        value: T = of.__dict__[self._name]
        return value
