"""The kernels for graphics cards: what compilers make of them, and what a card makes of them where there is one."""
