"""Rows on their way through ``arrived``: they come out as they went in, in few bytes."""

from collections import defaultdict

import pyarrow as pa
import pytest

from jobs.pipeline.decode_arrow import TYPED, typed_rows
from jobs.pipeline.on_spark import arrived
from jobs.pipeline.on_spark.arrived import pack, unpack
from jobs.pipeline.row_identity import identified
from jobs.sources.files import KNOWN_TOPICS
from jobs.sources.segments import SegmentsReader
from tests.jobs.conftest import SAMPLE_LOGS


@pytest.fixture(scope="module")
def log() -> list[pa.RecordBatch]:
    """The records of the samples, as ingest has them."""
    reader = SegmentsReader([str(SAMPLE_LOGS)], KNOWN_TOPICS, "__consumer_offsets")
    return [identified(batch, "c", "r") for ranges in reader.partitions() for batch in reader.read(ranges)]


def of_tables(batches: list[pa.RecordBatch]) -> dict[str, list[pa.RecordBatch]]:
    found: dict[str, list[pa.RecordBatch]] = defaultdict(list)
    for batch in batches:
        for row in batch.to_pylist():
            streams = pa.RecordBatch.from_pydict({"rows": pa.array([row["rows"]], pa.binary())})
            rows = list(unpack([streams]))
            assert sum(each.num_rows for each in rows) == row["count"]
            found[row["table"]] += rows
    return found


@pytest.mark.parametrize("limit", [arrived.STREAM_BYTES, 20_000, 1])
def test_rows_come_out_as_they_went_in(log: list[pa.RecordBatch], monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(arrived, "STREAM_BYTES", limit)
    some = [batch.slice(0, 3) for batch in log[:2]] if limit == 1 else log
    wanted: dict[str, list[pa.RecordBatch]] = defaultdict(list)
    for batch in some:
        for table, rows in typed_rows(batch):
            wanted[table.name].append(rows)
    found = of_tables(list(pack(some, typed_rows)))
    assert set(found) == set(wanted) <= set(TYPED)
    for name, batches in wanted.items():
        assert pa.Table.from_batches(found[name]).combine_chunks() == pa.Table.from_batches(batches).combine_chunks()
    if limit == 20_000:
        assert max(rows.nbytes / rows.num_rows for rows in found["log_records"]) < limit
        assert len(found["log_records"]) > len(wanted["log_records"])


def test_rows_of_one_table_carry_no_nulls_of_others(log: list[pa.RecordBatch]) -> None:
    """A row with a column for each table takes many times as much, of which most are nulls."""
    sent = sum(len(row["rows"]) for batch in pack(log, typed_rows) for row in batch.to_pylist())
    wide = 0
    for batch in log:
        for table, rows in typed_rows(batch):
            columns = {name: pa.nulls(rows.num_rows, pa.struct(list(TYPED[name].schema))) for name in TYPED}
            columns[table.name] = pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema))
            out = pa.BufferOutputStream()
            with pa.ipc.new_stream(out, (row := pa.RecordBatch.from_pydict(columns)).schema) as stream:
                stream.write_batch(row)
            wide += out.getvalue().size
    assert sent < wide / 20, (sent, wide)
