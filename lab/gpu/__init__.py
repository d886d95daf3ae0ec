"""The kernels for graphics cards: what compilers make of them. No card is needed here."""
