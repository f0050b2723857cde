"""The pass over offset commits: the newest commit of each partition, sums by hour, and commits beside group records."""
