"""The forms of printed records, found by the first bytes of a file."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from coordinator_core.errors import InputError
from jobs.sources.bounded_text import lines_of
from jobs.sources.delta_folders import delta_tables, outside_of_tables, refuse_part
from jobs.sources.file_kinds import begins_with_batch
from jobs.sources.packed import HEAD_BYTES, head_of
from jobs.sources.printed import console_text, dump_log, json_lines, sink_files
from jobs.sources.printed.printed_rows import Row, damaged


class Form(NamedTuple):
    """A form: what it is called, what its first bytes match and, if they are all of a file, have; how it is read."""

    name: str
    begins: re.Pattern[bytes]
    read: Callable[[str], Iterator[Row]]
    has: re.Pattern[bytes] = re.compile(b"")

    def fits(self, head: bytes) -> bool:
        """Return whether a file that begins with these bytes, ``HEAD_BYTES`` if it has more, is of this form."""
        return bool(self.begins.match(head) and (len(head) >= HEAD_BYTES or self.has.search(head)))


def _up_to_damage(rows: Iterator[Row]) -> Iterator[Row]:
    """Yield the rows of a text, and in place of what cannot be unpacked a damaged one."""
    row: Row = {"place": 0}
    try:
        for row in rows:
            yield row
    except InputError as error:
        place = {name: row.get(name) for name in ("log_topic", "log_partition")}
        yield damaged(b"", str(error), row["place"] + 1) | place


def _parquet_rows(path: str) -> Iterator[Row]:
    from jobs.sources.printed.parquet_source import parquet_rows  # not at the top: most runs read no Parquet

    return parquet_rows(path)


LOGGED: Final = rb"(?:(?:SLF4J|log4j|WARNING|OpenJDK|Picked up|\[\d{4}-|Processed a total)[^\n]*\n)*"
"""Lines that Kafka's tools may write before their output."""

QUOTED: Final = rb"(?:[^\n\0]*\n){0,50}?[ \t>]*"
"""What people have before the output in a file: a prompt, a letter, marks of Markdown."""

DUMPED: Final = (
    rb"(?:Dumping [^\n]*\.(?:log|checkpoint)\s*\n|Log starting offset: \d|Starting offset: \d"
    rb"|baseOffset: \d+ lastOffset: \d|\|? ?offset: \d+ (?:position|CreateTime|LogAppendTime|isValid|keySize))"
)

KEY: Final = re.compile(rb'"key"\s*:', re.IGNORECASE)
"""What the first bytes of records as JSON have, unless the first record fills them; other files of JSON lie beside."""

FORMS: Final = (
    Form(
        "output of kafka-dump-log",
        re.compile(QUOTED + DUMPED, re.IGNORECASE),
        lambda path: _up_to_damage(dump_log.rows(lines_of(Path(path)), path)),
    ),
    Form("records as JSON", re.compile(LOGGED + rb"\s*(?:\[\s*)?\{"), json_lines.read, KEY),
    Form(
        "output of Kafka's console formatters",
        re.compile(LOGGED + rb"(?:\[[^\n]*,[a-zA-Z0-9._-]+,\d+\]::|[^\n]*::(?:GroupMetadata\(|NULL))"),
        lambda path: _up_to_damage(console_text.rows(lines_of(Path(path)))),
    ),
    Form("a Parquet file", re.compile(rb"PAR1"), _parquet_rows),
    Form("an Avro file", re.compile(rb"Obj\x01"), sink_files.avro_rows),
)


def form_of(head: bytes) -> Form | None:
    """Return the form of a file that begins with these bytes; None: of none."""
    return None if begins_with_batch(head) else next((form for form in FORMS if form.fits(head)), None)


def read(path: str) -> Iterator[Row]:
    """Yield the rows of a file of printed records.

    Raises:
        InputError: it is of no form, or cannot be read.
    """
    form = form_of(head_of(path))
    if form is None:
        raise InputError(f"{path}: not printed records")
    return form.read(path)


def is_printed(path: str) -> bool:
    """Return whether a path is a file of printed records; raises OSError if it cannot be read."""
    return os.path.isfile(path) and form_of(head_of(path)) is not None


def printed_below(path: str, files: Sequence[str]) -> list[str]:
    """Return those of the files below a path that are printed records; of Delta tables those that are part of them.

    Raises:
        InputError: a Delta table cannot be read, or the folder is part of one.
        OSError: a file cannot be read.
    """
    if os.path.isdir(path):
        refuse_part(path)
    if tables := delta_tables(files):
        from jobs.sources.printed.parquet_source import delta_files  # not at the top: most runs read no Parquet

        of_tables = [file for table in tables for file in delta_files(table)]
        return of_tables + [file for file in outside_of_tables(files, tables) if is_printed(file)]
    return [file for file in files if is_printed(file)]
