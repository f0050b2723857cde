"""Data-quality checks of the tables: measures, and suites of expectations on them."""
