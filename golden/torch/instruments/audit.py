"""A table of a model's products by module and pass: those that run exactly, and those that PyTorch computes."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from rich.console import Console
from rich.table import Table
from rich.text import Text
from torch import Tensor, nn

from golden.torch.amp.initialize import is_initialized
from golden.torch.amp.precision import precision
from golden.torch.common.processes import capture, restore
from golden.torch.guard.guard import unwatch, watch
from golden.torch.guard.operator_kinds import operator_name
from golden.torch.guard.provenance import nodes
from golden.torch.settings.draws import rewound, taken
from golden.torch.settings.passes import unnoted
from golden.torch.settings.scopes import Settings, Timeline, scopes

__all__ = ["Audit", "AuditRow", "Recorder", "audit", "is_compiled", "unchanged"]

_OF_A_LEAF = 2**64 - 1


class AuditRow(NamedTuple):
    """The products of one operator in one pass of one module."""

    module: str
    run: str  # "forward", "backward" or "recomputation"
    operator: str
    exact: int
    unseen: int
    refused: int


@dataclass(frozen=True)
class Audit:
    """The findings of `audit`.

    Attributes
    ----------
    rows : list of AuditRow
        By module and pass, in the order in which they ran.
    exact : int
        Products that the exact kernels computed.
    unseen : int
        Products that PyTorch computed where no precision was in force, or one whose policy lets them pass.
    refused : int
        Products that PyTorch computed for this table, and that raise an error without it.
    """

    rows: list[AuditRow]

    @property
    def exact(self) -> int:
        """Number of products that ran exactly."""
        return sum(row.exact for row in self.rows)

    @property
    def unseen(self) -> int:
        """Number of products that PyTorch computed unseen."""
        return sum(row.unseen for row in self.rows)

    @property
    def refused(self) -> int:
        """Number of products that raise an error."""
        return sum(row.refused for row in self.rows)

    def table(self) -> Table:
        """Return it as a table of rich, so narrow that the names of operators stay whole in 80 columns."""
        title = f"products: {self.exact} exact, {self.unseen} unseen (in fp32), {self.refused} refused"
        table = Table(title=title, box=None, padding=(0, 1, 0, 0), pad_edge=False)
        table.add_column("module and pass, and its operators", overflow="fold", min_width=1 + _widest(self.rows))
        for heading in ("exact", "unseen", "refused"):
            table.add_column(heading, justify="right", no_wrap=True)
        place = None
        for row in self.rows:
            if place != (place := (row.module, row.run)):
                table.add_row(Text(f"{row.module or '(the whole)'}, {row.run}"))
            style = None if not row.unseen + row.refused else "bold red"
            table.add_row(Text(f" {row.operator}"), *(str(each) if each else "" for each in row[3:]), style=style)
        return table

    def _print(self) -> None:
        """Print the table, wider than the terminal where the name of an operator is."""
        needed = 1 + _widest(self.rows) + len(" exact unseen refused")
        Console(width=max(Console().width, needed)).print(self.table())


def _widest(rows: list[AuditRow]) -> int:
    return max((len(row.operator) for row in rows), default=0)


class Recorder:
    """Follows the modules of a model that run, and counts products by module, pass and operator."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str, str], Counter[str]] = {}
        self.module = ""
        self.around: list[str] = []  # the modules around it
        self.made_by: Timeline[str] = Timeline()

    def exact(self, operator: Any, args: tuple[Any, ...]) -> None:
        """Count a product of the exact kernels, before it runs."""
        self._count(operator, "exact")

    def pytorchs(self, operator: Any, settings: Settings | None) -> None:
        """Count a product of PyTorch's."""
        is_refused = settings is not None and settings.enabled and settings.unseen == "error"
        self._count(operator, "refused" if is_refused else "unseen")

    def place(self) -> tuple[str, str]:
        """Return the module and the pass to which what runs belongs."""
        node = torch._C._current_autograd_node()
        if node is None:
            return self.module, "forward"
        if self.around:  # a module runs in the middle of a backward pass
            return self.module, "recomputation"
        number = node._sequence_nr()
        return (self.made_by.at(number) if number != _OF_A_LEAF else None) or "", "backward"

    def _count(self, operator: Any, what: str) -> None:
        module, run = self.place()
        self.found.setdefault((module, run, operator_name(operator)), Counter())[what] += 1

    @contextmanager
    def following(self, model: nn.Module | None) -> Iterator[None]:
        """Note which module runs, and which made a node of the graph."""
        names = {} if model is None else {each: name for name, each in model.named_modules()}

        def enter(module: nn.Module, *_: Any) -> None:
            self.around.append(self.module)
            self._now(names.get(module, type(module).__name__))

        def leave(*_: Any) -> None:
            self._now(self.around.pop())

        hooks = []
        if not any(is_compiled(each) for each in names):  # compiled code has no modules
            hooks = [
                nn.modules.module.register_module_forward_pre_hook(enter),
                nn.modules.module.register_module_forward_hook(leave, always_call=True),
            ]
        scopes.recorder, outside = self, scopes.recorder
        watch()
        try:
            yield
        finally:
            unwatch()
            scopes.recorder = outside
            for hook in hooks:
                hook.remove()

    def _now(self, module: str) -> None:
        self.module = module
        self.made_by.note(module)


