"""Arrow starts without pandas, and pandas can be imported afterwards."""

from __future__ import annotations

import subprocess
import sys


def test_arrow_does_not_import_pandas_and_pandas_still_can_be_imported():
    script = (
        "import sys; from jobs.cli.arrow_start import start_without_pandas\n"
        "start_without_pandas()\n"
        "import pyarrow as pa\n"
        "assert pa.array([1, 2]).to_pylist() == [1, 2] and 'pandas' not in sys.modules\n"
        "import pandas; assert pandas.DataFrame({'a': [1]}).a.sum() == 1\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
