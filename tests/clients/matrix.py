"""The clients: which Python, which release of the client, which versions of the other packages."""

from typing import Final, NamedTuple


class Client(NamedTuple):
    """One client of Spark Connect; ``resolution`` and ``pins`` say which versions of packages it has.

    ``refused``: what is said of a client that is too old; empty: it is not.
    """

    name: str
    python: str
    spark: str
    resolution: str = "highest"
    pins: tuple[str, ...] = ()
    refused: str = ""


CLIENTS: Final = (
    Client("lowest", "3.11", "pyspark-client==4.1.0", "lowest-direct"),
    Client("4.0", "3.11", "pyspark-client>=4.0,<4.1", refused="has no DataFrame.repartitionById"),
    Client(
        # What environment version 5 has, as its requirements file lists it.
        "databricks-5",
        "3.12",
        "databricks-connect==18.0.*",
        pins=(
            "grpcio==1.67.0",
            "grpcio-status==1.67.0",
            "protobuf==5.29.4",
            "googleapis-common-protos==1.65.0",
            "pyarrow==21.0.0",
            "numpy==2.1.3",
            "pandas==2.2.3",
        ),
    ),
    Client("highest", "3.13", "pyspark-client>=4.1,<4.2"),
    Client("highest-oldest-python", "3.11", "pyspark-client>=4.1,<4.2"),
)
