"""cbfloat16, fp16, bf16 and fp32 arithmetic with precision levels, bit for bit as the hardware in `hdl`.

`golden` needs NumPy only. `golden.reference` is the same contract on exact Python integers.
"""

from golden import mx
from golden.accumulator import Accumulator, FusedSum
from golden.arrays.backends import ProductBackend, backend, backends
from golden.arrays.conversion import convert, decode, encode, quantize
from golden.arrays.fused_step import multiply_accumulate
from golden.arrays.normalisation import softmax
from golden.arrays.products import dot, matmul
from golden.arrays.value_products import matmul_values
from golden.checking import Checked, check
from golden.counts import Counts, Events
from golden.explanation import explain
from golden.flags import Flag
from golden.formats import (
    BF16,
    CB16,
    CBFLOAT16,
    DLFLOAT16,
    FLOAT4_E2M1FN,
    FLOAT6_E2M3FN,
    FLOAT6_E3M2FN,
    FLOAT8_E4M3FN,
    FLOAT8_E4M3FNUZ,
    FLOAT8_E5M2,
    FLOAT8_E5M2FNUZ,
    FORMATS,
    FP16,
    FP32,
    FloatFormat,
    format_named,
)
from golden.grouped_sums import GroupedSums
from golden.identification import Identified, identify
from golden.kernels import kernel_info
from golden.machine import Provenance
from golden.presets import accumulators
from golden.reduction import DEFAULT_CHUNK, LEVELS, Reduction
from golden.rounding import Randomness, Rounding

__version__ = "0.1.0"
#: Tells this package from others of its name.
__distribution__ = "cbfloat"

__all__ = [
    "BF16",
    "CB16",
    "CBFLOAT16",
    "DEFAULT_CHUNK",
    "DLFLOAT16",
    "FLOAT4_E2M1FN",
    "FLOAT6_E2M3FN",
    "FLOAT6_E3M2FN",
    "FLOAT8_E4M3FN",
    "FLOAT8_E4M3FNUZ",
    "FLOAT8_E5M2",
    "FLOAT8_E5M2FNUZ",
    "FORMATS",
    "FP16",
    "FP32",
    "LEVELS",
    "Accumulator",
    "Checked",
    "Counts",
    "Events",
    "Flag",
    "FloatFormat",
    "FusedSum",
    "GroupedSums",
    "Identified",
    "ProductBackend",
    "Provenance",
    "Randomness",
    "Reduction",
    "Rounding",
    "__version__",
    "accumulators",
    "backend",
    "backends",
    "check",
    "convert",
    "decode",
    "dot",
    "encode",
    "explain",
    "format_named",
    "identify",
    "kernel_info",
    "matmul",
    "matmul_values",
    "multiply_accumulate",
    "mx",
    "quantize",
    "softmax",
]
