# Databricks notebook source
# MAGIC %md
# MAGIC # What a Kafka group coordinator decided
# MAGIC Runs on Databricks (install the wheel on the cluster first) and locally, on the sample logs:
# MAGIC `python notebooks/coordinator_audit.py`. Change the two places below.

# COMMAND ----------
from pyspark.sql import functions as F  # noqa: N812

from jobs import session, settings
from jobs.api import CoordinatorAudit

DUMPS = "data/samples/logs"
TABLES = "out/notebook"

spark = session.get_or_create(settings.load().spark)
audit = CoordinatorAudit(spark, TABLES)

# COMMAND ----------
# MAGIC %md
# MAGIC Take the dumps in, decode, replay. Running it again takes what is new, and nothing twice.

# COMMAND ----------
audit.ingest(DUMPS)
audit.decode()
audit.replay()

# COMMAND ----------
# MAGIC %md
# MAGIC Which rebalances took longest, and who held them up?

# COMMAND ----------
slowest = audit.rebalances.orderBy(F.desc("duration_min_ms")).limit(10)
slowest.select("group_id", "to_epoch", "outcome", "duration_min_ms", "units_moved", "held_up_by").show(truncate=40)

# COMMAND ----------
# MAGIC %md
# MAGIC Why do groups rebalance?

# COMMAND ----------
causes = audit.rebalances.select("group_type", F.explode("causes.kind").alias("cause"))
causes.groupBy("group_type", "cause").count().orderBy(F.desc("count")).show(truncate=False)

# COMMAND ----------
# MAGIC %md
# MAGIC Which members came and went most often?

# COMMAND ----------
audit.memberships.groupBy("group_id", "client_id", "client_host").count().orderBy(F.desc("count")).show(10, truncate=40)
