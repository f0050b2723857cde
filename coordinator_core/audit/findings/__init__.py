"""Health findings: what of a group's history an operator should look at, ranked."""
