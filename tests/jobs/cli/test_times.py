"""Times as commands and the report print them; a record without a time has -1."""

from coordinator_core.cluster import clocks
from coordinator_core.records import LogPosition
from jobs.cli import explain, output
from jobs.report import render


def test_a_record_without_a_time_has_no_printed_one() -> None:
    assert (output.utc(-1), output.utc(None), clocks.utc(-1), render.utc(-1)) == (None, None, "unknown", "unknown")
    assert output.utc(0) == "1970-01-01T00:00:00.000+00:00"
    assert explain._position(LogPosition(2, 7, -1)) == "2:7 without a time"
