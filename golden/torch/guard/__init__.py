"""Nothing passes unseen: what PyTorch calls is made exact, left to fp32, or refused, and told."""
