"""Rules of the group protocols, judged record by record over the log of one group."""
