"""Products made of several others: groups, bilinear forms, chains, powers, in place; each against products on codes."""

import pytest
import torch
import torch.nn.functional as F

import golden
import golden.torch as cstorch
from golden.torch.products.functions import derived
from golden.torch.products.operators import registered as operators

from .oracle import assert_codes, assert_same_tensors, codes, normal, product, sum_of_codes

HALF, LEVEL, CHUNK = "cbfloat16", 1, 5


def exact(a, b, initial=None):
    """Values of a product of the contract."""
    return torch.from_numpy(golden.decode(product(a, b, HALF, LEVEL, CHUNK, initial), HALF))


def in_context(function, *given):
    with cstorch.precision(HALF, LEVEL, chunk=CHUNK):
        return function(*given)


ENDS = [0, 4, 4, 9]
GROUPS = {
    "rows": ((11, 6), (4, 6, 5)),
    "columns": ((4, 3, 6), (6, 11)),
    "k": ((3, 11), (11, 5)),
}


def parts_of(form, a, b):
    """The pair of matrices of every group."""
    slices = [slice(start, end) for start, end in zip([0, *ENDS], ENDS, strict=False)]
    if form == "rows":
        return [(a[rows], b[group]) for group, rows in enumerate(slices)]
    if form == "columns":
        return [(a[group], b[:, columns]) for group, columns in enumerate(slices)]
    return [(a[:, inner], b[inner]) for inner in slices]


@pytest.mark.parametrize("form", GROUPS)
def test_grouped_mm_is_a_product_for_every_group_and_so_are_its_gradients(form):
    shapes = GROUPS[form]
    a, b = normal(*shapes[0], seed=1, grad=True), normal(*shapes[1], seed=2, grad=True)
    offs = torch.tensor(ENDS, dtype=torch.int32)
    result = in_context(lambda: derived.grouped_mm(a, b, offs=offs))
    upstream = normal(*result.shape, seed=3)
    result.backward(upstream)
    parts = parts_of(form, a.detach(), b.detach())
    axis = {"rows": 0, "columns": 1, "k": None}[form]
    if axis is None:
        wanted = torch.stack([exact(*pair) for pair in parts])
        of_parts = list(upstream)
    else:
        wanted = torch.cat([exact(*pair) for pair in parts], axis)
        assert (result.narrow(axis, 9, 2) == 0).all()
        of_parts = [upstream[rows] if axis == 0 else upstream[:, rows] for rows in map(slice, [0, *ENDS[:-1]], ENDS)]
        result = result.narrow(axis, 0, 9)
    assert_same_tensors(result.detach(), wanted)
    whole = (torch.zeros_like(a), torch.zeros_like(b))
    for (left, right), pair, gradient in zip(parts, parts_of(form, *whole), of_parts, strict=True):
        pair[0].copy_(exact(gradient, right.T))
        pair[1].copy_(exact(left.T, gradient))
    assert_same_tensors(a.grad, whole[0])
    assert_same_tensors(b.grad, whole[1])


@pytest.mark.parametrize("form", GROUPS)
def test_grouped_mm_has_the_second_derivatives_of_a_product_for_every_group(form):
    def one_by_one(a, b):
        parts = [cstorch.matmul(*pair) for pair in parts_of(form, a, b)]
        if form == "k":
            return torch.stack(parts)
        axis = 0 if form == "rows" else 1
        return torch.cat([*parts, torch.zeros_like(parts[1].narrow(axis, 0, 2))], axis)

    def second(function):
        a, b = (normal(*shape, seed=seed, grad=True) for seed, shape in enumerate(GROUPS[form], 31))
        result = in_context(function, a, b)
        upstream = normal(*result.shape, seed=33, grad=True)
        first = torch.autograd.grad(result, (a, b), upstream, create_graph=True)
        return torch.autograd.grad(first, (a, b, upstream), [normal(*each.shape, seed=34) for each in first])

    ends = torch.tensor(ENDS)
    for got, wanted in zip(second(lambda a, b: derived.grouped_mm(a, b, ends)), second(one_by_one), strict=True):
        assert_same_tensors(got, wanted)


def test_grouped_mm_in_vmap_runs_every_item_on_its_own():
    a, b, ends = normal(2, 5, 6, seed=35), normal(3, 6, 4, seed=36), torch.tensor([1, 1, 4])
    got = in_context(torch.vmap(lambda rows: derived.grouped_mm(rows, b, ends)), a)
    assert_same_tensors(got, torch.stack([in_context(derived.grouped_mm, rows, b, ends) for rows in a]))


