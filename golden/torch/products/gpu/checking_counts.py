"""Before a card's counts are used, a first product is compared with the CPU, number by number."""

from __future__ import annotations

import numpy as np
import torch

import golden
from golden.cuda.counting import NUMBERS, SLOTS, Wanted, counted_launch, counts_of, exponents_launch
from golden.cuda.launching import Device
from golden.cuda.plan import FLOAT32, Arrays
from golden.flags import EVENTS
from golden.reduction import Reduction
from golden.torch.products.gpu.checking import complaint, drawn_operands, in_hex, launch
from golden.torch.products.gpu.devices import matrix_of

__all__ = ["check_counts", "check_exponents"]

_ROWS, _LENGTH = 320, 40  # longer than a chunk


def check_counts(card: Device, device: torch.device, reduction: Reduction) -> None:
    """Compare the results of a product that counts, and the counts of each of them, with the CPU's."""
    generator = np.random.default_rng(3)
    a, b = (drawn_operands(generator, reduction.factors, shape) for shape in ((_ROWS, _LENGTH), (_LENGTH, _ROWS)))
    x, y = (torch.from_numpy(each).to(device) for each in (a, b))
    result = torch.empty((_ROWS, _ROWS), dtype=torch.float32, device=device)
    numbers = torch.zeros((NUMBERS, _ROWS, _ROWS), dtype=torch.int64, device=device)
    arrays = Arrays((), (_ROWS, _LENGTH, _ROWS), *map(matrix_of, (x, y, result)))
    made = counted_launch(reduction, arrays, Wanted(numbers.data_ptr(), True))
    assert made is not None
    launch(card, made)
    expected, counts = golden.matmul_values(a, b, reduction=reduction, counts=True)
    found = counts_of(numbers.cpu().numpy(), 0, 0)
    pairs = {"a result": (result.cpu().numpy().view(np.uint32), np.asarray(expected).view(np.uint32))}
    for kind in ("products", "promotions"):
        for event in EVENTS:
            pairs[f"{event} {kind}"] = getattr(getattr(found, kind), event), getattr(getattr(counts, kind), event)
    pairs["largest exponent"] = found.largest_exponent, counts.largest_exponent
    for name, (got, wanted) in pairs.items():
        different = np.argwhere(got != wanted).tolist()
        if different:
            row, column = different[0]
            operands = f"a = {in_hex(a[row])} and b = {in_hex(b[:, column])}"
            wrong = row, int(got[row, column]), int(wanted[row, column])
            what = f"{name}, counting in {reduction.rounding},"
            raise RuntimeError(complaint(card, device, what, wrong, operands))


def check_exponents(card: Device, device: torch.device) -> None:
    """Compare a histogram of the exponents of any values with the CPU's."""
    bits = np.random.default_rng(4).integers(0, 2**32, _ROWS * _ROWS, np.uint32)
    bits[:3] = 0, 0x80000000, 0x7F800000
    values = torch.from_numpy(bits.view(np.float32)).to(device)
    slots = torch.zeros(SLOTS, dtype=torch.int64, device=device)
    launch(card, exponents_launch(values.data_ptr(), values.numel(), FLOAT32, slots.data_ptr()))
    magnitudes = bits & np.uint32(0x7FFFFFFF)
    fields = magnitudes >> np.uint32(23)
    kept = (magnitudes > 0) & (fields < 255)
    special = (magnitudes == 0).sum(), (magnitudes == 0x7F800000).sum(), (magnitudes > 0x7F800000).sum()
    expected = np.array([*np.bincount(fields[kept], minlength=255), *special])
    got = slots.cpu().numpy()
    for slot in np.flatnonzero(got != expected).tolist():
        wrong = slot, int(got[slot]), int(expected[slot])
        raise RuntimeError(complaint(card, device, f"number {slot} of a histogram", wrong, "values of any bits"))
