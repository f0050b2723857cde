"""The files below a folder of this machine or in an object store, which tasks read and write by their paths in it."""

from functools import cache

from pyarrow.fs import FileSystem, LocalFileSystem, PyFileSystem, SubTreeFileSystem

from jobs.tables.reader import is_folder


@cache
def files_in(location: str) -> FileSystem:
    """Return the files below a folder, or below a URI that delta-rs opens, with the credentials that it finds."""
    if is_folder(location):
        return SubTreeFileSystem(location, LocalFileSystem())
    from deltalake.fs import DeltaStorageHandler  # not at the top: workers of Spark have no use for it

    return PyFileSystem(DeltaStorageHandler(location))


def file_at(path: str) -> tuple[str, FileSystem]:
    """Return the name of a file, and the files among which it is."""
    location, _, name = path.rpartition("/")
    return name, files_in(location)
