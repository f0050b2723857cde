"""One run at a time writes the tables: it holds their lease, and leaves them named where a catalog is to name them."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from jobs.tables import publication
from jobs.tables.catalog import CATALOG, COMPANIONS
from jobs.tables.damage import check
from jobs.tables.delta import Tables
from jobs.tables.lease import WRITER, Lease, held
from jobs.tables.nightly import LEASES
from jobs.tables.registered import NAMES


def check_damage(tables: Tables) -> None:
    """Raise DamagedTableError if a table is damaged. Only tables in a folder of this machine can be looked at."""
    if tables.is_folder:
        check(tables.location, CATALOG, COMPANIONS)


@contextmanager
def writing(tables: Tables, length: timedelta) -> Iterator[tuple[Lease, str | None]]:
    """Hold the lease of the one run that writes the tables; see ``held``.

    As nothing else changes them meanwhile, this process may read copies of small ones.
    """
    with held(tables, WRITER, length, CATALOG.values()) as run:
        publication.take_back(tables)
        with tables.copying():
            yield run
            _finish_registering(tables)


def _finish_registering(tables: Tables) -> None:
    """Wait until a catalog has all tables, and note which: the next run needs no Spark to know it."""
    if tables.registered is None or not tables.registered.finish():
        return
    name, names = f"{NAMES}{tables.registered.schema}", ",".join(sorted(tables.registered.names))
    tables.set_property(LEASES, name, names)
