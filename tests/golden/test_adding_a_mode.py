"""A rounding mode added by the steps of docs/extending.md: without one of them something says so, with all it works."""

import pytest

import golden
from golden.cuda.compiling import nvrtc_version
from golden.kernels import library

from ..copied import Copy, files_of_section
from .kernels.build import UNITS, command, run

pytestmark = pytest.mark.long

#: Away from zero: every number that is not a value of the format gets the larger magnitude.
STEPS = {
    "golden/rounding.py": [
        ("    STOCHASTIC = 6\n", "{}    #: To the neighbour of larger magnitude.\n    AWAY = 7\n"),
        ("        Rounding.STOCHASTIC: (False, False),\n", "{}        Rounding.AWAY: (False, False),\n"),
    ],
    "golden/exact_rounding.py": [
        (
            "        Rounding.NEAREST_AWAY: lambda *_: lambda count, rest: rest >= HALF,\n",
            "{}        Rounding.AWAY: lambda *_: lambda count, rest: rest > 0,\n",
        )
    ],
    "golden/arrays/rounding.py": [
        (
            "    Rounding.NEAREST_AWAY: lambda x, count, rest, *_: rest >= 0.5,\n",
            "{}    Rounding.AWAY: lambda x, count, rest, *_: rest > 0,\n",
        )
    ],
    "golden/kernels/source/names.h": [
        ("    MODE(stochastic, STOCHASTIC, false, false)", "{} \\\n    MODE(away, AWAY, false, false)")
    ],
    "golden/kernels/source/kernels.h": [("    CBFLOAT_STOCHASTIC = 6,\n", "{}    CBFLOAT_AWAY = 7,\n")],
    "golden/kernels/source/generic_mode_steps.h": [
        ("MODE == Mode::toward_zero || MODE == Mode::down", "MODE == Mode::away || {}"),
        (
            "        if constexpr (MODE == Mode::nearest_away)",
            "        if constexpr (MODE == Mode::away) return magnitude > lower;\n{}",
        ),
    ],
    "golden/cuda/source/rounding.h": [
        ("MODES == 7", "MODES == 8"),
        ("            case Mode::down:\n", "            case Mode::away:\n                return rest != 0;\n{}"),
    ],
    "hdl/cores/rounding.py": [
        ('    Rounding.NEAREST_AWAY: ("0", "0", "1", "1"),\n', '{}    Rounding.AWAY: ("0", "1", "1", "1"),\n'),
        ("    Rounding.STOCHASTIC: (False, False),\n", "{}    Rounding.AWAY: (False, False),\n"),
    ],
}
#: A step that this test leaves out, as it leaves out proofs: faster steps for graphics cards.
LEFT_OUT = "golden/cuda/source/variant.h"

COMPARE = """
import numpy as np, golden
from golden import FORMATS, FP32, kernels, reference
assert str(golden.Rounding.AWAY) == "away"
rng = np.random.default_rng(1)
values = np.float32(rng.normal(size=300) * 2.0 ** rng.integers(-40, 20, 300))
for fmt in FORMATS:
    wanted = [reference.encode(float(x), fmt, rounding="away") for x in values]
    for path in kernels.paths():
        with kernels.use(path, threads=1):
            assert golden.encode(values, fmt, rounding="away").tolist() == wanted, (path, fmt)
for operand in golden.formats.HALF_FORMATS:
    a, b = golden.encode(rng.normal(size=(2, 5, 70)), operand)
    for level in (0, 1, 2):
        given = {"operand": operand, "level": level, "rounding": "away", "out_rounding": "away"}
        wanted = [[reference.dot(x, y, counts=True, **given) for y in b.tolist()] for x in a.tolist()]
        for path in kernels.paths():
            with kernels.use(path, threads=1):
                got, counts = golden.matmul(a, b.T, counts=True, **given)
            assert got.tolist() == [[code for code, *_ in row] for row in wanted], (path, operand, level)
            inexact = [[found.products.inexact for *_, found in row] for row in wanted]
            assert counts.products.inexact.tolist() == inexact, (path, operand, level)
"""


def changed(copy: Copy, *files: str) -> None:
    for file in files:
        copy.edit(file, *STEPS[file])


def compiled(copy: Copy, units: list[str]) -> None:
    source = copy.folder / "golden" / "kernels" / "source"
    objects = [copy.folder / f"{unit}.o" for unit in units]
    for unit, result in zip(units, objects, strict=True):
        run([*command(["-O0"]), "-c", str(source / unit), "-o", str(result)])
    (native,) = (copy.folder / "golden" / "kernels").glob("native*.so")
    native.unlink()
    run([*command(["-O0"]), "-shared", "-o", str(native), *map(str, objects)])


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("mode") / "copy")


def test_page_lists_the_steps_that_the_test_takes() -> None:
    listed = files_of_section("A rounding mode")
    assert {file for file in listed if not file.startswith("lab/")} == {*STEPS, LEFT_OUT}


@pytest.mark.skipif(len(library.paths()) == 1, reason="no compiled library")
def test_new_mode_is_missed_by_every_table_until_all_have_it(copy: Copy) -> None:
    first, last = STEPS["golden/rounding.py"]
    copy.edit("golden/rounding.py", first)
    assert copy.fails("-c", "import golden").startswith("ValueError: golden.rounding.STAYS_FINITE: got entries for ")
    copy.edit("golden/rounding.py", last)
    tables = {"golden.exact_rounding._DECISIONS", "golden.arrays.rounding._GOES_UP"}
    while tables:  # in the order in which they are imported
        kind, table, said = copy.fails("-c", "import golden").split(": ")
        assert kind == "ValueError"
        assert said.endswith("must have one for each of " + ", ".join([*map(str, golden.Rounding), "away"]))
        tables.remove(table)
        changed(copy, table.rpartition(".")[0].replace(".", "/") + ".py")
    said = copy.fails("-c", "import golden; golden.encode([1.0], 'float16')")
    assert "must be 'nearest_even toward_zero down up nearest_away to_odd stochastic away ; inexact" in said
    for file, unit, error in (
        ("golden/kernels/source/names.h", "plan.cpp", "CBFLOAT_AWAY"),
        ("golden/kernels/source/kernels.h", "portable.cpp", "a mode needs its rule above"),
    ):
        changed(copy, file)
        with pytest.raises(AssertionError, match=error):
            compiled(copy, [unit])
    changed(copy, "golden/kernels/source/generic_mode_steps.h")
    compiled(copy, UNITS)
    if nvrtc_version():
        ptx = (
            "from golden.cuda import *; from golden.cuda.compiling import ptx; from golden.cuda.scales import Steps; "
            "from golden import Rounding; ptx(Steps(Rounding['{}'], '{}', 'none'), 90)"
        )
        assert "a mode needs its case" in copy.run("-c", ptx.format("NEAREST_EVEN", "single")).stderr
        changed(copy, "golden/cuda/source/rounding.h")
        copy.passes("-c", ptx.format("NEAREST_EVEN", "single"))
        assert "a mode needs its steps" in copy.run("-c", ptx.format("AWAY", "single")).stderr
        copy.passes("-c", ptx.format("AWAY", "generic"))
    assert copy.fails("-c", "import hdl").startswith("ValueError: hdl.cores.rounding.DECISIONS: got entries for ")
    changed(copy, "hdl/cores/rounding.py")
    copy.passes("-c", COMPARE)
    units = "mac_any_rounding,float32_to_float8_e4m3fn_any_rounding"
    copy.passes("-m", "sim", "--units", units, "--seed", "1", "--jobs", "1", "--folder", str(copy.folder / "build"))
