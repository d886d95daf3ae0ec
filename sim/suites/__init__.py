"""Vectors that others have published, read from their own files and run against the golden model and the netlists."""
