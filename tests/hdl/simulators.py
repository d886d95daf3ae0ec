"""Units and their simulators, which take longer to make than to run: made once, and reset before each run."""

from functools import cache, lru_cache

from tools.simulator import simulator_of


@cache
def unit_of(kind, **parameters):
    """Return a unit, the same one for the same parameters."""
    return kind(**parameters)


def simulate(unit, testbench) -> None:
    """Run a testbench on a unit from power-up."""
    _bench_of(unit).run(testbench)


class _Bench:
    def __init__(self, unit):
        self.testbench = None
        self.simulator = simulator_of(unit)
        self.simulator.add_clock(1e-6)
        self.simulator.add_testbench(self._current)

    async def _current(self, ctx):
        await self.testbench(ctx)

    def run(self, testbench):
        if self.testbench is not None:
            self.simulator.reset()
        self.testbench = testbench
        self.simulator.run()


#: Enough for the depths of a unit in turn.
_bench_of = lru_cache(16)(_Bench)
