"""Settings in force: the half type, precisions, levels and level maps."""
