"""
A converter, from Python to Verilog to a waveform
=================================================

You build a unit that turns float32 into cbfloat16, write its Verilog, simulate it, and
check each bit that leaves it.

You need the extra ``hdl``: ``pip install 'cbfloat[hdl]'``.
"""

# %%
# The task of the unit
# --------------------
#
# `golden.convert` is the definition. It takes codes, which are the bit patterns of
# numbers, and returns codes. Here 0.1 and 1e-6 are rounded, and 1e12 is beyond the range
# of cbfloat16.
import golden

# sphinx_gallery_thumbnail_path = 'static/converter.png'
values = [1.5, 0.1, 1e-6, 1e12, float("nan")]
codes = golden.encode(values, "float32")
expected, flags = golden.convert(codes, "float32", "cbfloat16", return_flags=True)

for value, code, result, flag in zip(values, codes, expected, flags, strict=True):
    print(f"{value:>7}  {code:#010x} -> {result:#06x}  {golden.Flag(int(flag))!r}")

# %%
# The unit
# --------
#
# A unit is built from parameters. It has a stream at each end: a transfer takes place on
# a rising edge of the clock with ``valid`` and ``ready`` both high. One conversion enters
# in every cycle, and its result follows `latency` cycles later.
from hdl import FloatConverter

unit = FloatConverter(source=golden.FP32, destination=golden.CBFLOAT16)
print(f"latency: {unit.latency} cycles")

# %%
# Its Verilog
# -----------
#
# The text is one file that needs nothing else. Its head lists the parameters and the
# ports. From the shell, the same is ``python -m hdl verilog convert --source float32
# --destination cbfloat16 -o float32_to_cbfloat16.v``.
from hdl.verilog import to_verilog

verilog = to_verilog(unit, "float32_to_cbfloat16")
print("\n".join(line for line in verilog.splitlines() if line.startswith("//")))

# %%
# A simulation
# ------------
#
# Amaranth's own simulator runs the unit. This testbench sends a code whenever the unit
# takes one, and keeps what leaves.
from amaranth.sim import Simulator

received = []


async def send(context):
    for code in codes:
        context.set(unit.i.payload, int(code))
        context.set(unit.i.valid, 1)
        await context.tick().until(unit.i.ready)
    context.set(unit.i.valid, 0)


async def receive(context):
    context.set(unit.o.ready, 1)
    for _ in codes:
        (payload,) = await context.tick().sample(unit.o.payload).until(unit.o.valid)
        received.append((payload.bits, payload.flags.as_bits()))


simulator = Simulator(unit)
simulator.add_clock(1e-6)
simulator.add_testbench(send)
simulator.add_testbench(receive)
simulator.run()

for result, flag in received:
    print(f"{result:#06x}  {golden.Flag(flag)!r}")

# %%
# Every bit must agree, flags included; otherwise this page could not be built.
assert received == list(zip(expected, flags, strict=True))

# %%
# The waveform
# ------------
#
# With ``with simulator.write_vcd("converter.vcd"):`` around ``simulator.run()``, the
# waveform goes into a file for GTKWave or Surfer. This page draws its own: the receiver
# is not ready in cycles 5 and 6, so that everything stands still, and the third code
# comes a cycle late.
from docs.pages.waves import simulate

unit = FloatConverter(source=golden.FP32, destination=golden.CBFLOAT16)
simulate(
    unit,
    [{"i__payload": int(code)} for code in codes],
    results=5,
    gaps=[3],
    stalls=[5, 6],
    scale=2,
)

# %%
# A code is taken at the rising edge that ends the cycle in which ``i__valid`` and
# ``i__ready`` are both 1. All values are in hexadecimal.
#
# Where to go from here
# ---------------------
#
# - `hdl.FloatConverter` has the parameters: other formats, fewer or more register ranks,
#   no flags.
# - ``make sim`` runs this comparison on some hundred thousand codes for every pair of
#   formats, ``make formal`` proves it for all of them, and ``make exhaustive`` runs
#   through them.
