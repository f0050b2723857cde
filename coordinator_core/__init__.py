"""The coordinator of a Kafka cluster as data and pure functions: no Spark, no clock, no files."""
