"""An event that is counted, added by the steps of docs/extending.md: each table that lacks it says so."""

import pytest

from golden.kernels import library

from ..copied import Copy, files_of_section
from .kernels.build import UNITS
from .test_adding_a_mode import compiled

pytestmark = pytest.mark.long

#: Steps that leave a NaN. Only the plain C++ counts them, so the vector paths hand counting over to it.
STEPS = {
    "golden/flags.py": [('"swamped")\n', '"swamped", "nan")\n')],
    "golden/counts.py": [("    swamped: Any = 0\n", "{}    nan: Any = 0\n")],
    "golden/exact_steps.py": [
        (
            '        "swamped": lambda step: step.is_swamped,\n',
            '{}        "nan": lambda step: step.accumulator.is_nan(step.after),\n',
        )
    ],
    "golden/arrays/counting.py": [
        ('[*_FLAGS, "swamped"]', '[*_FLAGS, "swamped", "nan"]'),
        ('        counts["swamped"] += is_lost\n', '{}        counts["nan"] += np.isnan(after)\n'),
    ],
    "golden/kernels/source/names.h": [("EVENT(swamped)", "{} EVENT(nan)")],
    "golden/kernels/source/counting_steps.h": [
        ("EVENTS == 5", "EVENTS == 6"),
        ("        const bool infinity_times_zero =", "        tally.nan[i] += after != after;\n{}"),
    ],
    "golden/kernels/source/vector_counts.h": [("EVENTS == 5", "EVENTS == 6")],
    "golden/kernels/source/vector_modes.h": [("    add_counts(path);\n", "")],
    "golden/kernels/source/avx512fp16.cpp": [("nullptr), &counted);", "nullptr), nullptr);")],
    "golden/torch/instruments/report/limits.py": [
        ('    "distance": Limit(\n', '    "nan": Limit("NaN", 0.0, RARE, "steps that left a NaN"),\n{}')
    ],
    "golden/torch/instruments/rows.py": [("    swamped: _Count\n", "{}    nan: _Count\n")],
    "hdl/mac/lane.py": [('finished.swamped if name == "swamped" else', 'finished.is_nan if name == "nan" else {}')],
}
#: Steps that this test leaves out, and those that it takes instead of vector loops.
LEFT_OUT = {"golden/kernels/source/half_counts.h", "docs/numerics.md"}
IN_PLACE = {"golden/kernels/source/vector_modes.h", "golden/kernels/source/avx512fp16.cpp"}

COMPARE = """
import numpy as np, golden
from golden import FP32, kernels, reference
from golden.counts import COUNTED
assert COUNTED[-1] == "nan"
rng = np.random.default_rng(2)
seen = 0
for operand in golden.formats.HALF_FORMATS:
    a = golden.encode(rng.normal(size=(4, 33)), operand)
    b = golden.encode(rng.normal(size=(20, 33)), operand)
    a[1, 7], b[3, 7], b[5, 20], a[2, 30] = operand.inf, 0, operand.nan, operand.inf | operand.sign_mask
    for level, mode in ((0, "nearest_even"), (1, "nearest_even"), (2, "down")):
        given = {"operand": operand, "level": level, "rounding": mode, "chunk": 8 if level else None}
        wanted = [[reference.dot(x, y, counts=True, **given)[2] for y in b.tolist()] for x in a.tolist()]
        seen += sum(each.products.nan for row in wanted for each in row)
        for path in kernels.paths():
            with kernels.use(path, threads=1):
                _, counts = golden.matmul(a, b.T, counts=True, **given)
            for kind in ("products", "promotions"):
                for name in COUNTED:
                    must = [[getattr(getattr(each, kind), name) for each in row] for row in wanted]
                    assert getattr(getattr(counts, kind), name).tolist() == must, (path, operand, level, kind, name)
assert seen
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("event") / "copy")


def changed(copy: Copy, *files: str) -> None:
    for file in files:
        copy.edit(file, *STEPS[file])


def test_page_lists_the_steps_that_the_test_takes() -> None:
    listed = files_of_section("A counter")
    assert {file for file in listed if not file.startswith("lab/")} == set(STEPS) - IN_PLACE | LEFT_OUT


@pytest.mark.skipif(len(library.paths()) == 1, reason="no compiled library")
def test_new_event_is_missed_by_every_table_until_all_have_it(copy: Copy) -> None:
    changed(copy, "golden/flags.py")
    files = {"golden.Events": "golden/counts.py", "golden.exact_steps._OCCURRED": "golden/exact_steps.py",
             "golden.arrays.counting.Tally": "golden/arrays/counting.py"}  # fmt: skip
    while files:  # in the order in which they are imported
        kind, table, said = copy.fails("-c", "import golden").split(": ")
        assert kind == "ValueError"
        assert said.endswith("must have one for each of " + "steps, " * (table == "golden.Events") +
                             "inexact, underflow, overflow, invalid, swamped, nan")  # fmt: skip
        changed(copy, files.pop(table))
    assert "; inexact underflow overflow invalid swamped nan '" in copy.fails(
        "-c", "import golden; golden.encode(1, 'float16')"
    )
    changed(copy, "golden/kernels/source/names.h")
    for file, unit, error in (
        ("counting_steps.h", "portable.cpp", "a new event needs its line in CountingStep"),
        ("vector_counts.h", "avx2.cpp", "a new event needs its lines in Counters"),
    ):
        with pytest.raises(AssertionError, match=error):
            compiled(copy, [unit])
        changed(copy, f"golden/kernels/source/{file}")
    changed(copy, *sorted(IN_PLACE))
    compiled(copy, UNITS)
    copy.passes("-c", COMPARE)
    for module in ("instruments.report.limits", "instruments.rows"):
        said = copy.run("-c", f"import golden.torch.{module}").stderr.strip().splitlines()[-1]
        assert said.startswith("ValueError: golden.torch.")
        assert said.endswith("swamped, nan")
        changed(copy, f"golden/torch/{module.replace('.', '/')}.py")
    copy.passes("-c", "import golden.torch.instruments.report.limits, golden.torch.instruments.rows")
    units = ["-m", "sim", "--units", "mac_axi_counters", "--seed", "1", "--jobs", "1"]
    assert copy.run(*units, "--folder", str(copy.folder / "build")).returncode == 1
    changed(copy, "hdl/mac/lane.py")
    copy.passes(*units, "--folder", str(copy.folder / "build"))