def test_grouped_mm_of_batches_is_bmm_and_starts_from_the_bias():
    a, b, bias = normal(3, 4, 6, seed=4), normal(3, 6, 5, seed=5), normal(3, 5, seed=6)
    got = in_context(lambda: derived.grouped_mm(a, b))
    assert_same_tensors(got, exact(a, b))
    got = in_context(lambda: derived.grouped_mm(a, b, bias=bias, out_dtype=torch.bfloat16))
    assert_same_tensors(got, exact(a, b, bias[:, None]).bfloat16())
    rows = in_context(lambda: derived.grouped_mm(a[0], b, offs=torch.tensor([1, 1, 4]), bias=bias))
    assert_same_tensors(rows, torch.cat([exact(a[0, :1], b[0], bias[0]), exact(a[0, 1:], b[2], bias[2])]))


@pytest.mark.parametrize("name", ["_grouped_mm", "grouped_mm"])
def test_grouped_mm_of_pytorch_comes_near_in_bfloat16_at_level_0(name):
    function = getattr(torch, name, None) or getattr(F, name)
    a, b = normal(7, 16, seed=7).bfloat16(), normal(3, 16, 8, seed=8).bfloat16()
    offs = torch.tensor([2, 2, 7], dtype=torch.int32)
    with cstorch.precision("bfloat16", level=0):
        got = function(a, b, offs=offs)
        assert_same_tensors(got, derived.grouped_mm(a, b, offs))
    wanted = function(a, b, offs=offs)
    assert got.shape == wanted.shape
    assert (got.float() - wanted.float()).abs().max() <= 2**-7 * wanted.float().abs().max()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mat_b": torch.ones(2, 5, 3)}, r"^mat_a, mat_b: got shapes \(4, 6\) and \(2, 5, 3\)"),
        ({"offs": None}, r"^offs: got None for operands of \(2, 3\) axes"),
        ({"offs": torch.tensor([1, 2, 4])}, r"^offs: got a tensor of torch.int64 and shape \(3,\), must have one"),
        ({"offs": torch.tensor([1.0, 4.0])}, r"^offs: got a tensor of torch.float32"),
        ({"offs": torch.tensor([3, 2])}, r"^offs: got \[3, 2\], must ascend from at least 0 to at most 4"),
        ({"offs": torch.tensor([3, 5])}, r"^offs: got \[3, 5\]"),
        ({"mat_a": torch.ones(3, 4, 6), "offs": None}, r"^mat_b: got 2 groups, must be the 3"),
    ],
)
def test_grouped_mm_of_bad_arguments_names_them(arguments, message):
    given = {"mat_a": torch.ones(4, 6), "mat_b": torch.ones(2, 6, 3), "offs": torch.tensor([1, 4]), **arguments}
    with pytest.raises(ValueError, match=message):
        derived.grouped_mm(given["mat_a"], given["mat_b"], offs=given["offs"])


def test_bilinear_is_two_products_and_its_gradients_exact():
    layer = torch.nn.Bilinear(4, 6, 3)
    x, y = normal(2, 5, 4, seed=9, grad=True), normal(2, 5, 6, seed=10, grad=True)
    result = in_context(layer, x, y)
    weight, bias = layer.weight.detach(), layer.bias.detach()
    rows, others = x.detach().reshape(10, 4), y.detach().reshape(10, 6)
    forms = exact(others, weight.flatten(0, 1).T).unflatten(-1, (3, 4))
    wanted = torch.stack(
        [exact(form, row[:, None], bias[:, None])[:, 0] for form, row in zip(forms, rows, strict=True)]
    )
    assert_same_tensors(result.detach().reshape(10, 3), wanted)
    upstream = normal(10, 3, seed=11)
    result.backward(upstream.reshape(2, 5, 3))
    of_x = [exact(form.T, row[:, None])[:, 0] for form, row in zip(forms, upstream, strict=True)]
    assert_same_tensors(x.grad.reshape(10, 4), torch.stack(of_x))
    of_forms = torch.stack([exact(row[:, None], each[None]) for row, each in zip(upstream, rows, strict=True)])
    of_forms = of_forms.flatten(1)
    assert_same_tensors(y.grad.reshape(10, 6), exact(of_forms, weight.flatten(0, 1)))
    assert_same_tensors(layer.weight.grad.flatten(0, 1), exact(of_forms.T, others))
    assert_codes(layer.bias.grad, sum_of_codes(codes(upstream, HALF), HALF), HALF)


