"""Does an operator multiply and sum? By the table, by PyTorch's own marks, or by a library's declaration."""

from __future__ import annotations

import os
import re
from typing import Any, Literal

import torch
from torch._library.custom_ops import OPDEFS
from torch.utils.flop_counter import flop_registry

from golden.torch.common.arguments import check_flags
from golden.torch.guard.operator_table import PRODUCTS
from golden.torch.guard.other_operators import OTHERS

__all__ = [
    "OperatorKind",
    "declare_operator",
    "is_of_pytorch",
    "kind_of_operator",
    "operator_name",
    "unclassified_operators",
]

#: "exact": a product by this package. "composed": of others, which are seen in turn. "weighted": a product where it is
#: given weights per sample. "unknown": of another library, or of a PyTorch newer than the table.
OperatorKind = Literal["exact", "product", "weighted", "composed", "other", "unknown"]


def _full_names(table: dict[str, str]) -> frozenset[str]:
    return frozenset(f"{space}::{name}" for space, names in table.items() for name in names.split())


_PRODUCTS = _full_names(PRODUCTS)
_OTHERS = _full_names(OTHERS)
_OURS = "cbfloat::"
_MARKS = frozenset({"pointwise", "reduction", "view_copy", "inplace_view"})
#: Higher-order operators, which take functions: what these call is compiled or fused and not seen.
_HIGHER_ORDER_PRODUCTS = frozenset({"flex_attention", "flex_attention_backward"})
_declared: dict[str, bool] = {}


def declare_operator(name: str, *, product: bool) -> None:
    """Say whether an operator of another library multiplies and sums; a precision context refuses it until then.

    Parameters
    ----------
    name : str
        As in ``"torchvision::nms"``; all overloads are meant.
    product : bool
        True: it is treated as PyTorch's own products are. False: it runs as it is.

    Raises
    ------
    TypeError
        If `name` is not a string, or `product` not a bool.
    ValueError
        If `name` is not of the form ``library::operator``, or an operator of PyTorch or of this package.
    """
    if not isinstance(name, str):
        raise TypeError(f"name: got {name!r}, must be a string such as 'torchvision::nms'")
    check_flags(product=product)
    space, _, operator = name.partition("::")
    if not space.isidentifier() or not operator.isidentifier():
        raise ValueError(f"name: got {name!r}, must be library::operator, such as 'torchvision::nms'")
    if name.startswith(_OURS) or is_of_pytorch(name):
        raise ValueError(f"name: got {name!r}, which is known already; must be an operator of another library")
    _declared[name] = product
    for each in [each for each in _kinds if operator_name(each) == name]:
        del _kinds[each]


#: A part of the paths of PyTorch's own sources of operators; and its files that register operators of others, too.
_SOURCES = "/torch/csrc/", "/aten/src/ATen/"
_FOLDER, _FOR_OTHERS = f"{os.path.dirname(torch.__file__)}{os.sep}", ("custom_ops.py", "library.py")


def is_of_pytorch(name: str) -> bool:
    """Return whether an operator is in a namespace of PyTorch: in the tables, or registered by PyTorch."""
    space = name.partition("::")[0]
    if space in PRODUCTS or space in OTHERS:
        return True
    registered = torch._C._dispatch_get_all_op_names()
    return any(_is_registered_by_pytorch(each) for each in registered if each.startswith(f"{space}::"))


def _is_registered_by_pytorch(full_name: str) -> bool:
    definition = OPDEFS.get(full_name)  # one in Python, by torch.library.custom_op
    if definition is not None:
        return definition._init_fn.__module__.partition(".")[0] == "torch"
    found = re.search(r"^debug: registered at (.*):\d+", torch._C._dispatch_dump(full_name), re.MULTILINE)
    if found is None:
        return False
    is_in_folder = found[1].startswith(_FOLDER) and not found[1].endswith(_FOR_OTHERS)
    return is_in_folder or any(each in found[1] for each in _SOURCES)


def operator_name(operator: Any) -> str:
    """Return ``library::operator`` of an operator of PyTorch, without its overload."""
    schema = getattr(operator, "_schema", None)
    return f"higher_order::{operator.name()}" if schema is None else schema.name


def kind_of_operator(operator: Any) -> OperatorKind:
    """Return the kind of an operator: one overload, or a higher-order operator."""
    kind = _kinds.get(operator)
    if kind is None:
        kind = _kinds[operator] = _kind_of(operator)
    return kind


_kinds: dict[Any, OperatorKind] = {}


def _kind_of(operator: Any) -> OperatorKind:
    name = operator_name(operator)
    if name.startswith("higher_order::"):
        return "product" if operator.name() in _HIGHER_ORDER_PRODUCTS else "composed"
    if name.startswith(_OURS):
        # A product has a formula for its operations; `golden.torch` registers them.
        return "exact" if operator.overloadpacket in flop_registry else "other"
    if name.startswith("prim::"):  # of TorchScript: properties of tensors, control flow
        return "other"
    in_table = name if name.endswith("__") or not name.endswith("_") else name[:-1]
    if name in _declared:
        return "product" if _declared[name] else "other"
    if name in _PRODUCTS or in_table in _PRODUCTS:
        return "product"
    if any(argument.name == "per_sample_weights" for argument in operator._schema.arguments):
        return "weighted"
    if in_table in _OTHERS or _is_marked(name) or _is_marked(in_table):
        return "other"
    try:
        is_composed = torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), "CompositeImplicitAutograd")
    except RuntimeError:  # of TorchScript alone, such as a property of a tensor
        return "other"
    return "composed" if is_composed else "unknown"


def _is_marked(name: str) -> bool:
    """Return whether PyTorch marks an overload of this name as an operator that sums no products."""
    space, _, operator = name.partition("::")
    packet = getattr(getattr(torch.ops, space), operator, None)
    overloads = [] if packet is None else [getattr(packet, each) for each in packet.overloads()]
    return any(tag.name in _MARKS for each in overloads for tag in each.tags)


def unclassified_operators() -> list[str]:
    """Return the operators in the registry of the installed PyTorch that no rule covers, other libraries' included."""
    found = set()
    for full_name in torch._C._dispatch_get_all_op_names():
        space, _, rest = full_name.partition("::")
        name, _, overload = rest.partition(".")
        operator = getattr(getattr(getattr(torch.ops, space), name), overload or "default")
        if kind_of_operator(operator) == "unknown":
            found.add(f"{space}::{name}")
    return sorted(found)
