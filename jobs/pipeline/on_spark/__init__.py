"""What only Spark does of the steps: rows of any dump, and what is too much for one process."""
