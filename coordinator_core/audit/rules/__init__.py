"""Rules of the group protocols, judged record by record from the log of one group."""
