"""Linear layers of microscaled operands as modules, and models whose linear layers become such."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any, TypeVar

import torch
from torch import nn

from golden.formats import FloatFormat
from golden.mx import BlockFormat
from golden.nearest import did_you_mean
from golden.rounding import Randomness, Rounding
from golden.torch.common.arguments import check_count, check_flags, check_items, naming
from golden.torch.products.functions.blocks import (
    Roundings,
    check_operands,
    linear_of_blocks,
    roundings,
)
from golden.torch.products.functions.products import refuse_in_compiled_code
from golden.torch.settings.draws import Draws, branched
from golden.torch.settings.reductions import without_random

__all__ = ["Linear", "convert"]

_NEAREST_EVEN = "nearest_even"
_LARGEST_SEED = 2**32 - 1  # the number of a forward pass stands above it
#: In a state dictionary: how many forward passes have had random bits.
_CALLS = "calls"
Model = TypeVar("Model", bound=nn.Module)


class Linear(nn.Linear):
    """A linear layer whose operands, and gradient, are rounded to blocks: `golden.torch.mx.linear` as a module.

    Parameters
    ----------
    in_features, out_features : int
    bias : bool
    device, dtype
        As of `torch.nn.Linear`.
    element, gradient_element, block, scale, rounding, gradient_scale, gradient_rounding
        As of `golden.torch.mx.linear`. The blocks of the weight lie along `in_features`.
    random : golden.Randomness, optional
        Where a rounding is stochastic: its seed, 0 to 2**32 - 1, its number of bits, and a `call` that differs between
        the layers of a model; all 0, and 16 bits, unless given. Each forward pass has a number, which is the upper half
        of the generator's key. The second forward pass of a checkpoint has the number of the first. The state
        dictionary of a layer with a stochastic rounding keeps the next number as its extra state; that of any other
        layer is one of `torch.nn.Linear`.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or value.
    """

    _roundings: Roundings
    _random: Randomness | None
    _draws: Draws | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        element: FloatFormat | BlockFormat | str = "float8_e4m3fn",
        gradient_element: FloatFormat | BlockFormat | str | None = None,
        block: int | None = None,
        scale: str | None = None,
        rounding: Rounding | str = _NEAREST_EVEN,
        gradient_scale: str | None = None,
        gradient_rounding: Rounding | str = _NEAREST_EVEN,
        random: Randomness | None = None,
    ) -> None:
        given = _checked(element, gradient_element, block, scale, rounding, gradient_scale, gradient_rounding)
        _check_random(given, random)
        for argument, value in (("in_features", in_features), ("out_features", out_features)):
            check_count(value, argument, 0)
        check_flags(bias=bias)
        with naming("in_features, out_features, device, dtype"):
            try:
                super().__init__(in_features, out_features, bias, device, dtype)
            except AssertionError as error:  # of a PyTorch without CUDA
                raise ValueError(str(error)) from None
        _set(self, given, random)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return the exact product of the rounded operands, from the bias on, in the half dtype."""
        check_operands(input=input, weight=self.weight, bias=self.bias)
        random = None
        if self._draws is not None:
            refuse_in_compiled_code()
            random = self._draws.next()
        return linear_of_blocks(input, self.weight, self.bias, self._roundings, random)

    def extra_repr(self) -> str:
        """Return the shape, and the blocks of operands and gradients."""
        return f"{super().extra_repr()}, {self._blocks()}"

    def _blocks(self) -> str:
        operands, gradients = (None if line is None else without_random(line) for line in self._roundings)
        return f"blocks=({operands})" if gradients is None else f"blocks=({operands}), gradients=({gradients})"

    @property
    def settings(self) -> str:
        """The blocks of operands and gradients, and the random bits; a resumed run must have the same."""
        return self._blocks() if self._random is None else f"{self._blocks()}, random={self._random}"

    def get_extra_state(self) -> dict[str, int]:
        """Return the number of the next forward pass, on which its random bits depend."""
        return {_CALLS: 0 if self._draws is None else self._draws.taken}

    def set_extra_state(self, state: Any) -> None:
        """Go on from the number that `get_extra_state` has returned.

        Raises
        ------
        ValueError
            If `state` is no such state.
        """
        number = state.get(_CALLS) if isinstance(state, dict) else None
        if not isinstance(number, int) or number < 0:
            raise ValueError(f"state: got {state!r}, must be {{{_CALLS!r}: N}}, as get_extra_state() returns it")
        if self._draws is not None:
            self._draws.taken = number

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if self._draws is None:
            destination.pop(f"{prefix}_extra_state")

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *given: Any) -> None:
        super()._load_from_state_dict(state_dict, prefix, *given)
        missing, state = given[2], f"{prefix}_extra_state"
        if state in missing:  # the weights of a torch.nn.Linear will do
            missing.remove(state)


