"""The AXI4-Stream top: fields that are wider there than in the unit behind it."""

import pytest
from amaranth.sim import Simulator

from golden import CBFLOAT16
from golden.formats import HALF_FORMATS
from hdl import Error
from hdl.axi_lite import CLEAR_ADDRESS, address_of
from hdl.axi_stream import AxiStreamMac
from sim import counts
from tools.simulator import CompiledSimulator


def answer(top: AxiStreamMac, **user: int):
    """Send one product 1.0 * 1.0, first and last, and return the payload of its result."""
    seen = []

    async def testbench(ctx):
        ctx.set(top.aresetn, 1)
        ctx.set(top.m_axis_tready, 1)
        ctx.set(top.s_axis_tdata, {"a": CBFLOAT16.one, "b": CBFLOAT16.one})
        ctx.set(top.s_axis_tuser, {"first": 1, **user})
        ctx.set(top.s_axis_tlast, 1)
        ctx.set(top.s_axis_tvalid, 1)
        for cycle in range(40):
            ctx.set(top.aclk, 1)
            await ctx.delay(1e-6)
            ctx.set(top.aclk, 0)
            await ctx.delay(1e-6)
            if cycle == 0:
                ctx.set(top.s_axis_tvalid, 0)
            if ctx.get(top.m_axis_tvalid):
                seen.append((ctx.get(top.m_axis_tuser.error), ctx.get(top.m_axis_tdata)))

    simulator = Simulator(top)
    simulator.add_testbench(testbench)
    simulator.run()
    assert len(seen) == 1
    return seen[0]


@pytest.mark.parametrize(
    ("user", "error"),
    [
        ({"register": 0, "format": 0}, Error.NONE),
        ({"register": 3, "format": 0}, Error.NONE),
        ({"register": 4, "format": 0}, Error.UNSUPPORTED),
        ({"register": 128, "format": 0}, Error.UNSUPPORTED),
        ({"register": 0, "format": 3}, Error.UNSUPPORTED),
        ({"register": 0, "format": 4}, Error.UNSUPPORTED),
    ],
)
def test_axi_stream_field_beyond_the_unit_is_refused(user, error):
    top = AxiStreamMac(operands=HALF_FORMATS, registers=4)
    result = CBFLOAT16.one if error is Error.NONE else 0
    assert answer(top, level=2, **user) == (error, result)


def test_axi_stream_unit_of_all_256_registers_keeps_each_of_them_apart():
    top = AxiStreamMac(registers=256, stages=3)
    seen = {}

    async def testbench(ctx):
        ctx.set(top.aresetn, 1)
        ctx.set(top.m_axis_tready, 1)
        # All registers are in use before the first is read: 1.0 * x, then 1.0 * 0.
        beats = [(register, step) for step in (0, 1) for register in range(256)]
        for _ in range(1000):
            if beats:
                register, step = beats[0]
                ctx.set(top.s_axis_tdata, {"a": CBFLOAT16.one, "b": 0 if step else CBFLOAT16.one + register})
                ctx.set(top.s_axis_tuser, {"register": register, "level": 2, "first": not step})
                ctx.set(top.s_axis_tlast, step)
            ctx.set(top.s_axis_tvalid, bool(beats))
            if beats and ctx.get(top.s_axis_tready):
                beats.pop(0)
            if ctx.get(top.m_axis_tvalid):
                seen[ctx.get(top.m_axis_tuser.register)] = ctx.get(top.m_axis_tdata)
            ctx.set(top.aclk, 1)
            await ctx.delay(1e-6)
            ctx.set(top.aclk, 0)
            await ctx.delay(1e-6)

    CompiledSimulator(top).run(testbench)
    assert seen == {register: CBFLOAT16.one + register for register in range(256)}


def test_axi_lite_addresses_of_counters_are_those_of_the_documents():
    addresses = [address_of(*name.split(".")) for name in counts.COUNTERS]
    assert addresses == [0, 4, 8, 12, 16, 20, 32, 36, 40, 44, 48, 52] == list(counts.COUNTER_ADDRESSES)
    assert CLEAR_ADDRESS == 0x3C == counts.CLEAR_ADDRESS


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("product", "steps"), "kind: got 'product', must be one of products, promotions"),
        (
            ("products", "lost"),
            "name: got 'lost', must be one of steps, inexact, underflow, overflow, invalid, swamped",
        ),
    ],
)
def test_axi_lite_address_of_no_counter_is_refused(given, said):
    with pytest.raises(ValueError, match=f"^{said}"):
        address_of(*given)
