"""Arrow starts without pandas in each question, and pandas can be imported afterwards."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

from jobs.cli.app import COMMANDS, INVESTIGATE
from tests.jobs.conftest import SAMPLE_LOGS

QUESTIONS = [name for name, entry in COMMANDS.items() if entry.panel == INVESTIGATE and name not in {"watch", "serve"}]
"""``watch`` asks a running cluster, ``serve`` runs until it is ended."""
END = "--- end of an answer ---"


def test_arrow_does_not_import_pandas_and_pandas_still_can_be_imported():
    script = (
        "import sys; from jobs.cli.arrow_start import start_without_pandas\n"
        "start_without_pandas()\n"
        "import pyarrow as pa\n"
        "assert pa.array([1, 2]).to_pylist() == [1, 2] and 'pandas' not in sys.modules\n"
        "import pandas; assert pandas.DataFrame({'a': [1]}).a.sum() == 1\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_the_examples_of_questions_run_without_pandas(tmp_path: Path) -> None:
    """From the root of a checkout. The import takes as long as the rest of a question to a small log."""
    script = (
        "import json, sys\n"
        "from coordinator_audit.__main__ import main\n"
        "for arguments in json.loads(sys.argv[1]):\n"
        "    sys.argv[1:] = arguments\n"
        "    try: main()\n"
        "    except SystemExit as end: assert not end.code, (arguments, end.code)\n"
        "    assert 'pyarrow' in sys.modules and 'pandas' not in sys.modules, arguments\n"
        f"    print({END!r})\n"
    )
    asked = {question: [question, *shlex.split(COMMANDS[question].example), "--quiet"] for question in QUESTIONS}
    asked["report"] += ["--out", str(tmp_path / "report.html")]
    command = [sys.executable, "-c", script, json.dumps([*asked.values()])]
    ran = subprocess.run(
        command, check=True, timeout=120, cwd=SAMPLE_LOGS.parents[2], stdout=subprocess.PIPE, text=True
    )
    *printed, last = ran.stdout.split(f"{END}\n")
    assert (len(printed), last) == (len(QUESTIONS), "")
    assert all(printed)
    assert list(tmp_path.iterdir())


def test_a_night_is_imported_before_arrow_starts():
    """A module that makes an array when it is imported would start it, with pandas."""
    program = "import sys; import jobs.nightly_run; assert 'pandas' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
