"""The Spark jobs that fill the tables: ingest, decode, replay, offsets, findings, maintenance."""
