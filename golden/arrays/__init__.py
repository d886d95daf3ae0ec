"""The numeric contract on NumPy arrays: vectorised, bit-equal to `golden.reference`.

Inside this folder a value travels as float64, which holds every value of every format, and an exact sum as float64
rounded to odd. `backends` chooses who computes a product: the compiled kernels, NumPy, exact integers, or an object of
the caller's. Other functions use the compiled kernels where these are built and no flags are asked for.
"""
