"""Matrix products on PyTorch tensors, bit for bit as the contract defines them, forward and backward.

Every input is rounded to the half format, the product runs at the level in force (`golden.torch.current_pol`), and the
result leaves once in the half format, in the dtype that carries it. Defined here: the reduction starts from the
bias, so that adding it costs no rounding.
"""

from __future__ import annotations

import torch

from golden.reduction import DEFAULT_CHUNK
from golden.torch.common.pytorch import constant
from golden.torch.products.functions.gradients import exact_product, plain_linear
from golden.torch.products.operators.registered import is_plain, unwatched
from golden.torch.settings.draws import Draws
from golden.torch.settings.half import current_half, running_half
from golden.torch.settings.levels import current_pol
from golden.torch.settings.mapped import note_maps
from golden.torch.settings.plan import Plan, plan_of
from golden.torch.settings.reductions import is_by_a_machine, reduction_in
from golden.torch.settings.scopes import NEAREST_EVEN, scopes

__all__ = ["ELIGIBLE", "bmm", "check_tensors", "current_plan", "linear", "matmul", "product", "refuse_in_compiled_code"]

#: Dtypes whose values the kernels take; float64 and integers are left to PyTorch, as torch.autocast does.
ELIGIBLE = frozenset({torch.float32, torch.float16, torch.bfloat16})


def current_plan() -> Plan:
    """Return the plan of a product by the half type, the levels, the chunk length and the modes in force."""
    if scopes.precisions and not (scopes.pols or scopes.maps or scopes.mapped):  # as most often
        settings = scopes.precisions[-1]
        plan = plan_of(settings.half, settings.level, settings.level, settings.chunk, settings.rule)
        return plan if settings.draws is None else _drawn(plan, settings.draws)
    fwd, bwd = current_pol()
    if scopes.maps:
        note_maps()
    if not scopes.precisions:
        return plan_of(running_half(), fwd, bwd, _chunk(DEFAULT_CHUNK), NEAREST_EVEN)
    settings = scopes.precisions[-1]
    if scopes.pols and is_by_a_machine(settings.rule):
        raise ValueError(
            f"pol: got {scopes.pols[-1]} in a precision with reduction=, must not be given: the accumulator of "
            f"{_machine(settings.rule)} has no levels; remove the reduction or the pol"
        )
    plan = plan_of(current_half(), fwd, bwd, _chunk(settings.chunk), settings.rule)
    return plan if settings.draws is None else _drawn(plan, settings.draws)


@constant
def _machine(rule: str) -> str:
    accumulator = reduction_in(rule).accumulator
    return "none" if accumulator is None else accumulator.provenance.machine


def refuse_in_compiled_code() -> None:
    """Raise NotImplementedError in code that torch.compile makes; it is called before random bits are taken."""
    if torch.compiler.is_compiling():
        raise NotImplementedError(
            "rounding: got 'stochastic' in code that torch.compile makes, which would have the same random bits in "
            "every run; run it without torch.compile"
        )


def _drawn(plan: Plan, draws: Draws) -> Plan:
    """Return a plan with the random bits of the next product."""
    refuse_in_compiled_code()
    return plan.drawn(draws.next())


def _chunk(around: int | None) -> int | None:
    """Return the chunk length in force; `around` is the chunk length of the precision."""
    if scopes.mapped:
        for scope in reversed(scopes.pols):
            if scope.chunk is not ...:
                return scope.chunk
    return around


def check_tensors(**tensors: torch.Tensor | None) -> None:
    """Raise, naming the argument, unless all are dense tensors of at most 32 bits, on the CPU or on one CUDA device."""
    all_here = True
    for argument, tensor in tensors.items():
        if (tensor is None and argument == "bias") or (  # the one that may be left out
            isinstance(tensor, torch.Tensor)
            and tensor.dtype in ELIGIBLE
            and tensor.layout is torch.strided
            and not tensor.is_nested
            and (tensor.is_cpu or tensor.is_meta)
        ):
            continue
        all_here = False
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{argument}: got {type(tensor).__name__}, must be a torch.Tensor")
        if tensor.dtype not in ELIGIBLE:
            raise TypeError(
                f"{argument}: got a tensor of {tensor.dtype}, must be torch.float32, torch.float16 or torch.bfloat16"
            )
        if tensor.device.type not in ("cpu", "cuda", "meta"):
            raise ValueError(
                f"{argument}: got a tensor on {tensor.device}, but the exact kernels run on the CPU and on CUDA "
                f"devices; move it with .to('cpu')"
            )
        if tensor.is_nested:
            raise TypeError(
                f"{argument}: got a nested tensor, must be dense; .to_padded_tensor(0.0) makes it so, .unbind() gives "
                f"its parts"
            )
        if tensor.layout != torch.strided:
            raise TypeError(f"{argument}: got a tensor of {tensor.layout}, must be dense; .to_dense() makes it so")
    if not all_here:
        _check_devices(tensors)


