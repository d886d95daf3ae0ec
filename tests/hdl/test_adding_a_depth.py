"""A depth added to the one table of depths: units and proofs of it appear, and one that nothing builds is found."""

import pytest

from hdl.mac.parameters import DEPTHS, STEPS

from ..copied import Copy

pytestmark = pytest.mark.long

TABLE = "hdl/mac/parameters.py"
DEEPER = DEPTHS[-1] + 1
LIST = """
from hdl.catalogue import UNITS
from lab.proofs.catalogue import proofs
print(*UNITS, *(proof.id for proof in proofs()), sep="\\n")
"""


@pytest.fixture
def copy(tmp_path) -> Copy:
    return Copy(tmp_path / "copy")


@pytest.mark.parametrize(
    ("added", "number"),
    [
        (f"_RANKS[{DEEPER}] = _RANKS[{DEPTHS[-1]}]", DEEPER),
        (f'_RANKS[{DEEPER}] = (*_RANKS[{DEPTHS[-1]}], "nowhere")', DEEPER),
        (f'STEPS = (*STEPS, "deliver", "hand on")\n_RANKS[{DEEPER + 1}] = STEPS', DEEPER),
    ],
    ids=["as many as before", "an unknown position", "a gap"],
)
def test_depth_with_ranks_that_are_not_its_own_is_refused(copy, added, number):
    copy.edit(TABLE, ("#: Every depth.", f"{added}\n{{}}"))
    said = copy.fails("-c", "import hdl")
    assert said.startswith("ValueError: _RANKS: got ('input', ")
    assert f"must be {number} of {', '.join(STEPS)}" in said
    assert said.endswith(f"for {number}")


def test_new_depth_is_simulated_measured_and_proven_and_fails_there(copy):
    added = f'STEPS = (*STEPS, "deliver")\n_RANKS[{DEEPER}] = (*_RANKS[{DEPTHS[-1]}], "deliver")'
    copy.edit(TABLE, ("#: Every depth.", f"{added}\n{{}}"))
    found = copy.passes("-c", LIST).splitlines()
    for name in (
        f"mac_stages_{DEEPER}",
        f"mac_cbfloat16_stages_{DEEPER}",
        *(f"lane/pipeline/{kind}/stages_{DEEPER}/bitwuzla" for kind in ("configurable", "modes", "counters")),
        *(f"control/induction/stages_{DEEPER}/{engine}" for engine in ("bitwuzla", "z3+cadical")),
    ):
        assert name in found
    # The lane has no register at the new position, so that its results are wrong.
    units = ["--units", f"mac_stages_{DEEPER}", "--scenarios", "steps_sampled", "--seed", "1", "--jobs", "1"]
    assert copy.run("-m", "sim", *units, "--folder", str(copy.folder / "build")).returncode == 1
