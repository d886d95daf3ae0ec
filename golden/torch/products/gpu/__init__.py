"""Products, rounding, blocks and softmax on CUDA devices: the bits of the CPU, computed where the tensors are.

Nothing here waits for the device or copies to the host and back. Tables of convolutions and of exponentials are copied
to the device when they are first needed. A function returns None for a product without a kernel,
and `golden.torch.products.operators` computes it on the CPU. These are sums of another machine in very many stages, and
products for whose random bits the kernels have no room.
"""

from golden.torch.products.gpu.convolutions import convolution, kernel_product, transposed
from golden.torch.products.gpu.elementwise import rounded, rounded_to_blocks, softmax16
from golden.torch.products.gpu.products import matrix_product

__all__ = ["convolution", "kernel_product", "matrix_product", "rounded", "rounded_to_blocks", "softmax16", "transposed"]
