"""Training runs without a download: handwritten digits that scikit-learn carries, and Python's own source text."""
