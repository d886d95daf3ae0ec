"""The numeric contract on NumPy arrays: vectorised, bit-equal to `golden.reference`.

Inside this folder a value travels as float64, which holds every value of every format, and an exact sum as float64
rounded to odd. A compiled kernel plugs in here, beneath the functions that `golden` exports, and nowhere else.
"""
