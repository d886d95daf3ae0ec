"""The matrix engine: products of matrices from memory to memory."""
