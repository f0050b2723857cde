"""Dumps compared with the tables, where one of the two has nothing."""

import pyarrow as pa
import pytest

from jobs.pipeline.compared import SCHEMA, _judged

NOTHING = SCHEMA.empty_table()
ONE = pa.Table.from_pylist([{"log_topic": "t", "log_partition": 0, "log_offset": 5, "kind": "record"}], SCHEMA)


@pytest.mark.parametrize(
    ("given", "taken", "is_new"), [(NOTHING, NOTHING, []), (NOTHING, ONE, []), (ONE, NOTHING, [True])]
)
def test_a_dump_without_rows_has_nothing_new(given: pa.Table, taken: pa.Table, is_new: list[bool]) -> None:
    judged = _judged(given, taken, is_detailed=True)
    assert (judged.is_new.tolist(), judged.adds_details.tolist()) == (is_new, [False] * len(is_new))
