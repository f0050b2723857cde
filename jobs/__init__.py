"""The Spark side: each job is a function of DataFrames with a thin main."""