def _check_devices(tensors: dict[str, torch.Tensor | None]) -> None:
    """Raise, naming the arguments, unless all tensors are on one device."""
    devices = {argument: tensor.device for argument, tensor in tensors.items() if tensor is not None}
    if len(set(devices.values())) > 1:
        first = next(iter(devices.values()))
        raise ValueError(
            f"{', '.join(devices)}: got tensors on {', '.join(map(str, devices.values()))}, must be on one device; "
            f"move them with .to({str(first)!r})"
        )


def product(a: torch.Tensor, b: torch.Tensor, initial: torch.Tensor | None = None) -> torch.Tensor:
    """Product of checked tensors of at least two axes, at the half type, levels and chunk length in force."""
    plan = current_plan()
    return exact_product(a, b, initial, plan, plan.half.dtype)


def matmul(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Exact matrix product with the shapes of `torch.matmul`.

    Parameters
    ----------
    x, y : float32, float16 or bfloat16 tensors
        (..., M, K) and (..., K, N), or vectors of length K; the axes before the last two broadcast.

    Returns
    -------
    tensor of the half dtype
        (..., M, N); a vector's axis is left out.

    Raises
    ------
    TypeError
        If an argument is not a dense tensor of such a dtype.
    ValueError
        If the shapes do not fit, or the tensors are not on one device, the CPU or a CUDA device.
    """
    check_tensors(x=x, y=y)
    if x.ndim == 0 or y.ndim == 0:
        raise ValueError(f"x, y: got shapes {tuple(x.shape)} and {tuple(y.shape)}, must have at least one axis each")
    a = x.unsqueeze(0) if x.ndim == 1 else x
    b = y.unsqueeze(-1) if y.ndim == 1 else y
    _check_shapes("x, y", a, b, (x, y))
    with unwatched(a, b):
        result = product(a, b)
        if x.ndim == 1:
            result = result.squeeze(-2)
        return result.squeeze(-1) if y.ndim == 1 else result


def bmm(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Exact product of batches, (B, M, K) and (B, K, N) to (B, M, N); dtypes and errors as in `matmul`."""
    check_tensors(x=x, y=y)
    if x.ndim != 3 or y.ndim != 3 or x.shape[0] != y.shape[0] or x.shape[2] != y.shape[1]:
        raise ValueError(
            f"x, y: got shapes {tuple(x.shape)} and {tuple(y.shape)}, must be (B, M, K) and (B, K, N); "
            f"matmul broadcasts"
        )
    return product(x, y)


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """Exact linear layer, ``x @ weight.T + bias``; the reduction starts from the bias.

    Parameters
    ----------
    x : tensor of shape (..., K)
    weight : tensor of shape (N, K), or (K,) for a result without its last axis
        Its gradient is one reduction over all rows of `x`.
    bias : tensor of shape (N,) or (), optional
        Its gradient is the sum over the rows in fp32, in their order, rounded once.

    Returns
    -------
    tensor of shape (..., N) of the half dtype

    Raises
    ------
    TypeError, ValueError
        As `matmul`.
    """
    if is_plain(x, weight, bias) and _are_common(x, weight, bias):
        with torch._C._DisableTorchDispatch():
            plan = current_plan()
            return plain_linear(x, weight, bias, plan, plan.half.dtype)
    check_tensors(x=x, weight=weight, bias=bias)
    fits = weight.ndim in (1, 2) and x.ndim > 0 and x.shape[-1] == weight.shape[-1]
    if not fits:
        raise ValueError(
            f"x, weight: got shapes {tuple(x.shape)} and {tuple(weight.shape)}, must be (..., K) and (N, K) or (K,)"
        )
    if bias is not None and bias.ndim > 0 and (bias.ndim > 1 or bias.shape[0] not in (1, *weight.shape[:-1])):
        raise ValueError(f"bias: got shape {tuple(bias.shape)}, must be {tuple(weight.shape[:-1])} for this weight")
    with unwatched(x, weight, bias):
        rows = x.unsqueeze(0) if x.ndim == 1 else x
        matrix = weight.unsqueeze(0) if weight.ndim == 1 else weight
        result = product(rows, matrix.mT, bias)
        if x.ndim == 1:
            result = result.squeeze(0)
        return result.squeeze(-1) if weight.ndim == 1 else result


def _are_common(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> bool:
    """Tell whether a layer's tensors, on the CPU, are as most are, and need no look that takes longer."""
    for each in (x, weight) if bias is None else (x, weight, bias):
        if each is None or each.dtype not in ELIGIBLE or each.layout is not torch.strided or each.is_nested:
            return False
    shape = weight.shape
    fits = len(shape) == 2 and x.ndim > 1 and x.shape[-1] == shape[1]
    return fits and (bias is None or (bias.ndim == 1 and bias.shape[0] == shape[0]))


def _check_shapes(arguments: str, a: torch.Tensor, b: torch.Tensor, given: tuple[torch.Tensor, torch.Tensor]) -> None:
    fits = a.shape[-1] == b.shape[-2]
    if fits:
        try:
            torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        except RuntimeError:
            fits = False
    if not fits:
        raise ValueError(
            f"{arguments}: got shapes {tuple(given[0].shape)} and {tuple(given[1].shape)}, must be (..., M, K) and "
            f"(..., K, N), the other axes equal or 1"
        )
