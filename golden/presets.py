"""Accumulators of other machines by name: every entry is data for the family of `golden.accumulator`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from golden.accumulator import Accumulator, FusedSum
from golden.grouped_sums import riscv_ime
from golden.machine import Provenance
from golden.nearest import did_you_mean
from golden.rounding import Rounding
from golden.tensor_cores import DEEPSEEK, MMA_SIM, TENSOR_CORES

__all__ = ["Presets", "accumulators"]


class Presets(Mapping[str, Accumulator]):
    """Accumulators by name, and those that an implementer's disclosure describes.

    It says which names it has to one who asks for another.
    """

    def __init__(self, presets: Mapping[str, Accumulator]) -> None:
        self._presets = MappingProxyType(dict(presets))

    riscv_ime = staticmethod(riscv_ime)

    def __getitem__(self, name: str) -> Accumulator:
        try:
            return self._presets[name]
        except KeyError:
            meant = did_you_mean(str(name), self._presets)
            names = ", ".join(self._presets)
            raise KeyError(f"golden.accumulators: got {name!r}, must be one of {names}{meant}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._presets)

    def __len__(self) -> int:
        return len(self._presets)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self._presets)!r})"


_ZERO, _DOWN, _ODD = Rounding.TOWARD_ZERO, Rounding.DOWN, Rounding.TO_ODD
_BFLOAT16, _FLOAT16, _BOTH = ("bfloat16",), ("float16",), ("float16", "bfloat16")
_OCP_8, _FNUZ_8 = ("float8_e4m3fn", "float8_e5m2"), ("float8_e4m3fnuz", "float8_e5m2fnuz")

_X86 = Accumulator(
    operand_bits=16,
    block=2,
    order=(1, 0),
    join=FusedSum(3, chain=True),
    flush="signed",
    without_flags=True,
    provenance=Provenance(
        machine="x86 with AVX512_BF16",
        instructions="VDPBF16PS",
        formats=_BFLOAT16,
        source="Intel's manual; this project compares it with the processor's own instruction",
        documented="fused steps to nearest even, odd product first; subnormal inputs and results are zeros; no flags",
        reverse_engineered="a result is tiny if it is so when rounded with an unbounded exponent",
        unknown="nothing but payloads of NaNs, which are not modelled",
    ),
)
_AMX = Accumulator(
    operand_bits=16,
    block=32,
    stages=(FusedSum(16, chain=True, interleaved=True), FusedSum(2)),
    join=FusedSum(2),
    flush="signed",
    without_flags=True,
    provenance=Provenance(
        machine="x86 with AMX-BF16",
        instructions="TDPBF16PS on tiles of full depth",
        formats=_BFLOAT16,
        source="Intel's manual; this project compares it with the processor's own instruction",
        documented="even and odd products in two chains of fused steps from +0, their sum, then the total; "
        "to nearest even; subnormal inputs and results are zeros; no flags",
        reverse_engineered="nothing",
        unknown="nothing but payloads of NaNs, which are not modelled",
    ),
)
_ARM = Accumulator(
    operand_bits=16,
    block=2,
    stages=(FusedSum(1, rounding=_ODD), FusedSum(2, rounding=_ODD)),
    join=FusedSum(2, rounding=_ODD),
    flush="signed",
    without_flags=True,
    provenance=Provenance(
        machine="Armv8.6 with FEAT_BF16",
        instructions="BFDOT, and BFMMLA as two of them",
        formats=_BFLOAT16,
        source="Arm's architecture reference manual (BFDotAdd); compared with QEMU's rule, not with a processor",
        documented="every product and sum is rounded to odd; subnormal inputs and results are zeros; overflow is "
        "infinite; the default NaN; no flags",
        reverse_engineered="nothing",
        unknown="nothing",
    ),
)
_ARM_EXTENDED = Accumulator(
    operand_bits=16,
    block=2,
    stages=(FusedSum(2),),
    join=FusedSum(2),
    without_flags=True,
    provenance=Provenance(
        machine="Armv9.2 with FEAT_EBF16, FPCR.EBF = 1",
        instructions="BFDOT, and BFMMLA as two of them",
        formats=_BFLOAT16,
        source="Arm's architecture reference manual (BFDotAdd, FPDot); compared with QEMU's rule, not with a processor",
        documented="two products are added exactly and rounded once, then added to the total; rounding mode and "
        "flushing are FPCR's, here to nearest even and none; the default NaN; no flags",
        reverse_engineered="nothing",
        unknown="nothing",
    ),
)


def _bulk_normalised(products: int, operand_bits: int, formats: tuple[str, ...], instructions: str) -> Accumulator:
    guard_bits = (products - 1).bit_length()
    return Accumulator(
        operand_bits=operand_bits,
        block=products,
        stages=(FusedSum(products, 23 + guard_bits, _ODD, _ODD),),
        join=FusedSum(2, rounding=_ODD),
        provenance=Provenance(
            machine="RISC-V with the draft batched dot products",
            instructions=f"{instructions}, {products} products at a time",
            formats=formats,
            source="the code of Spike, riscv-isa-sim 55b4658, with which this project compares it",
            documented="products aligned at the largest exponent, with log2 of their number as guard bits and to odd; "
            "their sum and the total rounded to odd; overflow is infinite; the canonical NaN",
            reverse_engineered="nothing",
            unknown="the draft leaves the grouping of products to implementations, here 16; flags are not modelled",
        ),
    )


def _tree(
    products: int, depth: int, formats: tuple[str, ...], machine: str, instructions: str, *, flush: str = "none"
) -> Accumulator:
    halvings = (products - 1).bit_length()
    flushed = "" if flush == "none" else "; subnormal inputs are +0, subnormal results zeros"
    return Accumulator(
        operand_bits=16,
        block=products,
        stages=(FusedSum(1, chain=True), *[FusedSum(2)] * halvings),
        join=FusedSum(2),
        flush=flush,
        depth=depth,
        provenance=Provenance(
            machine=f"AMD {machine}",
            instructions=instructions,
            formats=formats,
            source=MMA_SIM,
            documented="the shapes and formats of the instructions",
            reverse_engineered=f"products rounded to float32, added in a tree of {products}, then to the total, all to "
            f"nearest even{flushed}",
            unknown="payloads of NaNs",
        ),
    )


_CDNA3 = Accumulator(
    operand_bits=16,
    block=8,
    stages=(FusedSum(8, 24, _ZERO, None),),
    join=FusedSum(2, 31, _DOWN),
    total_fraction_bits=24,
    zero_exponent=-126,
    products_overflow=True,
    provenance=Provenance(
        machine="AMD CDNA 3",
        instructions="V_MFMA_F32_*_F16, V_MFMA_F32_*_BF16 with 8 products and more",
        formats=_BOTH,
        source=MMA_SIM,
        documented="the shapes and formats of the instructions",
        reverse_engineered="8 products aligned and cut to 24 fraction bits; their sum cut down to 31 and the total to "
        "24 below the larger exponent; one rounding to nearest even; products of 2^128 and more are infinite",
        unknown="payloads of NaNs; a product beyond 2^128 beside an infinity, where MMA-Sim's rule is kept",
    ),
)
_CDNA3_8 = replace(
    _CDNA3,
    operand_bits=8,
    block=16,
    stages=(FusedSum(8, 24, _ZERO, None, interleaved=True), FusedSum(2, 24, _DOWN, None)),
    total_reach=25,
    provenance=replace(
        _CDNA3.provenance,
        instructions="V_MFMA_F32_*_FP8_FP8 and those with BF8",
        formats=_FNUZ_8,
        reverse_engineered="8 even and 8 odd products, each aligned and cut to 24 fraction bits; both sums cut down to "
        "24; their sum cut down to 31 and the total to 24 below the larger exponent, dropped where it is more than 25 "
        "below; one rounding to nearest even",
        unknown="payloads of NaNs",
    ),
)
_PRESETS = {
    "x86_vdpbf16ps": _X86,
    "x86_tdpbf16ps": _AMX,
    "arm_bfdot": _ARM,
    "arm_bfdot_ebf16": _ARM_EXTENDED,
    "riscv_zvfwbdota16bf": _bulk_normalised(16, 16, _BFLOAT16, "Zvfwbdota16bf, of the Zvdota family"),
    "riscv_zvfqwbdota8f": _bulk_normalised(16, 8, _OCP_8, "Zvfqwbdota8f, of the Zvdota family"),
    **TENSOR_CORES,
    "amd_cdna1": _tree(4, 16, _FLOAT16, "CDNA 1", "V_MFMA_F32_16X16X16F16"),
    "amd_cdna1_bf16": _tree(2, 8, _BFLOAT16, "CDNA 1", "V_MFMA_F32_16X16X8BF16"),
    "amd_cdna2": _tree(4, 16, _BOTH, "CDNA 2", "V_MFMA_F32_16X16X16F16, V_MFMA_F32_16X16X16BF16_1K", flush="positive"),
    "amd_cdna2_bf16": _tree(2, 8, _BFLOAT16, "CDNA 2", "V_MFMA_F32_16X16X8BF16", flush="positive"),
    "amd_cdna3": _CDNA3,
    "amd_cdna3_fp8": _CDNA3_8,
    "deepseek_fp8": DEEPSEEK,
}

#: Accumulators of other machines: name -> preset, for ``reduction=`` of `golden.dot` and `golden.matmul`.
#: ``riscv_ime`` makes one from an implementer's disclosure. Names that end in ``into_fp16`` have a total in float16.
accumulators = Presets(_PRESETS)
