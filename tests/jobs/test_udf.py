"""The UDFs, in DataFrames and in SQL."""

from pyspark.sql import SparkSession

from coordinator_core.records import Family
from coordinator_core.wire.record_codec import encode_key, encode_value
from jobs import udf
from tests.jobs.frames import assert_rows

KEY = encode_key(1, {"group": "g", "topic": "t", "partition": 3})
VALUE = encode_value(1, 4, {"offset": 7, "leaderEpoch": 2, "metadata": "m", "commitTimestamp": 5})
GROUP_KEY = encode_key(3, {"groupId": "c"})


def test_in_a_data_frame_and_in_sql(spark: SparkSession) -> None:
    rows = [(KEY, VALUE), (GROUP_KEY, None), (KEY, VALUE[:-2]), (b"\x00", VALUE), (None, None)]
    dump = spark.createDataFrame(rows, "key binary, value binary").coalesce(1)
    decode_key, decode_value = udf.decode_key(), udf.decode_value()
    found = dump.select(decode_key("key").alias("k"), decode_value("key", "value").alias("v")).collect()
    assert [row.k and row.k.record_type for row in found] == [1, 3, 1, None, None]
    assert (found[0].k.offset_commit.topic, found[0].v.offset_commit.offset, found[0].v.version) == ("t", 7, 4)
    assert (found[1].k.consumer_group_metadata.groupId, found[1].v) == ("c", None)
    assert [bool(row.v and row.v.error) for row in found] == [False, False, True, False, False]
    assert "commitTimestamp" in found[2].v.error
    assert found[3].k.error is not None

    udf.register(spark)
    total = spark.sql("SELECT sum(decode_value(key, value).offset_commit.offset) AS n FROM {dump}", dump=dump)
    assert_rows(total, [(7,)])


def test_each_family_has_functions_of_its_own(spark: SparkSession) -> None:
    """Registering the functions of share state leaves those of groups as they are."""
    share = encode_key(0, {"groupId": "s", "topicId": "AAAAAAAAAAAAAAAAAAAAAQ", "partition": 1}, Family.SHARE)
    dump = spark.createDataFrame([(KEY, share)], "key binary, share_key binary")
    for family in (Family.GROUP, Family.SHARE):
        udf.register(spark, family)
    both = "SELECT decode_key(key).offset_commit.group AS g, decode_share_key(share_key).share_snapshot.groupId AS s"
    assert_rows(spark.sql(f"{both} FROM {{dump}}", dump=dump), [("g", "s")])
