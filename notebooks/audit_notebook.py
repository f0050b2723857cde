# Databricks notebook source
# MAGIC %md
# MAGIC # Audit of a Kafka group coordinator
# MAGIC This notebook runs on Databricks and locally on the sample logs: `python notebooks/audit_notebook.py`.

# COMMAND ----------
# MAGIC %md
# MAGIC The next two cells are needed only if the cluster or the environment does not have the library. Put the path of
# MAGIC the wheel (in a volume or the workspace) into the widget `wheel`. `%pip` starts Python again, so it comes first.

# COMMAND ----------
if "dbutils" in globals():
    dbutils.widgets.text("wheel", "", "Wheel of coordinator-audit")  # noqa: F821
    wheel = dbutils.widgets.get("wheel")  # noqa: F821

# COMMAND ----------
# MAGIC %pip install "$wheel" "plotly>=5.23"

# COMMAND ----------
from pyspark.sql import functions as F  # noqa: N812

from coordinator_audit import CoordinatorAudit, load_settings, spark_session

WIDGETS = {
    "dumps": ("data/samples/logs", "Dumps to take in; empty: none"),
    "tables": ("out/notebook", "Tables: folder or catalog schema"),
    "cluster": ("default", "Name of the cluster"),
    "at": ("", "Time of the questions (ISO 8601); empty: the last rebalance"),
}


def widget(name):
    """Return the value of a widget; without Databricks, its default."""
    if "dbutils" not in globals():
        return WIDGETS[name][0]
    dbutils.widgets.text(name, *WIDGETS[name])  # noqa: F821
    return dbutils.widgets.get(name)  # noqa: F821


if "display" not in globals():

    def display(shown):
        """Print a DataFrame; a plot is only drawn in a notebook."""
        print(shown.limit(20).toPandas().to_string() if hasattr(shown, "toPandas") else type(shown).__name__)


dumps, tables, cluster, moment = (widget(name) for name in WIDGETS)
spark = spark_session(load_settings().spark)
audit = CoordinatorAudit(spark, tables, cluster)

# COMMAND ----------
# MAGIC %md
# MAGIC Ingest the dumps, decode, replay, keep the offsets, compute findings. A second run processes only new records.
# MAGIC With the widget `dumps` empty this cell does nothing: `nightly` fills the tables.

# COMMAND ----------
if dumps:
    audit.ingest(dumps)
    audit.decode()
    audit.replay()
    audit.keep_offsets()
    audit.audit()
at = moment or audit.rebalances.agg(F.max("at.timestamp_ms")).first()[0]

# COMMAND ----------
# MAGIC %md
# MAGIC ## What needs attention first?

# COMMAND ----------
worst = audit.findings.orderBy(F.desc("score")).select("score", "group_id", "kind", "subject", "detail")
display(worst)

# COMMAND ----------
# MAGIC %md
# MAGIC ## Which rebalances took longest, and which members delayed them?

# COMMAND ----------
slowest = audit.rebalances.where("duration_min_ms IS NOT NULL").orderBy(F.desc("duration_min_ms"))
display(slowest.select("group_id", "to_epoch", "outcome", "duration_min_ms", "units_moved", "delayed_by"))

# COMMAND ----------
# MAGIC %md
# MAGIC What happened in the slowest rebalance? Each sentence names the records that prove it, as partition:offset.

# COMMAND ----------
for row in slowest.select("group_id", "to_epoch").take(1):
    for sentence in audit.explain(row.group_id, row.to_epoch):
        print(sentence.text, *(f"[{place.partition}:{place.offset}]" for place in sentence.evidence))

# COMMAND ----------
# MAGIC %md
# MAGIC ## Why do groups rebalance?

# COMMAND ----------
causes = audit.rebalances.select("group_type", F.explode("causes.kind").alias("cause"))
by_cause = causes.groupBy("cause").agg(F.count("*").alias("rebalances")).orderBy(F.desc("rebalances"))
display(by_cause.plot.bar(x="cause", y="rebalances"))

# COMMAND ----------
# MAGIC %md
# MAGIC ## Were the assignments right?
# MAGIC Each is compared with the recomputed assignment for the members and topics of that time. For `unknown`, the
# MAGIC column `missing` names what would decide it.

# COMMAND ----------
display(audit.target_audits.groupBy("group_type", "assignor", "verdict").count().orderBy("group_type", "assignor"))
display(audit.target_audits.where("verdict IN ('divergent', 'invalid')").select("group_id", "epoch", "differences"))

# COMMAND ----------
# MAGIC %md
# MAGIC ## Which clients joined and left most often?

# COMMAND ----------
display(audit.memberships.groupBy("group_id", "client_id", "client_host").count().orderBy(F.desc("count")))

# COMMAND ----------
# MAGIC %md
# MAGIC ## Which members owned the partitions of a topic at a given time?

# COMMAND ----------
display(audit.owners_at(at).select("group_id", "topic", "partition", "member_id", "since.offset"))

# COMMAND ----------
# MAGIC %md
# MAGIC ## Where are the committed offsets, and which consumers stopped committing?
# MAGIC The log has no end offsets: lag needs a snapshot of them (`coordinator-audit snapshot`), given to `audit.lag`.

# COMMAND ----------
display(audit.offsets().orderBy("group_id", "topic", "partition"))
display(audit.activity(at).orderBy("group_id", "topic", "partition"))

# COMMAND ----------
# MAGIC %md
# MAGIC ## Which groups commit most, over time?

# COMMAND ----------
rates = audit.commit_rates("1 minute").groupBy("since").agg(F.sum("commits").alias("commits"))
display(rates.orderBy("since").plot.line(x="since", y="commits"))

# COMMAND ----------
# MAGIC %md
# MAGIC ## Did offsets go back, and which offsets are gone?
# MAGIC A rewind says which member owned the partition, and whether a rebalance was under way.

# COMMAND ----------
display(audit.rewinds())
display(audit.removals())
