"""The Delta tables: their schemas, how they are opened, and the Spark session."""
