"""Training with microscaled operands: values are rounded to blocks with a shared scale before a product meets them.

The rounded values go into the exact products of this package. These sum as the level in force says, in the half
format. It holds the factors of every product as long as block scales stay within its range: cbfloat16 and bfloat16 do
for data near 1. Gradients pass a rounding unchanged (straight through); they may be rounded to blocks themselves.

`golden.mx` has the formats of blocks, the recipes of their scales and the modes in which elements are rounded.
"""

from golden.torch.products.functions.blocks import fake_quantize, linear
from golden.torch.products.functions.layers import Linear, convert

__all__ = ["Linear", "convert", "fake_quantize", "linear"]
