"""Real models, with random weights: what PyTorch users run must not pass a precision context unseen."""
