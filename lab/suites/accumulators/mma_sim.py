"""MMA-Sim, an outside model of tensor cores and matrix cores, called from an unchanged checkout.

This repository contains no part of it. At commit c785138 its trees of adders (CDNA 1 and 2) accept only float32
operands, which no operand is. So this module widens such operands, after the flushing that MMA-Sim would do.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from golden.formats import BF16, FLOAT8_E4M3FN, FLOAT8_E4M3FNUZ, FLOAT8_E5M2, FLOAT8_E5M2FNUZ, FP16, FloatFormat
from lab.suites.accumulators.cases import Cases

__all__ = ["INSTRUCTIONS", "MmaSim"]


class Instruction(NamedTuple):
    """An instruction as MMA-Sim names it: module, class, architecture, qualifier with a gap for the format."""

    module: str
    kind: str
    architecture: str
    qualifier: str
    formats: tuple[FloatFormat, ...]
    calls: int = 1  # consecutive calls in a case


_SIXTEEN, _EIGHT, _FNUZ = (FP16, BF16), (FLOAT8_E4M3FN, FLOAT8_E5M2), (FLOAT8_E4M3FNUZ, FLOAT8_E5M2FNUZ)
_NVIDIA, _AMD = "mmasim.simulator.nv_ptx", "mmasim.simulator.amd"
_LONG, _HALF = "m16n8k16.f32.{0}.{0}.f32", (FP16,)

#: The instruction of each preset; for DeepSeek, four calls make the partial sum of 128 products, one more the next.
INSTRUCTIONS = {
    "nvidia_volta": Instruction(_NVIDIA, "mma", "Volta", "m8n8k4.f32.{0}.{0}.f32", (FP16,), 2),
    "nvidia_turing": Instruction(_NVIDIA, "mma", "Turing", "m16n8k8.f32.{0}.{0}.f32", (FP16,)),
    "nvidia_ampere": Instruction(_NVIDIA, "mma", "Ampere", _LONG, _SIXTEEN),
    "nvidia_ada": Instruction(_NVIDIA, "mma", "Ada Lovelace", _LONG, _SIXTEEN),
    "nvidia_ada_fp8": Instruction(_NVIDIA, "mma", "Ada Lovelace", "m16n8k32.f32.{0}.{0}.f32", _EIGHT),
    "nvidia_hopper": Instruction(_NVIDIA, "wgmma", "Hopper", "m64n8k16.f32.{0}.{0}", _SIXTEEN),
    "nvidia_hopper_fp8": Instruction(_NVIDIA, "wgmma", "Hopper", "m64n8k32.f32.{0}.{0}", _EIGHT),
    "nvidia_blackwell": Instruction(_NVIDIA, "mma", "Blackwell", _LONG, _SIXTEEN),
    "nvidia_blackwell_fp8": Instruction(_NVIDIA, "mma", "RTX Blackwell", "m16n8k32.f32.{0}.{0}.f32", _EIGHT),
    "nvidia_volta_into_fp16": Instruction(_NVIDIA, "mma", "Volta", "m8n8k4.f16.{0}.{0}.f16", _HALF, 2),
    "nvidia_turing_into_fp16": Instruction(_NVIDIA, "mma", "Turing", "m16n8k8.f16.{0}.{0}.f16", _HALF),
    "nvidia_ampere_into_fp16": Instruction(_NVIDIA, "mma", "Ampere", "m16n8k16.f16.{0}.{0}.f16", _HALF),
    "nvidia_ada_into_fp16": Instruction(_NVIDIA, "mma", "Ada Lovelace", "m16n8k16.f16.{0}.{0}.f16", _HALF),
    "nvidia_ada_fp8_into_fp16": Instruction(_NVIDIA, "mma", "Ada Lovelace", "m16n8k32.f16.{0}.{0}.f16", _EIGHT),
    "nvidia_hopper_into_fp16": Instruction(_NVIDIA, "wgmma", "Hopper", "m64n8k16.f16.{0}.{0}", _HALF),
    "nvidia_hopper_fp8_into_fp16": Instruction(_NVIDIA, "wgmma", "Hopper", "m64n8k32.f16.{0}.{0}", _EIGHT),
    "nvidia_blackwell_into_fp16": Instruction(_NVIDIA, "mma", "Blackwell", "m16n8k16.f16.{0}.{0}.f16", _HALF),
    "nvidia_blackwell_fp8_into_fp16": Instruction(_NVIDIA, "mma", "RTX Blackwell", "m16n8k32.f16.{0}.{0}.f16", _EIGHT),
    "amd_cdna1": Instruction(_AMD, "mfma", "CDNA1", "f32_16x16x16{0}", (FP16,)),
    "amd_cdna1_bf16": Instruction(_AMD, "mfma", "CDNA1", "f32_16x16x8{0}", (BF16,)),
    "amd_cdna2": Instruction(_AMD, "mfma", "CDNA2", "f32_16x16x16{0}", _SIXTEEN),
    "amd_cdna2_bf16": Instruction(_AMD, "mfma", "CDNA2", "f32_16x16x8{0}", (BF16,)),
    "amd_cdna3": Instruction(_AMD, "mfma", "CDNA3", "f32_16x16x16_{0}", _SIXTEEN),
    "amd_cdna3_fp8": Instruction(_AMD, "mfma", "CDNA3", "f32_16x16x32_{0}_{0}", _FNUZ),
    "deepseek_fp8": Instruction(_NVIDIA, "wgmma", "Hopper", "m64n8k32.f32.{0}.{0}", _EIGHT, 5),
}
_NVIDIA_NAMES = {FP16: "f16", BF16: "bf16", FLOAT8_E4M3FN: "e4m3", FLOAT8_E5M2: "e5m2"}
_AMD_NAMES = {FP16: "f16", BF16: "bf16", FLOAT8_E4M3FNUZ: "fp8", FLOAT8_E5M2FNUZ: "bf8"}
_OLD_1K = {("CDNA2", BF16, "f32_16x16x16{0}"): "_1k"}


class MmaSim:
    """One instruction of MMA-Sim in one format."""

    def __init__(self, checkout: Path, name: str, fmt: FloatFormat) -> None:
        if not (checkout / "mmasim").is_dir():
            raise FileNotFoundError(f"{checkout}: has no folder mmasim, must be a checkout of MMA-Sim")
        if str(checkout) not in sys.path:
            sys.path.insert(0, str(checkout))
        self._torch: Any = importlib.import_module("torch")
        instruction = INSTRUCTIONS[name]
        names = _NVIDIA_NAMES if instruction.module == _NVIDIA else _AMD_NAMES
        qualifier = instruction.qualifier.format(names[fmt])
        qualifier += _OLD_1K.get((instruction.architecture, fmt, instruction.qualifier), "")
        made = getattr(importlib.import_module(instruction.module), instruction.kind)
        self._unit: Any = made(instruction.architecture, qualifier)
        self.m, self.k, self.n = self._unit.m, self._unit.k * instruction.calls, self._unit.n
        self._promotes = name == "deepseek_fp8"
        self._type = self._unit.a_type
        self._smallest = fmt.min_normal if instruction.architecture == "CDNA2" else 0
        self._is_tree = getattr(self._unit, "operation_type", "") == "pairwise"
        if self._is_tree:
            self._unit.a_type = self._unit.b_type = self._torch.float32

    def results(self, cases: Cases) -> NDArray[Any]:
        """Return the codes of totals, in their format, to which the products were added."""
        totals, step = cases.totals, self._unit.k
        if not self._promotes:
            for at in range(0, self.k, step):
                totals = self._call(cases.a[:, at : at + step], cases.b[at : at + step], totals)
            return totals
        outer = totals.view(np.float32)
        for start in range(0, self.k, 128):
            partial = np.zeros_like(totals)
            for at in range(start, min(start + 128, self.k), step):
                partial = self._call(cases.a[:, at : at + step], cases.b[at : at + step], partial)
            with np.errstate(all="ignore"):
                outer = outer + partial.view(np.float32)
        return np.where(np.isnan(outer), np.uint32(0x7FFFFFFF), outer.view(np.uint32))

    def _call(self, a: NDArray[Any], b: NDArray[Any], totals: NDArray[Any]) -> NDArray[Any]:
        if self._is_tree:
            sign = np.uint16(0x8000)
            a, b = (np.where(codes & ~sign < self._smallest, np.uint16(0), codes) for codes in (a, b))
        operands = [self._tensor(codes, self._type) for codes in (a, b)]
        if self._is_tree:
            operands = [each.float() for each in operands]
        made = self._unit(*operands, self._tensor(totals, self._unit.c_type))
        return np.asarray(made.numpy().view(totals.dtype))

    def _tensor(self, codes: NDArray[Any], dtype: Any) -> Any:
        signed = np.array(codes).view(f"i{codes.itemsize}")
        return self._torch.from_numpy(signed).view(dtype)
