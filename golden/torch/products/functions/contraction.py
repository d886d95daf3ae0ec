"""Exact sums of products over named axes: einsum, tensordot and the functions built on them.

Defined here: operands are contracted in pairs from left to right, each result rounded to the half format. Axes that are
summed together are one k, in the order in which they stand in the left operand. An axis that only one operand of a pair
has, and nothing needs later, is summed first, in fp32.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

import torch

from golden.torch.common.pytorch import constant
from golden.torch.products.functions.products import check_tensors, product

__all__ = ["contract", "einsum"]

_Labels = tuple[Hashable, ...]


def einsum(equation: str, *operands: torch.Tensor | Sequence[torch.Tensor]) -> torch.Tensor:
    """Exact `torch.einsum` of an equation such as ``"bik,kj->bij"``.

    Parameters
    ----------
    equation : str
        Letters for axes, ``...`` for those that broadcast; without ``->`` the letters that occur once remain, sorted.
    operands : float32, float16 or bfloat16 tensors, or one list of them

    Returns
    -------
    tensor of the half dtype, or of the operand's where there is but one operand and so no product

    Raises
    ------
    TypeError
        If an operand is not a dense tensor of such a dtype.
    ValueError
        If the equation does not fit the operands, or they are not on one device.
    """
    if not isinstance(equation, str):
        raise TypeError(f"equation: got {equation!r}, must be a string such as 'ij,jk->ik'")
    tensors: list[torch.Tensor] = []
    for number, operand in enumerate(operands):
        if not isinstance(operand, torch.Tensor | list | tuple):
            raise TypeError(f"operand {number}: got {type(operand).__name__}, must be a torch.Tensor")
        tensors.extend([operand] if isinstance(operand, torch.Tensor) else operand)
    check_tensors(**{f"operand {number}": tensor for number, tensor in enumerate(tensors)})
    if len(tensors) == 1:
        return torch.einsum(equation, tensors)
    labels, output = _parsed(equation, tuple(tensor.ndim for tensor in tensors))
    left, left_labels = _diagonal(tensors[0], labels[0])
    for number in range(1, len(tensors)):
        right, right_labels = _diagonal(tensors[number], labels[number])
        later = {label for rest in labels[number + 1 :] for label in rest} | set(output)
        left, left_labels = contract(left, left_labels, right, right_labels, later)
    return left.permute([left_labels.index(label) for label in output])


@constant  # of strings and numbers of axes alone
def _parsed(equation: str, axes: tuple[int, ...]) -> tuple[list[_Labels], _Labels]:
    """Return the labels of every operand's axes and of the result's; axes of ``...`` are numbered from the right."""
    inputs, arrow, result = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(axes):
        raise ValueError(f"equation: got {equation!r} with {len(terms)} operands, must have {len(axes)} as given")
    labels = [_term(term, equation, ndim) for term, ndim in zip(terms, axes, strict=True)]
    broadcast = max((sum(isinstance(label, int) for label in term) for term in labels), default=0)
    ellipsis: _Labels = tuple(range(broadcast, 0, -1))
    if arrow:
        output = _term(result, equation, None if "..." not in result else len(result) - 3 + broadcast)
    else:
        counts = Counter(letter for term in terms for letter in term if letter.isalpha())
        output = (*ellipsis, *sorted(letter for letter, count in counts.items() if count == 1))
    known = {label for term in labels for label in term}
    if len(set(output)) != len(output) or not set(output) <= known:
        raise ValueError(f"equation: got {equation!r}, must have every label of its result once, and in an operand")
    return labels, output


def _term(term: str, equation: str, ndim: int | None) -> _Labels:
    before, dots, after = term.partition("...")
    letters = before + after
    if not all(letter.isascii() and letter.isalpha() for letter in letters):
        raise ValueError(f"equation: got {equation!r}, must consist of letters, '...', ',' and one '->'")
    hidden = 0 if ndim is None else ndim - len(letters)
    if hidden < 0 or (hidden > 0 and not dots):
        raise ValueError(f"equation: got {equation!r}, in which {term!r} names {len(letters)} axes, must name {ndim}")
    return (*before, *range(hidden, 0, -1), *after)


def _diagonal(x: torch.Tensor, labels: _Labels) -> tuple[torch.Tensor, _Labels]:
    """Take the diagonal of axes with one label."""
    for label in [label for label, count in Counter(labels).items() if count > 1]:
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            x = x.diagonal(dim1=first, dim2=second)  # the diagonal becomes the last axis
            rest = [each for axis, each in enumerate(labels) if axis not in (first, second)]
            labels = (*rest, label)
    return x, labels


def contract(
    x: torch.Tensor, x_labels: _Labels, y: torch.Tensor, y_labels: _Labels, keep: Iterable[Hashable]
) -> tuple[torch.Tensor, _Labels]:
    """Multiply two tensors and sum over the labels that are not kept; axes of length 1 broadcast.

    Returns
    -------
    tensor, labels
        The product and the labels of its axes: those of both operands, of `x` alone, of `y` alone.
    """
    kept = set(keep)
    x, x_labels = _without_lone_axes(x, x_labels, kept | set(y_labels))
    y, y_labels = _without_lone_axes(y, y_labels, kept | set(x_labels))
    shared = [label for label in x_labels if label in y_labels]
    sizes = dict(zip(y_labels, y.shape, strict=True))
    for label, size in zip(x_labels, x.shape, strict=True):
        if 1 not in (size, sizes.get(label, size)) and sizes.get(label, size) != size:
            raise ValueError(f"operands: got lengths {size} and {sizes[label]} for axis {label!r}, must be equal, or 1")
        sizes[label] = sizes[label] if size == 1 and label in sizes else size
    batch = [label for label in shared if label in kept]
    summed = [label for label in shared if label not in kept]
    only_x = [label for label in x_labels if label not in shared]
    only_y = [label for label in y_labels if label not in shared]
    a = _grouped(x, x_labels, sizes, [batch, only_x, summed])
    b = _grouped(y, y_labels, sizes, [batch, summed, only_y])
    # Without a batch axis a product of matrices: the gradients are then one reduction each.
    result = product(a, b) if batch else product(a.squeeze(0), b.squeeze(0))
    labels = (*batch, *only_x, *only_y)
    return result.reshape([sizes[label] for label in labels]), labels


def _without_lone_axes(x: torch.Tensor, labels: _Labels, needed: set[Hashable]) -> tuple[torch.Tensor, _Labels]:
    lone = [axis for axis, label in enumerate(labels) if label not in needed]
    if not lone:
        return x, labels
    return x.float().sum(lone), tuple(label for label in labels if label in needed)


def _grouped(
    x: torch.Tensor, labels: _Labels, sizes: dict[Hashable, int], groups: list[list[Hashable]]
) -> torch.Tensor:
    """Bring the axes into groups, and each group into one axis."""
    order = [label for group in groups for label in group]
    x = x.permute([labels.index(label) for label in order]).expand([sizes[label] for label in order])
    return x.reshape([math.prod([sizes[label] for label in group]) for group in groups])
