"""The operations of CXXRTL, and widths to try them at."""

#: Widths on both sides of where one word, and one integer, ends.
WIDTHS = (1, 7, 32, 33, 64, 131)
ONE = ("logic_not", "reduce_and", "reduce_or", "reduce_xor", "reduce_xnor", "reduce_bool")
ONE += tuple(f"{name}_{sign}" for name in ("not", "pos", "neg") for sign in "us")
TWO = ("logic_and", "logic_or")
TWO += tuple(
    f"{name}_{signs}"
    for name in ("and", "or", "xor", "xnor", "add", "sub", "mul", "eq", "ne", "lt", "gt", "le", "ge")
    for signs in ("uu", "ss")
)
