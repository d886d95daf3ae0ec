"""Unmodified models on exact products: a context in which PyTorch's own functions run them."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any, get_args

import torch
from torch import nn

from golden.accumulator import Accumulator
from golden.formats import FloatFormat
from golden.presets import accumulators
from golden.reduction import DEFAULT_CHUNK, Reduction
from golden.rounding import Randomness, Rounding, as_rounding, as_subnormals
from golden.torch.amp.within import within
from golden.torch.common.arguments import check_count, check_flags, checked_level
from golden.torch.common.pytorch import run_as_written
from golden.torch.guard.guard import unwatch, watch
from golden.torch.guard.mode import Interception
from golden.torch.settings.draws import Draws
from golden.torch.settings.half import current_half, running_half
from golden.torch.settings.half_type import HalfType, half_named
from golden.torch.settings.level_map import LevelMap
from golden.torch.settings.levels import model_level
from golden.torch.settings.mapped import enter_map, leave_map
from golden.torch.settings.plan import at_level, plan_of, rule_by_machine_of, rule_of
from golden.torch.settings.reductions import is_by_a_machine
from golden.torch.settings.scopes import NEAREST_EVEN, Process, Settings, Unseen, scopes

__all__ = ["precision"]


class precision(Interception):
    """Run the matrix products of any PyTorch code exactly: a context manager, or a decorator.

    Inside it, in this thread:

    - Products run on the exact kernels, forward and backward, at the level in force. Products are matmul and ``@``, mm,
      bmm, mv, dot, inner, tensordot, einsum, addmm and its kin, linear, bilinear, grouped_mm, convolutions (transposed,
      too), recurrent layers and cells and scaled_dot_product_attention. So the modules made of them run exactly, too:
      Linear, Conv1d, Conv2d, MultiheadAttention, the Transformer's layers, LSTM, GRU. Inputs are rounded to the half
      format, and results leave in the half dtype.
    - Exponentials, logarithms, powers, sums, means, norms, softmax, losses and normalisations widen 16-bit inputs to
      fp32 and give fp32.
    - Everything else is PyTorch's own, in the widest type of its inputs. With cbfloat16 in its float32 proxy, a sum of
      two half values, say, stays in fp32 until the next product rounds it.
    - A product without an exact path (Fourier transforms, solvers, quantised layers, ...) and one of float64 or complex
      tensors raises NotImplementedError, wherever it comes from: `unseen` is about it. Products of integers are exact
      by themselves, and PyTorch's own.

    A forward pass decides for its backward pass and for recomputed activations, wherever they run.

    Parameters
    ----------
    half : str, torch.dtype or FloatFormat, optional
        ``"cbfloat16"``, ``"float16"``, ``"bfloat16"``, ``"cb16"``, such a dtype or any format of 16 bits; the half type
        in force unless given. A format of 8 bits and fewer, such as ``"float8_e4m3fn"``, holds the factors of products
        alone: they are rounded to it, forward and backward, and sums and results are in `inner`. A factor beyond its
        range becomes infinity, NaN if the format has no infinity, or the largest value if it has neither.
    level : int, optional
        Model-wide precision optimization level 0, 1 or 2, which `golden.torch.pol` overrides; the model-wide level in
        force unless given.
    chunk : int or None
        Products in a chunk, 32 unless given; None is one chunk of any length.
    enabled : bool
        False: PyTorch's own products until the context is left, even within another precision context.
    proxy : torch.dtype, optional
        What carries cbfloat16, as for `golden.torch.set_half_dtype`.
    inner : str, torch.dtype or FloatFormat, optional
        With factors of 8 bits and fewer: the 16-bit format of sums and results, ``"cbfloat16"`` unless given.
    unseen : "error", "warn" or "count"
        What becomes of a product that the exact kernels cannot run: an error that names the operator and the module, or
        PyTorch's own product with a warning for each place, or without. `unseen_products` counts them.
    rounding : Rounding or str
        Mode of every step and promotion of a product, forward and backward (NUMERICS section 9), to nearest even unless
        given. Operands are rounded to nearest even in any mode; so is the softmax of attention.
    out_rounding : Rounding or str
        Mode of the last rounding of a product, to the half format, likewise.
    subnormals : "keep" or "flush"
        ``"flush"``: subnormal operands and results of a product, forward and backward, become zeros of their sign
        (NUMERICS section 12). Operands are rounded to the half format first, which keeps them; so does the softmax of
        attention. Such products run on NumPy, on the CPU alone.
    reduction : str, golden.Reduction or golden.Accumulator, optional
        The accumulator of another machine, one of `golden.accumulators` or its name, such as ``"nvidia_hopper"``: it
        sums every product, forward and backward, in place of a level; also in a precision inside that names no level.
        Sums over broadcast axes are at level 0, and the softmax of attention is in fp32. Or a reduction or its line of
        text, such as ``"operand=cbfloat16 inner=cbfloat16 chunk=16 outer=float32"``, in place of level and chunk: one
        that a level stands for. It names the half format where `half` does not.
    seed : int
        Where a mode is ``stochastic``: 0 to 2**32 - 1. Each product has random bits of its own, those of its number in
        this context, which goes on when the same object is entered again; a new object with the same seed repeats them.
        So does the second forward pass of a checkpoint.
    levels : mapping, optional
        A level map: levels of modules by patterns of their paths, such as
        ``{"blocks.*.mlp": {"fwd": 2, "bwd": 1}, "head": 0}``. A value is a level of both passes, or a mapping with some
        of the keys ``level``, ``fwd``, ``bwd``, ``chunk``, ``half`` and ``inner``; ``half`` may be a mapping with a
        format for ``fwd`` and one for ``bwd``. Or it is ``{"reduction": LINE}``, a line as of `reduction` that has no
        modes. It is in force while the module runs, as a `golden.torch.pol` on it would be: that of an inner module
        wins, and so does a `pol` within. Where several patterns match one module, the more specific one wins.
    model : nn.Module, optional
        The model that `levels` is of. Unless given, each model that is called inside.

    Raises
    ------
    TypeError
        If a parameter has the wrong type.
    ValueError
        If it has a value that is not listed; or a pattern of `levels` matches no module, here if there is a `model`,
        when one is called if not.
    """

    def __init__(
        self,
        half: str | torch.dtype | FloatFormat | HalfType | None = None,
        level: int | None = None,
        chunk: int | None = DEFAULT_CHUNK,
        enabled: bool = True,
        *,
        proxy: torch.dtype | None = None,
        inner: str | torch.dtype | FloatFormat | None = None,
        unseen: Unseen = "error",
        rounding: Rounding | str = Rounding.NEAREST_EVEN,
        out_rounding: Rounding | str = Rounding.NEAREST_EVEN,
        subnormals: str = "keep",
        reduction: str | Accumulator | Reduction | None = None,
        seed: int = 0,
        levels: Mapping[str, Any] | None = None,
        model: nn.Module | None = None,
    ) -> None:
        super().__init__()
        check_flags(enabled=enabled)
        if half is None and proxy is not None:
            raise ValueError(f"proxy: got {proxy} without half, must come with half='cbfloat16'")
        if half is None and inner is not None:
            raise ValueError(f"inner: got {inner!r} without half, must come with a half such as 'float8_e4m3fn'")
        if not isinstance(unseen, str) or unseen not in get_args(Unseen):
            raise ValueError(f"unseen: got {unseen!r}, must be 'error', 'warn' or 'count'")
        self._half = None if half is None else half_named(half, proxy, inner=inner, argument="half")
        self._level = None if level is None else checked_level(level, "level")
        if model is not None and not isinstance(model, nn.Module):
            raise TypeError(f"model: got {model!r}, must be a torch.nn.Module or None")
        if model is not None and levels is None:
            raise ValueError("model: got a model without levels, must come with a level map of it")
        self._levels, self._model = None if levels is None else LevelMap.of(levels), model
        if self._levels is not None and model is not None:
            self._levels.table(model)
        self._enabled = enabled
        self._unseen = unseen
        #: The products that `unseen` let pass: (operator, place) -> how often.
        self.unseen_products: Counter[tuple[str, str]] = Counter()
        modes = as_rounding(rounding, "rounding"), as_rounding(out_rounding, "out_rounding")
        check_count(seed, "seed", 0, 2**32 - 1)
        subnormals = as_subnormals(subnormals, "subnormals")
        whole = _reduction(reduction, level, chunk)
        if whole is not None:
            self._half, self._level, chunk = at_level(whole, self._half)
            given = whole.rounding, whole.out_rounding
            steps, last = (
                mode if own is Rounding.NEAREST_EVEN else own for own, mode in zip(modes, given, strict=True)
            )
            modes = steps, last
            subnormals = whole.subnormals if subnormals == "keep" else subnormals
            if not isinstance(whole.accumulator, Accumulator | None):
                raise ValueError(
                    f"reduction: got {whole}, must have an accumulator of golden.accumulators by name, or an "
                    "Accumulator: products of tensors have no others; golden.matmul has"
                )
            reduction = whole.accumulator
        self._draws = Draws(seed) if Rounding.STOCHASTIC in modes else None
        accumulator = None if reduction is None else _accumulator(reduction, level, levels, chunk)
        self._rule = rule_of(str(modes[0]), str(modes[1]), subnormals)
        if accumulator is not None:
            accumulator.refuse(rounding=modes[0], flushes=subnormals == "flush")
            self._rule, self._level = rule_by_machine_of(self._rule, str(Reduction(accumulator=accumulator))), 0
            if self._half is not None:
                plan_of(self._half, 0, 0, None, self._rule)  # which refuses another width
        self._chunk = Reduction.for_level(1, (self._half or current_half()).format, chunk=chunk).chunk

    def __call__(self, function: Any) -> Any:
        """Return a function, method, generator or coroutine so that its body runs in this precision."""
        if isinstance(function, staticmethod | classmethod):
            return type(function)(self(function.__func__))
        if not callable(function):
            raise TypeError(f"precision: got {function!r}, must be callable")
        return within(self, function, "precision")

    @property
    def products(self) -> int:
        """How many products have had random bits here: the number of the next one. A checkpoint of a run keeps it."""
        return 0 if self._draws is None else self._draws.taken

    @products.setter
    def products(self, number: int) -> None:
        if self._draws is not None:
            self._draws.taken = number

    @partial(run_as_written, recursively=True)
    def __enter__(self) -> precision:
        rule = self._rule
        around = scopes.precisions[-1].rule if scopes.precisions else NEAREST_EVEN
        if self._level is None and is_by_a_machine(around):
            rule = rule_by_machine_of(rule, around)
        half = self._half or running_half(self._enabled)
        if is_by_a_machine(rule):
            plan_of(half, 0, 0, None, rule)  # likewise
        settings = Settings(
            half=half,
            level=model_level() if self._level is None else self._level,
            chunk=self._chunk,
            enabled=self._enabled,
            unseen=self._unseen,
            rule=rule,
            counted=self.unseen_products,
            draws=self._draws,
        )
        if self._levels is not None:
            enter_map(self, self._levels, self._model)
        scopes.precisions = (*scopes.precisions, settings)
        if not torch.compiler.is_compiling():
            if self._enabled:
                Process.entered, Process.latest = True, settings
            scopes.timeline.note(settings)
            watch()
        super().__enter__()
        return self

    @partial(run_as_written, recursively=True)
    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        if self._levels is not None:
            leave_map(self)
        scopes.precisions = scopes.precisions[:-1]
        if not torch.compiler.is_compiling():
            unwatch()
            scopes.timeline.note(scopes.precisions[-1] if scopes.precisions else None)


def _reduction(given: object, level: int | None, chunk: int | None) -> Reduction | None:
    """Return the reduction of a `reduction` that is one, or the line of one."""
    if isinstance(given, str) and "=" in given:
        try:
            given = Reduction.parse(given)
        except ValueError as error:
            raise ValueError(f"reduction: {str(error).removeprefix('text: ')}") from None
    if not isinstance(given, Reduction):
        return None
    if given.random not in (None, Randomness()):
        raise ValueError(f"reduction: got {given}, must be without random bits of its own; seed says which are drawn")
    for argument, value, allowed in (("level", level, None), ("chunk", chunk, DEFAULT_CHUNK)):
        if value != allowed:
            raise ValueError(f"{argument}: got {value} with reduction, must be left out: {given} has it in itself")
    return given


def _accumulator(given: Any, level: int | None, levels: Any, chunk: int | None) -> Accumulator:
    """Return the accumulator of a `reduction`; refuse what it has not."""
    if not isinstance(given, str | Accumulator):
        raise TypeError(
            f"reduction: got {given!r}, must be the name of one of golden.accumulators, an Accumulator, or a Reduction "
            f"or its line"
        )
    if isinstance(given, str) and given not in accumulators:
        near = difflib.get_close_matches(given, accumulators, 3) or list(accumulators)
        raise ValueError(f"reduction: got {given!r}, must be one of golden.accumulators, such as {', '.join(near)}")
    rule = accumulators[given] if isinstance(given, str) else given
    for argument, value, allowed in (("level", level, None), ("levels", levels, None), ("chunk", chunk, DEFAULT_CHUNK)):
        if value != allowed:
            raise ValueError(
                f"{argument}: got {value} with reduction, must be left out: the accumulator of "
                f"{rule.provenance.machine} has no levels and no chunks"
            )
    return rule
