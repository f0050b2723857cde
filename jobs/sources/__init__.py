"""Where logs come from: files, tables, JSON lines, brokers."""
