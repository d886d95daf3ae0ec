"""Devices that earlier versions described wrongly, found by an outside review."""

from dataclasses import replace

import numpy as np
import pytest

import golden
from golden import BF16, FP32, Reduction
from golden.identification import identify
from golden.identification.identify import all_probes, concluded

VERIFY = 2000


def exact(a, b, **options):
    return golden.matmul(a, b, operand=BF16, level=0, **options)


def values(codes):
    return golden.decode(codes, BF16).astype(np.float32)


def added(parts):
    """Return the sum of partial sums in float32, one after the other."""
    total, *others = (golden.decode(part, FP32) for part in parts)
    with np.errstate(all="ignore"):
        for each in others:
            total = (total + each).astype(np.float32)
    return golden.encode(total, FP32)


def halves(a, b):
    half = a.shape[1] // 2
    return added([exact(a[:, :half], b[:half]), exact(a[:, half:], b[half:])])


def split_where_long(a, b):
    """Add two halves of a sum where it has 1024 products and more, a multiple of 8, as libraries do."""
    return exact(a, b) if a.shape[1] < 1024 or a.shape[1] % 8 else halves(a, b)


def other_mode_where_large(a, b):
    return exact(a, b, rounding="toward_zero" if min(a.shape[0], b.shape[1]) >= 256 else "nearest_even")


def zeros_skipped(a, b):
    """Leave out the products of a zero, also with infinity or NaN, as sparse accelerators do."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    with np.errstate(all="ignore"):
        for x, y in zip(values(a).T[:, :, np.newaxis], values(b)[:, np.newaxis], strict=True):
            total = np.where(x == 0, total, total + x * y)
    return np.where(np.isnan(total), FP32.nan, total.view(np.uint32)).astype(np.uint32)


@pytest.mark.turns
@pytest.mark.parametrize("device", [split_where_long, other_mode_where_large, zeros_skipped])
def test_identify_device_with_a_rule_of_its_own_for_some_products_has_no_model(device):
    assert identify(device, operand=BF16, verify=VERIFY).model is None


def lanes(count):
    def device(a, b):
        return added([exact(a[:, lane::count], b[lane::count]) for lane in range(count)])

    return device


def reversed_chain(a, b):
    return exact(a[:, ::-1], b[::-1])


def rule(name, **changes):
    chosen = replace(golden.accumulators[name], **changes)
    return lambda a, b: golden.matmul(a, b, operand=BF16, reduction=chosen)


def chunks(length):
    return lambda a, b: golden.matmul(a, b, operand=BF16, level=1, chunk=length)


@pytest.mark.turns
@pytest.mark.parametrize(
    ("device", "words"),
    [
        (lanes(2), "several partial sums, not of neighbours"),
        (lanes(8), "not one product after the other"),
        (halves, "partial sums of 272 products in a sum of 544; other lengths may have others"),
        (reversed_chain, "not found."),
        (rule("arm_bfdot_ebf16"), "blocks of 2 products."),
        (rule("x86_vdpbf16ps"), "blocks of 2 products."),
        (rule("nvidia_hopper", promote_every=256), "partial sums of 256 products"),
        (chunks(136), "partial sums of 136 products"),
        (chunks(200), "partial sums of 200 products"),
        (chunks(300), "partial sums of 300 products"),
    ],
    ids=["2 lanes", "8 lanes", "halves", "reversed", "pairs", "chain", "blocks", "136", "200", "300"],
)
def test_identify_order_is_said_as_far_as_the_sums_show_it(device, words):
    first = identify(device, operand=BF16, verify=0).findings[0]
    assert first.statement.startswith(f"Order: {words}")


@pytest.mark.turns
@pytest.mark.parametrize("length", [200, 256, 512])
def test_identify_long_chunks_are_found(length):
    found = identify(chunks(length), operand=BF16, verify=VERIFY)
    assert found.model == Reduction(BF16, length, FP32, operand=BF16, out=FP32)


def test_identify_without_a_device_counts_sums_that_are_random_and_differ():
    asked = all_probes(BF16, 0)
    answers = [(probe, exact(probe.a, probe.b)) for probe in asked]
    found = concluded(answers, BF16, FP32)
    assert found.model == Reduction(FP32, None, FP32, operand=BF16, out=FP32)
    hard = [result.size for probe, result in answers if probe.name in ("whole", "shape")]
    assert found.verified == sum(hard) < sum(result.size for _, result in answers) / 2


def test_identify_columns_at_an_edge_that_are_cut_are_not_said_to_round_at_random():
    def device(a, b):
        sums = golden.decode(exact(a, b), FP32)
        inside, edge = (golden.encode(sums, BF16, rounding=mode) for mode in ("nearest_even", "toward_zero"))
        return np.where(np.arange(b.shape[1]) < 12, inside, edge)

    found = identify(device, operand=BF16, verify=VERIFY)
    said = [each.statement for each in found.findings]
    assert found.model is None
    assert "Results depend on their place." in said
    assert not any(each.startswith("Rounding is random") for each in said)
