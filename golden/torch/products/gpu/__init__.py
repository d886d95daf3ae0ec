"""Products, rounding, blocks and softmax on CUDA devices: the bits of the CPU, computed where the tensors are.

Nothing here waits for the device or copies to the host and back. Tables of convolutions and of exponentials are copied
to the device when they are first needed. A function returns None for what has no kernel, which
`golden.torch.products.operators` has computed on the CPU: sums of another machine in very many stages, results
for which there are no random bits.
"""

from golden.torch.products.gpu.convolutions import convolution, kernel_product, transposed
from golden.torch.products.gpu.elementwise import rounded, rounded_to_blocks, softmax16
from golden.torch.products.gpu.products import matrix_product

__all__ = ["convolution", "kernel_product", "matrix_product", "rounded", "rounded_to_blocks", "softmax16", "transposed"]
