"""The kernels for graphics cards: their compilation, and where there is a card, their results and speed."""
