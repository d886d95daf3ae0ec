"""Units and their simulators, which take longer to make than to run: made once for all tests of a module."""

from functools import cache, lru_cache

from tools.simulator import CompiledSimulator


@cache
def unit_of(kind, **parameters):
    """Return a unit, the same one for the same parameters."""
    return kind(**parameters)


def simulate(unit, testbench, *others) -> None:
    """Run a testbench on a unit from power-up; `others` are signals within it that its testbenches need."""
    made = _made(unit)
    if not made:
        made.append(CompiledSimulator(unit, *others))
    made[0].run(testbench)


#: Enough for the depths of a unit in turn.
@lru_cache(16)
def _made(unit):
    """Return the unit's simulator in a list, which is empty before the first run."""
    return []
