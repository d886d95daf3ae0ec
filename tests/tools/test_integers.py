"""CXXRTL's C++ with plain integers: every statement gives what CXXRTL's own header makes of the original."""

import ctypes
import itertools
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from hdl.simulation import integer_operations, integers
from hdl.simulation.compiling import headers
from hdl.simulation.integers import with_integers
from tools import compiled
from tools.cxxrtl import original_headers

from .operations import ONE, WIDTHS
from .operations import TWO as BASIC

pytestmark = pytest.mark.long

#: Widths of results.
RESULTS = (1, 9, 32, 40, 64)
TWO = (*BASIC, "shl_uu", "shr_uu")
ROUNDS = 40


def named(width):
    """An input, a variable and a register of a width."""
    return f"p_in{width}", f"p_var{width}", f"p_reg{width}.curr"


def expressions():
    """C++ of expressions, each with its width."""
    for at, width in enumerate(WIDTHS):
        given, variable, register = named(width)
        other = WIDTHS[(at * 3 + 1) % len(WIDTHS)]
        y = RESULTS[at % len(RESULTS)]
        for result in {y, RESULTS[(at + 2) % len(RESULTS)], min(width, 64)}:
            yield from ((result, f"{name}<{result}>({register})") for name in ONE)
            yield from ((result, f"{name}<{result}>({given}, p_reg{other}.curr)") for name in TWO)
            yield from ((result, f"{name}<{result}>({variable}, {given})") for name in TWO)
        yield width, f"(p_in1 ? {variable} : {register})"
        yield 2 * width, f"{given}.concat({register}).val()"
        for high, low in {(width - 1, 0), (width - 1, width // 2), (width // 3, 0), (width // 2, width // 3)}:
            for value in named(width):
                yield high - low + 1, f"{value}.slice<{high},{low}>().val()"
            part = f"{register}.slice<{high},{low}>()"
            yield high - low + 8, f"{part}.concat(p_var7).val()"
            yield high - low + 12, f"value<11>{{0x5a5u}}.concat({part}).val()"
            yield (
                7 + high - low + 1,
                f"p_in7.concat((p_reg1.curr ? {part}.val() : {given}.slice<{high},{low}>().val())).val()",
            )
        yield y, f"add_uu<{y}>(sub_ss<{y}>({register}, {variable}), {given}.slice<0>().val().repeat<{y}>().val())"
        yield 1, f"not_u<1>(eq_uu<1>({variable}.slice<0>().concat({given}).val(), value<{width + 1}>{{1u}}))"
    yield 40, "value<40>{0xfedcba98u,0x76u}"
    yield 40, "value<40> {}"
    yield 64, "not_u<64>(p_in64).slice<63,0>().val()"
    yield 1, "not_u<64>(p_in64).slice<63>().val()"


def source(listed):
    """A module as CXXRTL writes one, with every expression, assignments to parts, and a memory."""
    lines = ["#include <cxxrtl/cxxrtl.h>", "#include <cstring>", "using namespace cxxrtl_yosys;"]
    lines += ["namespace cxxrtl_design {", "struct p_every : public module {"]
    lines += [f"\t/*input*/ value<{width}> p_in{width};\n\twire<{width}> p_reg{width};" for width in WIDTHS]
    lines += [f"\twire<{width}> p_out{at};" for at, (width, _) in enumerate(listed)]
    lines += [
        "\twire<40> p_parts;",
        "\twire<40> p_found;",
        "\twire<40> p_wide;",
        "\twire<40> p_first;",
        "\tmemory<20> memory_p_kept { 8u };",
    ]
    lines += ["\tp_every() { reset(); };", "\tvoid reset() override;"]
    lines += ["\tbool eval(performer *performer = nullptr) override;", "\tbool commit() override {"]
    lines += ["\t\tobserver observer; bool changed = false;"]
    names = [*(f"p_reg{width}" for width in WIDTHS), *(f"p_out{at}" for at in range(len(listed)))]
    names += ["p_parts", "p_found", "p_wide", "p_first", "memory_p_kept"]
    lines += [f"\t\tif ({name}.commit(observer)) changed = true;" for name in names]
    lines += ["\t\treturn changed;", "\t}", "};", "void p_every::reset() {"]
    lines += [f"\tp_reg{WIDTHS[0]} = wire<{WIDTHS[0]}>{{0u}};", "\tp_first = wire<40>{7u,1u};", "}"]
    lines += ["bool p_every::eval(performer *performer) {", "\tbool converged = true;"]
    for width in WIDTHS:
        lines += ["\t// \\src: unit.v:1.1", f"\tvalue<{width}> p_var{width};"]
        lines += [f"\tp_var{width} = xor_uu<{width}>(p_in{width}, p_reg{width}.curr);"]
        one = f"value<{width}>{{0x1u{',0u' * ((width - 1) // 32)}}}"
        lines += [f"\tp_reg{width}.next = add_uu<{width}>(p_in{width}, {one});"]
    for at, (width, expression) in enumerate(listed):
        lines += [f"\tvalue<{width}> i_{at};", f"\ti_{at} = {expression};", f"\tp_out{at}.next = i_{at};"]
    lines += [
        "\tvalue<40> p_pieces;",
        "\tp_pieces.slice<39,20>() = p_in32.slice<25,6>().val();",
        "\tp_pieces.slice<19,1>() = p_in131.slice<99,81>().val();",
        "\tp_pieces.slice<0>() = not_u<1>(p_in1);",
        "\tp_parts.next = p_pieces;",
        "\tvalue<9> p_joined;",
        "\tp_joined.slice<8,5>().concat(p_wide.next.slice<39,7>()) = p_in64.slice<50,14>().val();",
        "\tp_joined.slice<4,0>().concat(p_wide.next.slice<6,0>()) = add_uu<12>(p_in7, p_reg33.curr);",
        "\tauto tmp_0 = memory_index(p_in64.slice<12,10>().val(), 0, 8);",
        "\tif(tmp_0.valid) {",
        '\t\tCXXRTL_ASSERT(tmp_0.valid && "out of bounds read");',
        "\t\tvalue<20> tmp_1 = memory_p_kept[tmp_0.index];",
        "\t\tp_found.next = tmp_1.concat(tmp_1).val();",
        "\t} else {",
        "\t\tp_found.next = value<40> {};",
        "\t}",
        "\tauto tmp_2 = memory_index(p_var7.slice<2,0>().val(), 0, 8);",
        "\tif (tmp_2.valid) {",
        "\t\tmemory_p_kept.update(tmp_2.index, (p_in1 ? p_in33.slice<19,0>().val() : "
        "p_reg131.curr.slice<130,111>().val()), p_joined.concat(p_var32.slice<10,0>()).val(), 1);",
        "\t}",
        "\treturn converged;",
        "}",
        "} // namespace cxxrtl_design",
    ]
    fields = [f"p_in{width}" for width in WIDTHS]
    lines += ['extern "C" void run(size_t rounds, const uint32_t *from, uint32_t *to) {', "cxxrtl_design::p_every top;"]
    lines += ["for (size_t k = 0; k < rounds; k++) {"]
    lines += [f"std::memcpy(top.{name}.data, from, sizeof top.{name}.data); from += 8;" for name in fields]
    lines += ["top.step();"]
    lines += [f"std::memcpy(to, top.{name}.curr.data, sizeof top.{name}.curr.data); to += 16;" for name in names[:-1]]
    return "\n".join([*lines, "}", "}", ""])


@pytest.fixture(scope="module")
def listed():
    return sorted({*expressions()})


def results(text, include):
    """The registers of the module after every round."""
    rng = np.random.default_rng(1)
    given = np.zeros((ROUNDS, len(WIDTHS), 8), np.uint32)
    for at, width in itertools.product(range(ROUNDS), range(len(WIDTHS))):
        mask = (1 << WIDTHS[width]) - 1
        value = int.from_bytes(rng.bytes(20)) & mask
        # Some with zeros at the upper end, and some with almost only ones.
        value = (value, value >> WIDTHS[width] // 2, value | mask & ~5)[at % 3]
        given[at, width] = [value >> 32 * word & 0xFFFF_FFFF for word in range(8)]
    registers = text.count(".curr.data, sizeof")
    got = np.zeros((ROUNDS, registers, 16), np.uint32)
    made = ctypes.CDLL(str(compiled.library(text, include, ("-O0",))))
    made.run(ctypes.c_size_t(ROUNDS), given.ctypes.data_as(ctypes.c_void_p), got.ctypes.data_as(ctypes.c_void_p))
    return got


@pytest.fixture(scope="module")
def wanted(listed):
    return results(source(listed), original_headers())


def test_integers_give_what_cxxrtls_own_header_gives(listed, wanted):
    original = source(listed)
    rewritten = with_integers(original, "every")
    got = results(rewritten, headers())
    differing = np.flatnonzero((got != wanted).any((0, 2))) - len(WIDTHS)
    assert [listed[at] if 0 <= at < len(listed) else at for at in differing.tolist()] == []
    # Next to nothing of up to 64 bits is left as it was.
    left = [line for line in rewritten.splitlines() if "_uu<" in line or "_ss<" in line]
    assert all("131" in line or "xnor" in line or "sh" in line or "64" in line for line in left), left


def is_seen(rewrite, listed, wanted, shows=""):
    """Tell whether some of these expressions, or one of the further statements, give something else."""
    chosen = [at for at, (_, expression) in enumerate(listed) if shows in expression]
    got = results(rewrite(source([listed[at] for at in chosen]), "every"), headers())
    places = [
        *range(len(WIDTHS)),
        *(len(WIDTHS) + at for at in chosen),
        *range(len(WIDTHS) + len(listed), wanted.shape[1]),
    ]
    return bool((got != wanted[:, places]).any())


@pytest.mark.parametrize("name", ["sub_uu", "lt_ss", "reduce_and", "not_s", "pos_s", "mul_ss", "le_uu"])
def test_fault_in_an_operation_is_seen(listed, wanted, monkeypatch, name):
    assert not is_seen(with_integers, listed, wanted, name)
    monkeypatch.setitem(integer_operations._OPERATIONS, name, lambda a, *_: a.text)
    assert is_seen(with_integers, listed, wanted, name)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("| {value.text} << {low};", "| {value.text};"),
        ("<< {low_part.width} | {low_part.text}", "<< {low_part.width} & {low_part.text}"),
        ("({value.text} >> {low})", "({value.text} >> {low} + 1)"),
        ("_CLEARED.sub(", 're.sub(r"\\t\\w+ = wire<.*\\n", '),
    ],
)
def test_fault_in_statements_is_seen(listed, wanted, monkeypatch, old, new):
    text = Path(integers.__file__).read_text(encoding="utf-8")
    assert text.count(old) == 1
    faulty = ModuleType("faulty")
    monkeypatch.setitem(sys.modules, "faulty", faulty)
    exec(text.replace(old, new), faulty.__dict__)
    assert is_seen(faulty.with_integers, listed, wanted, "concat")
