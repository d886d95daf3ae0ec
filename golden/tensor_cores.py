"""NVIDIA's tensor cores by generation, in float32 and in float16: entries of `golden.presets`."""

from __future__ import annotations

from dataclasses import replace

from golden.accumulator import Accumulator, FusedSum
from golden.formats import FP16, FP32, FloatFormat
from golden.machine import Provenance
from golden.rounding import Rounding

__all__ = ["DEEPSEEK", "MMA_SIM", "TENSOR_CORES"]

MMA_SIM = "MMA-Sim (arXiv 2511.10909), compared with ten GPUs by its authors"

_ZERO, _EVEN = Rounding.TOWARD_ZERO, Rounding.NEAREST_EVEN
_FLOAT16, _BOTH, _OCP_8 = ("float16",), ("float16", "bfloat16"), ("float8_e4m3fn", "float8_e5m2")
_TF32 = "products of TF32 are not here"
_NOTHING = "NVIDIA documents none of it"


def _tensor_core(
    products: int,
    fraction_bits: int,
    formats: tuple[str, ...],
    machine: str,
    instructions: str,
    *,
    result_bits: int = 23,
    unknown: str = _NOTHING,
) -> Accumulator:
    result = FP32 if result_bits == 23 else FloatFormat(f"e8m{result_bits}", 8, result_bits)
    return Accumulator(
        operand_bits=8 if formats == _OCP_8 else 16,
        block=products,
        join=FusedSum(products + 1, fraction_bits, _ZERO, _ZERO, result),
        zero_exponent=-126,
        nan=0x7FFFFFFF,
        provenance=Provenance(
            machine=f"NVIDIA {machine}",
            instructions=instructions,
            formats=formats,
            source=MMA_SIM,
            documented="the shapes and formats of the instructions",
            reverse_engineered=f"{products} products and the total aligned at the largest exponent, each cut to "
            f"{fraction_bits} fraction bits, the sum cut to {result_bits}; the NaN",
            unknown=unknown,
        ),
    )


def _into_float16(core: Accumulator, *, source: str = MMA_SIM, unknown: str = _NOTHING) -> Accumulator:
    """Return the rule of a tensor core whose total is in float16: the terms are cut as for float32."""
    bits = core.join.fraction_bits
    return replace(
        core,
        join=FusedSum(core.join.terms, bits, _ZERO, _EVEN, FP16),
        nan=0x7FFF,
        provenance=replace(
            core.provenance,
            instructions=f"{core.provenance.instructions}, with sums in float16",
            formats=_OCP_8 if core.operand_bits == 8 else _FLOAT16,
            source=source,
            reverse_engineered=f"{core.block} products and the total, a float16, aligned at the largest exponent, each "
            f"cut to {bits} fraction bits, the sum rounded to float16, to nearest even; a lost sum is +0; the NaN",
            unknown=unknown,
        ),
    )


_VOLTA = _tensor_core(4, 23, _FLOAT16, "Volta", "MMA m8n8k4", unknown=_TF32)
_TURING = _tensor_core(8, 24, _FLOAT16, "Turing", "MMA m16n8k8", unknown=_TF32)
_AMPERE = _tensor_core(8, 24, _BOTH, "Ampere", "MMA m16n8k8, and m16n8k16 as two of them", unknown=_TF32)
_ADA = _tensor_core(8, 24, _BOTH, "Ada", "MMA m16n8k8, and m16n8k16 as two of them", unknown=_TF32)
_ADA_8 = _tensor_core(16, 13, _OCP_8, "Ada", "MMA m16n8k16, and m16n8k32 as two of them, with fp8", result_bits=13)
_BY_MMA_SIM = _tensor_core(16, 25, _BOTH, "Hopper", "WGMMA k16, MMA m16n8k16", unknown=_TF32)
_HOPPER = replace(
    _BY_MMA_SIM,
    zero_exponent=None,
    zero_total_exponent=-133,
    provenance=replace(
        _BY_MMA_SIM.provenance, source=f"{MMA_SIM}; the exponents of zeros were found on an H100 by this project"
    ),
)
_HOPPER_8 = _tensor_core(32, 13, _OCP_8, "Hopper", "WGMMA with fp8", result_bits=13)
_BLACKWELL = _tensor_core(16, 25, _BOTH, "Blackwell", "TCGEN05.MMA k16, MMA m16n8k16", unknown=_TF32)
_BLACKWELL_8 = _tensor_core(
    32, 25, _OCP_8, "Blackwell", "TCGEN05.MMA k32, MMA m16n8k32, with fp8", unknown="block scales are not here"
)

#: By name. What follows ``into`` is the format of the total, float32 where a name has none.
TENSOR_CORES = {
    "nvidia_volta": _VOLTA,
    "nvidia_turing": _TURING,
    "nvidia_ampere": _AMPERE,
    "nvidia_ada": _ADA,
    "nvidia_ada_fp8": _ADA_8,
    "nvidia_hopper": _HOPPER,
    "nvidia_hopper_fp8": _HOPPER_8,
    "nvidia_blackwell": _BLACKWELL,
    "nvidia_blackwell_fp8": _BLACKWELL_8,
    "nvidia_volta_into_fp16": _into_float16(_VOLTA),
    "nvidia_turing_into_fp16": _into_float16(_TURING),
    "nvidia_ampere_into_fp16": _into_float16(_AMPERE),
    "nvidia_ada_into_fp16": _into_float16(_ADA),
    "nvidia_ada_fp8_into_fp16": _into_float16(_ADA_8),
    "nvidia_hopper_into_fp16": _into_float16(
        _HOPPER,
        source=f"{MMA_SIM}; compared with an H100 by this project",
        unknown="the exponents of zeros, here those of its sums in float32: no sum of float16 operands shows them",
    ),
    "nvidia_hopper_fp8_into_fp16": _into_float16(_HOPPER_8),
    "nvidia_blackwell_into_fp16": _into_float16(_BLACKWELL),
    "nvidia_blackwell_fp8_into_fp16": _into_float16(_BLACKWELL_8, unknown="block scales are not here"),
}

DEEPSEEK = replace(
    _HOPPER_8,
    promote_every=128,
    provenance=replace(
        _HOPPER_8.provenance,
        machine="NVIDIA Hopper as DeepSeek-V3 uses it",
        instructions="WGMMA with fp8, and a float32 sum every 128 products",
        source=f"DeepSeek-V3's report (arXiv 2412.19437), section 3.3, for the sum; {MMA_SIM}, for the rest",
        documented="by DeepSeek: partial sums of 128 products are added to float32 registers",
        unknown="the scales with which DeepSeek multiplies each partial sum are not here",
    ),
)
