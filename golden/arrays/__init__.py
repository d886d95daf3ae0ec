"""The numeric contract on NumPy arrays: vectorised, bit-equal to `golden.reference`.

Inside this folder a value travels as float64, which holds every value of every format, and an exact sum as float64
rounded to odd. The compiled functions of `golden.kernels` plug in here, beneath those that `golden` exports and nowhere
else: they serve whatever returns no flags, where they are built, and what is written here serves the rest.
"""
