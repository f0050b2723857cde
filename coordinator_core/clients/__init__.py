"""Which client a member of a group is: what is told of each in the blobs that it writes, and by its defaults."""
