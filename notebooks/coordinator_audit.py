# Databricks notebook source
# MAGIC %md
# MAGIC # Audit of a Kafka group coordinator
# MAGIC This notebook runs on Databricks (install the wheel on the cluster first) and locally on the sample logs:
# MAGIC `python notebooks/coordinator_audit.py`. Set `DUMPS` and `TABLES` below.

# COMMAND ----------
from pyspark.sql import functions as F  # noqa: N812

from coordinator_audit import CoordinatorAudit, load_settings, spark_session

DUMPS = "data/samples/logs"
TABLES = "out/notebook"

spark = spark_session(load_settings().spark)
audit = CoordinatorAudit(spark, TABLES)

# COMMAND ----------
# MAGIC %md
# MAGIC Ingest the dumps, decode, replay, compute findings. A second run processes only new records. Skip this cell if
# MAGIC `nightly` fills the tables.

# COMMAND ----------
audit.ingest(DUMPS)
audit.decode()
audit.replay()
audit.audit()

# COMMAND ----------
# MAGIC %md
# MAGIC What needs attention first?

# COMMAND ----------
worst = audit.findings.orderBy(F.desc("score")).select("score", "group_id", "kind", "subject", "detail")
worst.show(10, truncate=60)

# COMMAND ----------
# MAGIC %md
# MAGIC Which rebalances took longest, and which members delayed them?

# COMMAND ----------
slowest = audit.rebalances.where("duration_min_ms IS NOT NULL").orderBy(F.desc("duration_min_ms"))
slowest.select("group_id", "to_epoch", "outcome", "duration_min_ms", "units_moved", "held_up_by").show(10, truncate=40)

# COMMAND ----------
# MAGIC %md
# MAGIC What happened in the slowest rebalance? Each sentence names the records that prove it, as partition:offset.

# COMMAND ----------
for row in slowest.select("group_id", "to_epoch").take(1):
    for sentence in audit.explain(row.group_id, row.to_epoch):
        print(sentence.text, *(f"[{at.partition}:{at.offset}]" for at in sentence.evidence))

# COMMAND ----------
# MAGIC %md
# MAGIC Were the assignments right? Each is compared with the recomputed assignment for the members and topics of that
# MAGIC time. For `unknown`, the column `missing` names what would decide it.

# COMMAND ----------
audit.target_audits.groupBy("group_type", "assignor", "verdict").count().orderBy("group_type", "assignor").show()
audit.target_audits.where("verdict IN ('divergent', 'invalid')").select("group_id", "epoch", "differences").show()

# COMMAND ----------
# MAGIC %md
# MAGIC Why do groups rebalance?

# COMMAND ----------
causes = audit.rebalances.select("group_type", F.explode("causes.kind").alias("cause"))
causes.groupBy("group_type", "cause").count().orderBy(F.desc("count")).show(truncate=False)

# COMMAND ----------
# MAGIC %md
# MAGIC Which clients joined and left most often?

# COMMAND ----------
audit.memberships.groupBy("group_id", "client_id", "client_host").count().orderBy(F.desc("count")).show(10, truncate=40)

# COMMAND ----------
# MAGIC %md
# MAGIC Which members owned the partitions of a topic at a given time?

# COMMAND ----------
at = audit.rebalances.agg(F.max("at.timestamp_ms")).first()[0]
audit.owners_at(at).select("group_id", "topic", "partition", "member_id", "since.offset").show(10, truncate=40)
