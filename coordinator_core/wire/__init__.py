"""Bytes and values: schemas, codecs and record batches."""
