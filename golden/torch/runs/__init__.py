"""A run on disk: its file, its record, its log, its checkpoints."""
