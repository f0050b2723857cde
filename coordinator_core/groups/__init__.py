"""Groups of every type: their state as the log defines it, and how records change it."""