A, B, C = normal(4, 6, seed=12), normal(6, 6, seed=13), normal(6, 3, seed=14)


@pytest.mark.filterwarnings("ignore:torch.chain_matmul is deprecated")
@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (lambda: torch.linalg.multi_dot([A, B, C]), lambda: exact(exact(A, B), C)),
        (lambda: torch.linalg.multi_dot([A[0], B, C[:, 0]]), lambda: exact(exact(A[:1], B), C[:, :1])[0, 0]),
        (lambda: torch.chain_matmul(A, B, C), lambda: exact(exact(A, B), C)),
        (lambda: torch.linalg.vecdot(A, B[0]), lambda: exact(A, B[:1].T)[:, 0]),
        (lambda: torch.linalg.vecdot(B[:, :1], C, dim=0), lambda: exact(B[:, :1].T, C)[0]),
        (lambda: torch.matrix_power(B, 1), lambda: torch.from_numpy(golden.quantize(B.numpy(), HALF))),
        (lambda: B.matrix_power(0), lambda: torch.eye(6)),
        (lambda: torch.linalg.matrix_power(B[None], 2)[0], lambda: exact(B, B)),
        (lambda: torch.linalg.matrix_power(B, 3), lambda: exact(B, exact(B, B))),
        (
            lambda: torch.linalg.matrix_power(B, 6),
            lambda: exact(exact(B, B), exact(exact(B, B), exact(B, B))),
        ),
        (lambda: B[:4, :3].clone().addmm_(A, C), lambda: exact(A, C, B[:4, :3])),
        (lambda: B[0, :4].clone().addmv_(A, C[:, 0]), lambda: exact(A, C[:, :1], B[0, :4, None])[:, 0]),
        (
            lambda: B[None, :4, :3].repeat(2, 1, 1).baddbmm_(A.repeat(2, 1, 1), C.repeat(2, 1, 1))[1],
            lambda: exact(A, C, B[:4, :3]),
        ),
        (lambda: B[:4, :3].clone().addbmm_(A[None], C[None]), lambda: exact(A, C, B[:4, :3])),
    ],
)
def test_chains_powers_and_sums_in_place_are_products_of_the_contract(call, wanted):
    got = in_context(call)
    assert_same_tensors(got, wanted())
    plain = call()
    assert plain.shape == got.shape
    assert (plain - got).abs().max() <= 0.02 * plain.abs().max()


def test_addmm_in_place_keeps_dtype_and_gradients():
    start, a, b = normal(4, 3, seed=15, grad=True), normal(4, 6, seed=16, grad=True), normal(6, 3, seed=17)
    with cstorch.precision("float16", level=2):
        total = start.clone()
        same = total.addmm_(a, b, beta=0.5)
        same.sum().backward()
        wanted = torch.addmm(start, a, b, beta=0.5)
        (of_start,) = torch.autograd.grad(wanted.sum(), start)
    assert same is total
    assert total.dtype == torch.float32
    assert_same_tensors(total.detach(), wanted.detach().float())
    assert_same_tensors(start.grad, of_start)
    assert_codes(a.grad, product(torch.ones(4, 3), b.T, "float16", 2), "float16")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: torch.linalg.matrix_power(B, -1), NotImplementedError, r"^n: got -1, must be at least 0; an inverse"),
        (lambda: torch.linalg.matrix_power(A, 2), ValueError, r"^A: got shape \(4, 6\)"),
        (lambda: torch.linalg.multi_dot([A]), ValueError, r"^tensors: got 1, must be at least two"),
        (lambda: torch.linalg.multi_dot([A, B[0], C]), ValueError, r"^tensors: got \[2, 1, 2\] axes"),
        (lambda: torch.linalg.vecdot(A, B[0, :4]), ValueError, r"^x, y: got shapes \(4, 6\) and \(4,\)"),
        (lambda: F.bilinear(A, B, torch.ones(3, 6, 6)), ValueError, r"^input1, input2, weight: got shapes \(4, 6\)"),
    ],
)
def test_products_of_several_of_bad_arguments_name_them(call, error, message):
    with cstorch.precision(HALF), pytest.raises(error, match=message):
        call()


def test_derived_products_round_their_operands_once():
    with cstorch.precision(HALF, level=0):
        got = torch.linalg.matrix_power(B, 2)
        assert_same_tensors(got, torch.matmul(*[operators.rounded(B, HALF, torch.float32)] * 2))
