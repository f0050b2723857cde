"""What Spark is told of a table."""

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from jobs.tables.catalog import CATALOG
from jobs.tables.spark_reader import spark_types
from jobs.tables.spark_table import ddl


def test_columns_in_sql_are_those_that_this_process_creates(spark: SparkSession) -> None:
    for table in CATALOG.values():
        assert StructType.fromDDL(ddl(table.columns)) == spark_types(table.columns), table.name
    assert any("struct<" in ddl(table.columns) for table in CATALOG.values())