def convert(
    model: Model,
    element: FloatFormat | BlockFormat | str,
    *,
    keep: Iterable[str] = (),
    gradient_element: FloatFormat | BlockFormat | str | None = None,
    block: int | None = None,
    scale: str | None = None,
    rounding: Rounding | str = _NEAREST_EVEN,
    gradient_scale: str | None = None,
    gradient_rounding: Rounding | str = _NEAREST_EVEN,
    random: Randomness | None = None,
) -> Model:
    """Make every linear layer of a model a `Linear` of blocks, in place.

    A layer stays the same object with the same parameters and hooks, so an optimizer may have been made before. Layers
    are those whose class is `torch.nn.Linear` itself, or `Linear`, which gets the new settings. A class derived from
    one of them stays as it is: PyTorch itself uses such layers without calling them.

    Parameters
    ----------
    model : nn.Module
    element, gradient_element, block, scale, rounding, gradient_scale, gradient_rounding
        As of `golden.torch.mx.linear`.
    keep : list of str
        Names of layers that stay as they are, or patterns of names as of files: ``["head", "blocks.0.*"]``.
    random : golden.Randomness, optional
        As of `Linear`. Each layer has random bits of its own: those of the branch of `random` that is its place among
        all linear layers of the model, from 1.

    Returns
    -------
    nn.Module
        The model.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or value, `model` has no such layer, or a name of `keep` matches none.

    Examples
    --------
    >>> model = convert(nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)), "nvfp4", keep=["2"])
    >>> print(model[0])
    Linear(in_features=64, out_features=32, bias=True, blocks=(element=nvfp4 block=16 scale=nvidia_nvfp4))
    >>> type(model[2]) is nn.Linear
    True
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: got {model!r}, must be a torch.nn.Module")
    given = _checked(element, gradient_element, block, scale, rounding, gradient_scale, gradient_rounding)
    _check_random(given, random)
    # A layer may have several names.
    named = [(name, each) for name, each in model.named_modules(remove_duplicate=False) if _is_linear(each)]
    if not named:
        raise ValueError(f"model: got a {type(model).__name__} without a torch.nn.Linear, must have one")
    kept = _kept(keep, named)
    for number, layer in enumerate(dict.fromkeys(each for _, each in named), 1):
        if layer not in kept:
            layer.__class__ = Linear
            bits = None if not given.are_stochastic else branched(random or Randomness(), number)
            _set(layer, given, bits)
    return model


def _is_linear(module: nn.Module) -> bool:
    return type(module) in (nn.Linear, Linear)


def _kept(keep: Iterable[str], named: list[tuple[str, nn.Module]]) -> set[nn.Module]:
    """Return the layers whose names match; an error names the one that matches none."""
    kept, names = set(), [name for name, _ in named]
    for pattern in check_items(keep, "keep", "names of layers"):
        if not isinstance(pattern, str):
            raise TypeError(f"keep: got {pattern!r} in it, must be a list of names of layers")
        found = {each for name, each in named if name == pattern or fnmatchcase(name, pattern)}
        if not found:
            meant = did_you_mean(pattern, names) or f", such as {', '.join(map(repr, names[:3]))}"
            raise ValueError(f"keep: got {pattern!r}, must match the name of a torch.nn.Linear in the model{meant}")
        kept |= found
    return kept


def _checked(element: Any, *others: Any) -> Roundings:
    if element is None:
        raise TypeError("element: got None, must be a FloatFormat or the name of one, or 'nvfp4'")
    return roundings(element, *others)


def _check_random(given: Roundings, random: Randomness | None) -> None:
    if random is None:
        return
    if not isinstance(random, Randomness):
        raise TypeError(f"random: got {random!r}, must be a golden.Randomness or None")
    if not given.are_stochastic:
        raise ValueError(f"random: got {random}, must be None: only a rounding 'stochastic' takes random bits")
    if random.seed > _LARGEST_SEED:
        raise ValueError(f"random: got a seed of {random.seed}, must be 0 to {_LARGEST_SEED}")


def _set(layer: Any, given: Roundings, random: Randomness | None) -> None:
    """Give a layer its blocks; it counts from 0."""
    bits = random or Randomness()
    layer._roundings = given
    layer._random = bits if given.are_stochastic else None
    layer._draws = Draws(bits.seed, bits.call, bits.random_bits) if given.are_stochastic else None
