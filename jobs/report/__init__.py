"""The report: what a coordinator did, as data first, then as one HTML page that needs nothing else."""
