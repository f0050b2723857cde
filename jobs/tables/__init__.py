"""The Delta tables: their schemas, how they are created and written, and the Spark session."""
