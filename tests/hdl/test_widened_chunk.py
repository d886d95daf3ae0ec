"""The port `chunk` of units that widen their operands: it is free again once the last product is accepted."""

import numpy as np
import pytest

import golden
from golden import FLOAT8_E4M3FN, Reduction
from hdl import MultiplyAccumulate, VectorMac

from .simulators import simulate, unit_of

ONE, LARGE = 0x38, 0x60  # 1.0 and 32.0 in float8_e4m3fn
#: 32.0 * 32.0 and 1.0 * 1.0: a partial sum in cbfloat16 that has reached 1024 loses a 1.
FACTORS = (ONE, ONE, ONE, LARGE, ONE)


def total(unit, *, chunk, behind):
    """Sum squares at level 1; the port shows another length as soon as the last one is accepted."""
    lanes = getattr(unit, "lanes", 0)
    seen = []

    async def bench(ctx):
        left = list(enumerate(FACTORS))
        ctx.set(unit.o.ready, 1)
        for _ in range(12 * len(FACTORS) + 60):
            ctx.set(unit.chunk, chunk if left else behind)
            ctx.set(unit.i.valid, bool(left))
            if left:
                k, code = left[0]
                codes = [code] * lanes if lanes else code
                beat = {"a": codes, "b": codes, "level": 1, "first": k == 0, "last": k == len(FACTORS) - 1}
                ctx.set(unit.i.payload, beat)
            if ctx.get(unit.o.valid):
                result = ctx.get(unit.o.payload.result)
                seen.extend(result if lanes else [result])
            if left and ctx.get(unit.i.ready):
                left.pop(0)
            await ctx.tick()

    simulate(unit, bench)
    assert len(seen) == max(lanes, 1)
    (code,) = set(seen)
    return code


@pytest.mark.parametrize("kind", [MultiplyAccumulate, VectorMac])
@pytest.mark.parametrize("stages", [3, 9, 11])
@pytest.mark.parametrize(("chunk", "behind", "code"), [(1, 0, 0x44808000), (2, 0, 0x44806000), (0, 1, 0x44808000)])
def test_widening_chunk_changed_behind_the_last_product_changes_no_reduction(kind, stages, chunk, behind, code):
    unit = unit_of(kind, operands=(FLOAT8_E4M3FN,), stages=stages)
    codes = np.array(FACTORS, np.uint8)
    plan = Reduction.for_level(1, FLOAT8_E4M3FN, chunk=chunk or None)
    assert int(golden.dot(codes, codes, operand=FLOAT8_E4M3FN, reduction=plan)) == code
    assert total(unit, chunk=chunk, behind=behind) == code
