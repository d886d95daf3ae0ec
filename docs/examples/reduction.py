"""
A sum at three precision levels
===============================

You sum products at levels 0, 1 and 2, see where the digits go, and get the same bits
from the hardware.

You need the extra ``hdl``, and matplotlib for the picture:
``pip install 'cbfloat[hdl]' matplotlib``.
"""

# %%
# Three sums
# ----------
#
# The factors are cbfloat16. Level 0 adds every product to an accumulator in float32.
# Level 1 adds 32 products, a *chunk*, in cbfloat16, and adds the sums of the chunks in
# float32. Level 2 does both in cbfloat16.
import numpy as np

import golden

random = np.random.default_rng(1)
a = golden.encode(random.uniform(0, 1, 2048), "cbfloat16")
b = golden.encode(random.uniform(0, 1, 2048), "cbfloat16")

exact = np.dot(*(golden.decode(codes, "cbfloat16").astype(float) for codes in (a, b)))
print(f"exact    {exact:.6f}")
for level in golden.LEVELS:
    total = golden.dot(a, b, operand="cbfloat16", level=level)
    value = float(golden.decode(total, "cbfloat16" if level == 2 else "float32"))
    error = abs(value - exact) / exact
    print(f"level {level}  {value:.6f}  error {error:.1e}  code {total:#010x}")

# %%
# Inside level 1
# --------------
#
# Nothing is hidden in it. This loop takes one fused step after the other, each with a
# single rounding: 32 steps in cbfloat16 for a chunk, then one in float32 that adds the
# chunk's sum times 1 to the total, its *promotion*.
one = golden.encode(1.0, "cbfloat16")
total = golden.encode(0.0, "float32")
for start in range(0, 2048, 32):
    partial = golden.encode(0.0, "cbfloat16")
    for k in range(start, start + 32):
        partial = golden.multiply_accumulate(
            a[k], b[k], partial, operand="cbfloat16", accumulator="cbfloat16"
        )
    total = golden.multiply_accumulate(
        partial, one, total, operand="cbfloat16", accumulator="float32"
    )

assert total == golden.dot(a, b, operand="cbfloat16", level=1)
print(f"{total:#010x}")

# %%
# Into one sum
# ------------
#
# Which products did it lose? `explain` takes the same steps on exact numbers and shows
# what each rounding took away. A product that leaves no trace is *swamped*.
explained = golden.explain(a[:40], b[:40], operand="cbfloat16", level=2, chunk=None)
print(explained.text(rows=8))

# %%
# The same sum in other ways, side by side:
print(explained.alternatives())

# %%
# Where the digits go
# -------------------
#
# A growing sum in 16 bits loses its addends: a product below half an ulp of the
# accumulator is gone. Chunks keep the accumulator small, and level 1 also keeps the
# total out of 16 bits. The picture has the median error of 32 sums for each length.
from matplotlib import pyplot as plt

lengths = 2 ** np.arange(3, 14)
x, y = (
    golden.encode(random.uniform(0, 1, (32, lengths[-1])), "cbfloat16") for _ in range(2)
)
products = np.prod(
    [golden.decode(codes, "cbfloat16") for codes in (x, y)], 0, dtype=float
)


def median_error(length, level, chunk=32):
    total = golden.dot(
        x[:, :length], y[:, :length], operand="cbfloat16", level=level, chunk=chunk
    )
    value = golden.decode(total, "cbfloat16" if level == 2 else "float32")
    exact = products[:, :length].sum(axis=1)
    return np.median(np.abs(value - exact) / exact)


figure, axes = plt.subplots(figsize=(7, 3.8))
for label, style, options in (
    ("level 2, one chunk of any length", "-", {"level": 2, "chunk": None}),
    ("level 2", "--", {"level": 2}),
    ("level 1", "-.", {"level": 1}),
    ("level 0", ":", {"level": 0}),
):
    errors = [median_error(length, **options) for length in lengths]
    axes.plot(lengths, errors, style, label=label)
axes.set_xscale("log", base=2)
axes.set_yscale("log")
axes.set_xlabel("products in a sum")
axes.set_ylabel("median relative error")
axes.grid(alpha=0.25)
axes.legend(frameon=False)
plt.show()

# %%
# The hardware
# ------------
#
# `hdl.MultiplyAccumulate` holds several accumulators and takes format and level with each
# product. Forty products go into register 0, at each level in turn. ``first`` and
# ``last`` mark the ends of a reduction.
#
# ``simulate`` is a helper of this site. The tutorial on a converter has a testbench that
# is written by hand.
from docs.pages.waves import simulate
from hdl import MultiplyAccumulate

for level in golden.LEVELS:
    products = zip(a[:40].tolist(), b[:40].tolist(), strict=True)
    beats = [
        {"a": x, "b": y, "level": level, "first": k == 0, "last": k == 39}
        for k, (x, y) in enumerate(products)
    ]
    unit = MultiplyAccumulate(operands=(golden.CBFLOAT16,))
    (answer,) = simulate(unit, beats, results=1, ports={"chunk": 32}).answers
    expected, flags = golden.dot(
        a[:40], b[:40], operand="cbfloat16", level=level, return_flags=True
    )
    assert (answer["result"], answer["flags"]) == (expected, flags)
    print(f"level {level}  result {answer['result']:#010x}  {golden.Flag(int(flags))!r}")

# %%
# One register takes a product every seven cycles. A design that sums several things at
# once puts them into registers in turn, and then a product enters in every cycle.
#
# Where to go from here
# ---------------------
#
# - The numeric contract, NUMERICS section 5, defines the levels.
# - `golden.matmul` computes matrices of such sums, and `golden.torch` trains with them.
# - The page of each unit has its ports and its timing.
