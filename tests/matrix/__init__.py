"""Knowledge taken away piece by piece: an answer is the same as on the whole log, or unknown with the reason."""
