"""The parameters of the block quantiser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from golden.formats import FORMATS, FP32, FloatFormat
from golden.mx.recipes import NVFP4, BlockFormat
from golden.nearest import did_you_mean
from golden.rounding import DEFAULT_RANDOM_BITS, Rounding, as_rounding
from hdl.definitions import Definition, Format, PowerOfTwo, RandomBits, shown
from hdl.mx.number_plan import NumberPlan
from hdl.mx.plan import BlockPlan
from hdl.parameters import Parameters

__all__ = ["Mode", "MxParameters", "NarrowFormat"]

#: Values that share a scale in the OCP specification.
_BLOCK = 32
#: Bits of the widest element.
_WIDEST = 8


#: The elements that have a name.
_ELEMENTS: dict[str, FloatFormat | BlockFormat] = {
    **{fmt.name: fmt for fmt in FORMATS if fmt.width <= _WIDEST and fmt.subnormals},
    NVFP4.name: NVFP4,
}


@dataclass(frozen=True)
class NarrowFormat(Format):
    """One format of 8 bits at most, or the format of blocks whose scales are numbers."""

    type_name = "FloatFormat or BlockFormat"

    @property
    def allowed(self) -> str:
        return f"a format of at most {_WIDEST} bits with subnormals, such as float8_e4m3fn, or {NVFP4}"

    def parse(self, name: str, text: str) -> FloatFormat | BlockFormat:  # type: ignore[override]  # more than it
        given = text.strip()
        if given not in _ELEMENTS:
            raise ValueError(
                f"{name}: got {text!r}, must be one of {', '.join(_ELEMENTS)}{did_you_mean(given, _ELEMENTS)}"
            )
        return _ELEMENTS[given]

    def check(self, name: str, value: Any, given: Any) -> FloatFormat | BlockFormat:  # type: ignore[override]
        if isinstance(value, BlockFormat):
            if value != NVFP4:
                raise ValueError(f"{name}: got {value}, must be {self.allowed}")
            return value
        if not isinstance(value, FloatFormat):
            raise TypeError(f"{name}: got {value!r}, must be a golden.FloatFormat or golden.mx.NVFP4")
        if super().check(name, value, given).width > _WIDEST:
            raise ValueError(f"{name}: got {value} of {value.width} bits, must be {self.allowed}")
        if not value.subnormals:
            raise ValueError(f"{name}: got {value} without subnormals, must be {self.allowed}")
        return value


@dataclass(frozen=True)
class Mode(Definition):
    """One rounding mode."""

    type_name = "Rounding or str"

    @property
    def allowed(self) -> str:
        return f"one of {shown(tuple(Rounding))}"

    def check(self, name: str, value: Any, given: Any) -> Rounding:
        return as_rounding(value, name)


@dataclass(frozen=True, kw_only=True)
class MxParameters(Parameters):
    """Parameters of `hdl.MxQuantizer`.

    Raises
    ------
    TypeError, ValueError
        Naming the parameter, what was given and what is allowed.
    """

    source: Annotated[FloatFormat, Format("format of the values")] = FP32
    element: Annotated[FloatFormat | BlockFormat, NarrowFormat("format of the elements")]
    block: Annotated[
        int, PowerOfTwo("values that share a scale", note=f"{NVFP4} has {NVFP4.block}.", least=1, is_rare=True)
    ] = _BLOCK
    lanes: Annotated[int, PowerOfTwo("values in a beat, at most a block", least=1, most=64)] = 1
    rounding: Annotated[Rounding | str, Mode("rounding mode of the elements", is_rare=True)] = Rounding.NEAREST_EVEN
    random_bits: RandomBits = DEFAULT_RANDOM_BITS

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.source.subnormals:
            raise ValueError(
                f"source: got {self.source} without subnormals, must have them; hdl.FloatConverter widens it"
            )
        if isinstance(self.element, BlockFormat):
            self._check_number_scales(self.element)
        if self.lanes > self.block:
            raise ValueError(f"lanes: got {self.lanes}, must be at most the {self.block} values of a block")

    def _check_number_scales(self, blocks: BlockFormat) -> None:
        if self.block != blocks.block:
            raise ValueError(f"block: got {self.block}, must be {blocks.block} for {blocks}")
        if self.rounding is not Rounding.NEAREST_EVEN:
            raise ValueError(f"rounding: got {self.rounding}, must be {Rounding.NEAREST_EVEN} for {blocks}")
        if self.source.fraction_bits > FP32.fraction_bits:
            raise ValueError(f"source: got {self.source}, must be float32 or less precise for {blocks}")

    @property
    def plan(self) -> BlockPlan | NumberPlan:
        """The plan that the cores are built from."""
        if isinstance(self.element, BlockFormat):
            return NumberPlan(self.source, self.element)
        mode: Rounding = self.rounding  # type: ignore[assignment]  # checked
        return BlockPlan(self.source, self.element, mode, self.random_bits)

    @property
    def beats(self) -> int:
        """Beats of a block."""
        return self.block // self.lanes
