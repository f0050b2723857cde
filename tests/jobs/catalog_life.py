"""``python -m tests.jobs.catalog_life``: commands on tables, one after the other, in a process that may be killed.

Arguments, each as JSON: the settings of Spark, the SQL that makes the schema (null: the tables are in a folder),
whether only Spark opens its tables, the table before whose commit the last command is killed (null: it is not), and the
commands. Prints a JSON line for each command: what it printed, and its exit code.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jobs import settings
from jobs.tables import registered, session
from jobs.tables.delta import Tables
from jobs.tables.table import Table
from tests.commands import run_command
from tests.jobs.conftest import SMALL


def hive(place: Path) -> dict[str, str]:
    """Return the settings of a session whose catalog is Hive's metastore, in a Derby database below ``place``."""
    options = f"{SMALL['spark.driver.extraJavaOptions']} -Dderby.system.home={place / 'derby'}"
    return SMALL | {
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(place / "warehouse"),
        "spark.driver.extraJavaOptions": options,
    }


def kill_before(name: str) -> None:
    """End this process and its JVM by SIGKILL when it is about to commit to this table; see ``Tables.location``."""
    commit = Tables.commit

    def killed(self: Tables, table: Table, write: Callable[[], Any], **given: Any) -> Any:
        if name in (table.name, f"{self.location}.{table.name}"):
            os.killpg(0, signal.SIGKILL)
        return commit(self, table, write, **given)

    Tables.commit = killed  # type: ignore[method-assign]


def main(
    conf: dict[str, str], schema: str | None, is_closed: bool, killed_before: str | None, commands: list[list[str]]
) -> None:
    """Run the commands."""
    if is_closed:
        registered.registered = lambda *given, **options: None  # type: ignore[assignment]
    spark = session.get_or_create(
        settings.load(environment={}, flags={"spark.master": "local[2]", "spark.conf": conf}).spark
    )
    if schema is not None:
        spark.sql(schema)
    for number, command in enumerate(commands, 1):
        if killed_before is not None and number == len(commands):
            kill_before(killed_before)
        done = run_command(*command)
        assert done.exit_code in (0, 3), (command, done.output, repr(done.exception))
        print(json.dumps({"printed": done.stdout, "code": done.exit_code}), flush=True)


if __name__ == "__main__":
    main(*map(json.loads, sys.argv[1:]))
