"""The kernels for graphics cards: their compilation and, on a machine with a card, their results and speed."""
