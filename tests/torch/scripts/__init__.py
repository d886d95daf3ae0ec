"""Scripts as they are written for the original: a test changes their import, and nothing else."""
