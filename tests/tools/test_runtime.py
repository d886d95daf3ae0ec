"""CXXRTL's names as the project compiles them: every operation gives what CXXRTL's own header gives."""

import ctypes
import shutil

import numpy as np
import pytest

from hdl.simulation.compiling import headers
from tools import compiled
from tools.cxxrtl import original_headers

from .operations import ONE, TWO, WIDTHS

pytestmark = pytest.mark.long

SHIFTS = tuple(f"{name}_{sign}u" for name in ("shl", "sshl", "shr", "sshr", "shift", "shiftx") for sign in "us")
SHIFTS += tuple(f"{name}_{sign}s" for name in ("shift", "shiftx") for sign in "us")
COUNT = 60


def operations():
    """C++ expressions of two values a and b, each with the widths that these have."""
    for at, width in enumerate(WIDTHS):
        other, result = WIDTHS[(at * 3 + 1) % len(WIDTHS)], WIDTHS[(at * 5 + 2) % len(WIDTHS)]
        for y in {width, result}:
            yield from ((width, other, f"{name}<{y}>(a)") for name in ONE)
            yield from ((width, other, f"{name}<{y}>(a, b)") for name in TWO)
            yield from ((width, 9 if y == width else 4, f"{name}<{y}>(a, b)") for name in SHIFTS)
        yield from ((width, width, f"{name}<1>(a, b)") for name in TWO)
        yield from ((width, 40, f"{name}<{width}>(a, b)") for name in ("shl_uu", "shr_uu", "sshr_su"))
        yield width, other, "a.concat(b).val()"
        yield width, other, "b.concat(a).concat(b).val()"
        yield width, other, f"a.slice<{width // 2}>().val().repeat<{other}>().val()"
        yield width, width, "a.update(b, a.bit_not())"
        yield from ((width, 0, f"{name}<{width}>(a, b)") for name in TWO if not name.endswith("_ss"))
        yield width, 0, "a.concat(value<0>()).val()"
        yield width, 0, "value<0>().concat(a).val()"
        both = f"value<{width}> c; value<{other}> d;"
        yield width, other, f"[&] {{ {both} c.concat(d) = b.concat(a).val(); return c.concat(d).val(); }}()"
        for start in {0, width // 3, width - 1}:
            for stop in {start, (start + width) // 2, width - 1}:
                part = f"slice<{stop},{start}>()"
                yield width, stop - start + 1, f"a.{part}.concat(b.slice<0>()).val()"
                yield width, stop - start + 1, f"[&] {{ auto c = a; c.{part} = b; return c; }}()"
                yield width, stop - start + 1, f"[&] {{ auto c = a; c.{part} = a.{part}.val(); return c; }}()"
                joined, bits = f"c.{part}.concat(d).concat(e.slice<4>())", stop - start + 2 + other
                assigned = f"{joined} = a.concat(b).concat(a).concat(b).val().slice<{bits - 1},0>().val();"
                yield (
                    width,
                    other,
                    f"[&] {{ {both} value<9> e; c = a; {assigned} return c.concat(d).concat(e).val(); }}()",
                )
                yield width, 1, f"[&] {{ auto c = a; c.slice<{start}>() = b; return c; }}()"


#: A register that follows a counter, and a memory whose writes come in the order of their priority.
MODULE = """
struct Steps : public module {
    wire<40> now{5u, 1u};
    value<40> seen;
    memory<70> kept{8u};
    void reset() override {}
    bool eval(performer *performer = nullptr) override {
        seen = now.curr;
        now.next = add_uu<40>(now.curr, value<33>{0xfffffff1u, 1u});
        auto at = memory_index(seen.slice<2,0>().val(), 1, 6);
        if (at.valid) {
            kept.update(at.index, seen.concat(seen.slice<29,0>()).val(), value<70>{~0u, 0xff00u, 63u}, 1);
            kept.update(at.index, not_u<70>(seen), value<70>{0xffff0000u, ~0u, 7u}, 0);
        }
        return true;
    }
    template<class ObserverT> bool commit(ObserverT &observer) {
        bool changed = false;
        if (now.commit(observer)) changed = true;
        if (kept.commit(observer)) changed = true;
        return changed;
    }
    bool commit() override { observer observer; return commit<>(observer); }
};
extern "C" void steps(uint32_t *out) {
    Steps top;
    for (size_t at = 0; at < 40; at++) {
        top.step();
        std::memcpy(out, top.now.curr.data, 8);
        for (size_t word = 0; word < 8; word++) std::memcpy(out + 2 + 3 * word, top.kept[word].data, 12);
        out += 26;
    }
}
"""


def source(listed):
    lines = ["#include <cxxrtl/cxxrtl.h>", "#include <cstring>", "using namespace cxxrtl_yosys;"]
    lines += ["template <size_t N> value<N> given(const uint32_t *from) {"]
    lines += ["    value<N> got; std::memcpy(got.data, from, sizeof got.data); return got;", "}"]
    for number, (a, b, expression) in enumerate(listed):
        lines += [f"static void run_{number}(const uint32_t *from, uint32_t *to) {{"]
        lines += [f"    value<{a}> a = given<{a}>(from); value<{b}> b = given<{b}>(from + 8); (void)b;"]
        lines += [f"    const auto got = {expression}; std::memcpy(to, got.data, sizeof got.data);", "}"]
    lines += ["static void (*const all[])(const uint32_t *, uint32_t *) = {"]
    lines += [f"    run_{number}," for number in range(len(listed))]
    lines += ["};", 'extern "C" void run(size_t number, size_t count, const uint32_t *from, uint32_t *to) {']
    lines += ["    for (size_t k = 0; k < count; k++) all[number](from + 16 * k, to + 16 * k);", "}", MODULE]
    return "\n".join(lines)


def operands(width, rng):
    """Words of values: drawn, short, and at both ends of the range and of a word."""
    mask = (1 << width) - 1
    drawn = [int.from_bytes(rng.bytes(20)) >> int(rng.integers(160)) & mask for _ in range(COUNT - 8)]
    drawn += [0, 1, mask, mask >> 1, mask ^ mask >> 1, 0xFFFF_FFFF & mask, 1 << 32 & mask, mask & ~1]
    return np.array([[value >> 32 * word & 0xFFFF_FFFF for word in range(8)] for value in drawn], np.uint32)


def results(listed, include):
    """The results of every operation for its operands; then the states of the module."""
    made = ctypes.CDLL(str(compiled.library(source(listed), include, ("-O0",))))
    answers = []
    for number, (a, b, expression) in enumerate(listed):
        rng = np.random.default_rng([a, b, *expression.encode()])
        rng.shuffle(second := operands(b, rng))
        given = np.concatenate([operands(a, rng), second], axis=1)
        got = np.zeros((COUNT, 16), np.uint32)
        made.run(ctypes.c_size_t(number), ctypes.c_size_t(COUNT), given.ctypes.data_as(ctypes.c_void_p),
                 got.ctypes.data_as(ctypes.c_void_p))  # fmt: skip
        answers.append(got)
    states = np.zeros((40, 26), np.uint32)
    made.steps(states.ctypes.data_as(ctypes.c_void_p))
    return [*answers, states]


@pytest.fixture(scope="module")
def listed():
    return sorted({*operations()})


@pytest.fixture(scope="module")
def wanted(listed):
    return results(listed, original_headers())


def differing(listed, got, wanted):
    names = [*(f"{expression} of {a} and {b} bits" for a, b, expression in listed), "a module"]
    return [name for name, one, other in zip(names, got, wanted, strict=True) if (one != other).any()]


def test_runtime_gives_what_cxxrtls_own_header_gives(listed, wanted):
    assert differing(listed, results(listed, headers()), wanted) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "shows"),
    [
        (
            "value.h",
            "return is_neg() != other.is_neg() ? is_neg() : is_below(other);",
            "return is_below(other);",
            "lt_ss",
        ),
        ("value.h", "~uint32_t(0) >> ((WORD - N % WORD) % WORD)", "~uint32_t(0)", "not_u"),
        ("value.h", "if (amount.data[n]) return N;", ";", "shr_uu"),
        ("value.h", "(to[1] & ~uint32_t(mask >> WORD))", "to[1]", "c.slice<"),
        ("value.h", "low = given.template cut<Low::bits - 1, 0>();", "", "c.concat(d)"),
        ("value.h", "} else if constexpr (chunks == 1) {", "} else if constexpr (chunks == 2) {", "add_uu"),
        ("cxxrtl.h", "priority < writes[at - 1].priority", "priority > writes[at - 1].priority", "a module"),
        ("cxxrtl.h", "data[each.index] = now;", "", "a module"),
    ],
)
def test_fault_in_the_runtime_is_seen(tmp_path, listed, wanted, file, old, new, shows):
    shutil.copytree(headers(), tmp_path / "runtime")
    header = tmp_path / "runtime" / "cxxrtl" / file
    text = header.read_text(encoding="utf-8")
    assert text.count(old) == 1
    header.write_text(text.replace(old, new), encoding="utf-8")
    chosen = [at for at, (_, _, expression) in enumerate(listed) if shows in expression]
    some, theirs = [listed[at] for at in chosen], [wanted[at] for at in (*chosen, -1)]
    assert differing(some, results(some, tmp_path / "runtime"), theirs)
