"""The operators that PyTorch sees, and the arithmetic beneath them."""
