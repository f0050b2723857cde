"""What tasks of ingest hand to Spark where it alone writes the tables: ``python -m benchmarks.arrived [--records N]``.

Prints JSON: bytes of the log, bytes of the rows of ``arrived`` (what the first workers return), and bytes of the rows
that the second ones unpack from them for the tables, as Arrow. No Spark runs: what the tasks do is called here.
"""

import argparse
import json
import tempfile
from pathlib import Path

from benchmarks.generate import generate
from coordinator_core.records import GROUP_LOG
from jobs.pipeline.decode_arrow import typed_rows
from jobs.pipeline.on_spark.arrived import pack, unpack
from jobs.pipeline.row_identity import identified
from jobs.sources.segments import SegmentsReader


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=500_000)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="arrived-") as place:
        log = Path(place, "log")
        generate(log, wanted.records, 2_000, partitions=2)
        segments = SegmentsReader([str(log)], frozenset({GROUP_LOG}), GROUP_LOG)
        records = arrived = unpacked = 0
        for task in segments.partitions():
            batches = (identified(batch, "c", "run") for batch in segments.read(task))
            for packed in pack(batches, typed_rows):
                arrived += packed.nbytes
                for rows in unpack([packed.drop_columns(["table", "count"])]):
                    unpacked += rows.nbytes
                    records += packed["table"][0].as_py() == "log_records" and rows.num_rows
        size = sum(file.stat().st_size for file in log.rglob("*.log"))
    print(json.dumps({"records": records, "log_bytes": size, "arrived_bytes": arrived, "table_bytes": unpacked}))


if __name__ == "__main__":
    main()