def audit(target: Callable[..., Any], *args: Any, backward: bool = True, show: bool = True, **kwargs: Any) -> Audit:
    """Run a model, or any callable, once, and tell which of its products are exact.

    A module runs in the precision in force, in its own (`golden.torch.amp.initialize`), or else with the half type of
    `golden.torch.set_half_dtype`; another callable runs as it is. It leaves no trace: parameters, gradients, buffers
    and random generators keep their values.

    Parameters
    ----------
    target : nn.Module or callable
        What to run.
    *args, **kwargs
        Its arguments.
    backward : bool
        Whether to run the backward pass of the sum of all floating-point results, too.
    show : bool
        Whether to print the table.

    Returns
    -------
    Audit
        With counts `exact`, `unseen`, `refused`, and `rows` by module, pass and operator.

    Raises
    ------
    TypeError
        If `target` is not callable, or `backward` or `show` not a bool.
    """
    if not callable(target):
        raise TypeError(f"target: got {target!r}, must be a module or another callable")
    for name, given in (("backward", backward), ("show", show)):
        if not isinstance(given, bool):
            raise TypeError(f"{name}: got {given!r}, must be True or False")
    owner = target if isinstance(target, nn.Module) else getattr(target, "__self__", None)
    model = owner if isinstance(owner, nn.Module) else None
    recorder = Recorder()
    with unchanged(model, args, kwargs), recorder.following(model):
        with _precision_of(target), torch.set_grad_enabled(backward and torch.is_grad_enabled()):
            results = _tensors(target(*args, **kwargs))
        results = [each for each in results if each.requires_grad]
        if backward and results:
            with _gradients_kept(results):
                _total(results).backward()
    found = Audit(
        [AuditRow(*key, *(n[each] for each in ("exact", "unseen", "refused"))) for key, n in recorder.found.items()]
    )
    if show:
        found._print()
    return found


def is_compiled(module: nn.Module) -> bool:
    """Return whether torch.compile runs a module."""
    return hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None


def _precision_of(target: Any) -> AbstractContextManager[Any]:
    is_bare = isinstance(target, nn.Module) and not scopes.precisions and not is_initialized(target)
    return precision() if is_bare else nullcontext()


def _tensors(given: Any) -> list[Tensor]:
    return [each for each in torch.utils._pytree.tree_leaves(given) if isinstance(each, Tensor)]


def _total(results: list[Tensor]) -> Tensor:
    sums = [each.abs().sum() if each.is_complex() else each.sum() for each in results]
    return torch.stack([each.to(torch.float32) for each in sums]).sum()


@contextmanager
def _gradients_kept(results: list[Tensor]) -> Iterator[None]:
    """Set the gradients of all leaves of a graph aside."""
    roots = [each.grad_fn or torch.autograd.graph.get_gradient_edge(each).node for each in results]
    leaves = [node.variable for node in nodes(*roots) if hasattr(node, "variable")]
    with _set_aside(leaves):
        yield


@contextmanager
def _set_aside(leaves: list[Tensor]) -> Iterator[None]:
    gradients = [leaf.grad for leaf in leaves]
    for leaf in leaves:
        leaf.grad = None
    try:
        yield
    finally:
        for leaf, gradient in zip(leaves, gradients, strict=True):
            leaf.grad = gradient


@contextmanager
def unchanged(model: nn.Module | None, args: Any, kwargs: Any) -> Iterator[None]:
    """Restore everything that a run changes: gradients, buffers, generators, numbers of products, notes of guards."""
    leaves = [each for each in _tensors((args, kwargs)) if each.is_leaf and each.requires_grad]
    modules = [] if model is None else list(model.modules())
    leaves += [] if model is None else list(model.parameters())
    buffers = [
        (module, name, each, None if each is None else each.detach().clone())
        for module in modules
        for name, each in module._buffers.items()
    ]
    state, numbers = capture(()), taken()
    with unnoted(), _set_aside(list({id(each): each for each in leaves}.values())):
        try:
            yield
        finally:
            restore(state, ())
            rewound(numbers)
            for module, name, buffer, values in buffers:
                module._buffers[name] = buffer
                if buffer is not None and values is not None:
                    with torch.no_grad(), contextlib.suppress(RuntimeError):
                        buffer.copy_(values)
