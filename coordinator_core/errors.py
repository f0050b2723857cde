"""The one error tree of the core: few classes, each message names the place and the cause."""

from typing import Final


class CoordinatorAuditError(Exception):
    """Base of all errors that this software raises on purpose."""


INVALID: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError)
"""What Python raises where values that somebody gave do not have the form that they should have."""


class SchemaError(CoordinatorAuditError):
    """A schema file contradicts itself, or a record type or version has no schema."""


class DecodeError(CoordinatorAuditError):
    """Bytes that are not what their schema says.

    ``record_type`` is the schema's name, ``path`` the field reached (``members[2].subscription``), ``position`` the
    byte offset within the key or value.
    """

    def __init__(self, cause: str, *, record_type: str = "", path: str = "", position: int = -1) -> None:
        self.cause = cause
        self.record_type = record_type
        self.path = path
        self.position = position
        where = ".".join(part for part in (record_type, path) if part)
        at = f" at byte {position}" if position >= 0 else ""
        super().__init__(f"{where}{at}: {cause}" if where or at else cause)

    def within(self, step: str, *, record_type: str = "") -> "DecodeError":
        """Return the same error for the enclosing field: ``step`` is the field that contains the place found so far."""
        joined = step + ("" if not self.path or self.path.startswith("[") or not step else ".") + self.path
        return type(self)(self.cause, record_type=record_type or self.record_type, path=joined, position=self.position)


class UnderflowError(DecodeError):
    """The bytes end before the field does."""


class HostileLengthError(DecodeError):
    """A length, count or varint that cannot be right; it is refused before memory is allocated for it."""


class InvalidTextError(DecodeError):
    """A string that is not UTF-8."""


class UnexpectedNullError(DecodeError):
    """A null where the schema allows none."""


class EarlyAccessError(DecodeError):
    """A record that an early access of Kafka wrote: its layout is known, and not that of the releases."""


class UnknownTypeError(DecodeError):
    """A record type that no schema describes."""


class UnknownVersionError(DecodeError):
    """A version of a known record type that is newer than the schemas."""


class EncodeError(CoordinatorAuditError):
    """A value that does not fit its schema; the message names record type and field path."""

    def __init__(self, cause: str, *, path: str = "") -> None:
        self.cause = cause
        self.path = path
        super().__init__(f"{path}: {cause}" if path else cause)

    def within(self, step: str) -> "EncodeError":
        """Return the same error for the enclosing field: ``step`` is the field (or record type) that contains the
        place.
        """
        joined = step + ("" if not self.path or self.path.startswith("[") else ".") + self.path
        return EncodeError(self.cause, path=joined)


class LogFormatError(CoordinatorAuditError):
    """A file that is damaged or is not a log segment; the message names file, byte position and cause."""

    def __init__(self, cause: str, *, file: str = "", position: int = -1) -> None:
        self.cause = cause
        self.file = file
        self.position = position
        at = f" at byte {position}" if position >= 0 else ""
        super().__init__(f"{file}{at}: {cause}" if file or at else cause)


class StateFormatError(CoordinatorAuditError):
    """A stored state that this release cannot read: it has to be rebuilt from the log."""


class InputError(CoordinatorAuditError):
    """Input from a user (a path, a table, a JSON line, an option) that cannot be used as given."""


class GoneError(InputError):
    """A file that was listed is not there any more, or another one is: what is there now is listed again."""


class UsageError(InputError):
    """An invalid value of an option or a setting, or an unknown option or setting."""


class IncompleteLogWarning(UserWarning):
    """An answer of the Python API rests on logs that lack something; the message says what. It is no error."""


class AssignorError(CoordinatorAuditError):
    """An assignor that fails on its input; ``kind`` is the simple name of the exception that Kafka's class throws."""

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        self.message = message
        super().__init__(f"{kind}: {message}")
