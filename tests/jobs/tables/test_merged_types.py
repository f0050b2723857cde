"""Tables that this process merges: after three nights their texts can be compared in every reader."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from jobs.tables.local_table import LocalTable


def test_texts_of_merged_rows_can_be_compared(tmp_path: Path) -> None:
    place = str(tmp_path / "groups")
    write_deltalake(place, pa.table({"name": ["a", "b"], "state": ["x", None], "number": [1, 2]}))
    for night in range(3):
        table = LocalTable.open(place)
        assert table is not None
        rows = pa.table({"name": ["b", f"c{night}"], "state": [f"night {night}", "new"], "number": [3, 4]})
        table.merge(rows, ["name"], {"state": "s.state"}, "true", insert=True)
    table = LocalTable.open(place)
    assert table is not None
    table.delete(pa.table({"name": ["c0"]}))
    made = DeltaTable(place)
    types = {pq.read_schema(file).field(name).type for file in made.file_uris() for name in ("name", "state")}
    assert types == {pa.string()}
    dataset = made.to_pyarrow_dataset()
    assert dataset.to_table(filter=ds.field("name") == "b").to_pylist() == [
        {"name": "b", "state": "night 2", "number": 2}
    ]
    found = (
        duckdb.connect().register("groups", dataset).sql("SELECT name FROM groups WHERE state = 'new' ORDER BY name")
    )
    assert found.fetchall() == [("c1",), ("c2",)]
