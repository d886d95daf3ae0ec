"""The driver without hardware: a double obeys the registers' protocol, and golden computes behind it."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import golden
from golden import BF16, CBFLOAT16, FP16, FP32, Flag, Reduction
from hdl.engine import CommandFailed, Engine, EngineStuck, TransportError
from hdl.engine.plan import Shape, Sizes, planned
from hdl.matrix_engine.registers import EngineError, Initial, register_named

from .engine_double import Double


def codes(shape, seed=1, fmt=CBFLOAT16):
    rng = np.random.default_rng(seed)
    found = np.asarray(golden.encode(rng.normal(size=shape).astype(np.float32), fmt))
    # Few specials: a sum of many would be NaN in any order.
    return np.where(rng.random(shape) < 0.001, rng.integers(0, 1 << fmt.width, shape), found).astype(found.dtype)


def values(shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def engine_with(**options):
    double = Double(**options)
    return Engine(double), double


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_matmul_of_codes_gives_goldens_bits_at_each_level_and_transposition(level, transposed):
    engine, double = engine_with()
    a, b = codes((5, 37)), codes((37, 6), 2)
    stored = [np.ascontiguousarray(each.T) if flip else each for each, flip in zip((a, b), transposed, strict=True)]
    found = engine.matmul(
        *stored, operand="cbfloat16", level=level, chunk=8, transpose_a=transposed[0], transpose_b=transposed[1]
    )
    wanted = golden.matmul(a, b, operand=CBFLOAT16, level=level, chunk=8)
    assert found.dtype == wanted.dtype
    assert (found == wanted).all()
    (command,) = double.commands
    assert (command["options"]["a_transposed"], command["options"]["b_transposed"]) == transposed
    assert command["CHUNK"] == (0 if level == 0 else 8)


def test_matmul_of_values_lets_the_engine_round_them():
    engine, double = engine_with()
    a, b = values((4, 9)), values((9, 3), 2)
    found = engine.matmul(a, codes((9, 3), 2), operand=CBFLOAT16)
    assert (found == golden.matmul(golden.encode(a, CBFLOAT16), codes((9, 3), 2), operand=CBFLOAT16)).all()
    assert (double.commands[0]["options"]["a_float32"], double.commands[0]["options"]["b_float32"]) == (1, 0)
    plain, without = engine_with(operands=0b111)
    encoded = [golden.encode(each, BF16) for each in (a, b)]
    assert (plain.matmul(a, b, operand=BF16) == golden.matmul(*encoded, operand=BF16)).all()
    assert without.commands[0]["options"]["a_float32"] == 0


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ((2, 3, 4), Initial.MATRIX),
        ((3, 4), Initial.MATRIX),
        ((3, 1), Initial.MATRIX),
        ((4,), Initial.ROW),
        ((2, 1, 4), Initial.ROW),
        ((), Initial.ROW),
        ((1, 1, 1), Initial.ROW),
    ],
)
def test_matmul_starts_from_initial_values_of_any_shape(shape, kind):
    engine, double = engine_with()
    a, b, start = codes((2, 3, 9)), codes((9, 4), 2), codes(shape, 3, FP32)
    found = engine.matmul(a, b, operand=CBFLOAT16, initial=start)
    assert (found == golden.matmul(a, b, operand=CBFLOAT16, initial=start)).all()
    assert double.commands[0]["options"]["initial"] == kind
    given = values(shape, 4)
    wanted = golden.matmul(a, b, operand=CBFLOAT16, level=2, initial=golden.encode(given, CBFLOAT16))
    assert (engine.matmul(a, b, operand=CBFLOAT16, level=2, initial=given) == wanted).all()


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 3, 4, 5), (5, 2)),
        ((4, 5), (2, 3, 5, 2)),
        ((2, 1, 4, 5), (3, 5, 2)),
        ((1, 4, 5), (1, 1, 5, 2)),
        ((0, 4, 5), (5, 2)),
    ],
)
def test_matmul_broadcasts_leading_axes(a, b):
    engine, double = engine_with()
    x, y = codes(a), codes(b, 2)
    found, wanted = engine.matmul(x, y, operand=CBFLOAT16), golden.matmul(x, y, operand=CBFLOAT16)
    assert found.shape == wanted.shape
    assert (found == wanted).all()
    assert len(double.commands) == (wanted.size > 0)


@pytest.mark.parametrize(("m", "k", "n"), [(0, 3, 2), (2, 3, 0), (2, 0, 3), (1, 1, 1)])
def test_matmul_of_empty_matrices_gives_initial_values(m, k, n):
    engine, _ = engine_with()
    a, b, start = codes((m, k)), codes((k, n)), codes((m, n), 3, FP32)
    found = engine.matmul(a, b, operand=CBFLOAT16, initial=start)
    assert (found == golden.matmul(a, b, operand=CBFLOAT16, initial=start)).all()


def test_matmul_of_a_view_takes_its_strides():
    engine, double = engine_with()
    whole = codes((24, 22))
    for a in (whole[::3, 1::2], whole.T[2:9, ::-2], np.asfortranarray(whole)[::-1]):
        b = codes((a.shape[1], 3), 2)
        assert (engine.matmul(a, b, operand=CBFLOAT16) == golden.matmul(a, b, operand=CBFLOAT16)).all()
    assert [each["options"]["a_transposed"] for each in double.commands] == [0, 1, 1]


def test_matmul_converts_results_and_rounds_in_a_mode():
    engine, double = engine_with()
    a, b = codes((3, 40)), codes((40, 5), 2)
    options = {"operand": CBFLOAT16, "level": 1, "rounding": "up"}
    assert (engine.matmul(a, b, **options, out="float16") == golden.matmul(a, b, **options, out=FP16)).all()
    assert (engine.matmul(a, b, **options, out=FP32) == golden.matmul(a, b, **options)).all()
    assert [each["options"]["d_converted"] for each in double.commands] == [1, 0]
    assert engine.flags == Flag.INEXACT


SMALL = (600, 1500, 4000)


@pytest.mark.parametrize("size", SMALL)
@pytest.mark.parametrize(("level", "chunk"), [(0, 32), (1, 8), (2, 8), (1, 32)])
@pytest.mark.parametrize("start", [False, True])
def test_matmul_beyond_the_memory_takes_several_commands(size, level, chunk, start):
    engine, double = engine_with(size=size, base=0x1003)
    a, b = codes((3, 17, 133)), codes((133, 11), 2)
    outer = Reduction.for_level(level, CBFLOAT16).outer
    options = {"operand": CBFLOAT16, "level": level, "chunk": chunk, "out": "float16"}
    options["initial"] = codes((11,), 3, outer) if start else None
    assert (engine.matmul(a, b, **options) == golden.matmul(a, b, **options)).all()
    assert len(double.commands) > 3


def test_matmul_beyond_the_sizes_of_the_engine_takes_several_commands():
    engine, double = engine_with(size_bits=4, chunk_bits=3)
    a, b = codes((17, 40)), codes((40, 20), 2)
    for level, chunk in ((0, None), (1, 4), (2, 7)):
        options = {"operand": CBFLOAT16, "level": level, "chunk": chunk}
        assert (engine.matmul(a, b, **options) == golden.matmul(a, b, **options)).all()
    assert all(max(each[name] for name in "MNK") < 16 for each in double.commands)
    with pytest.raises(ValueError, match=r"a, b: got 40 products a result, must be at most 15, .*; shorter chunk"):
        engine.matmul(a, b, operand=CBFLOAT16, chunk=None)
    with pytest.raises(ValueError, match=r"chunk: got 8, must be at most 7, as the engine is built$"):
        engine.matmul(a, b, operand=CBFLOAT16, chunk=8)
    with pytest.raises(ValueError, match="chunk: got 8, must be at most 7, as the engine is built, or None for one"):
        engine.matmul(a[:, :9], b[:9], operand=CBFLOAT16, chunk=8)


def test_chunk_beyond_the_sizes_of_the_engine_is_refused_before_a_command():
    engine, double = engine_with(size_bits=4)
    a, b = codes((3, 40)), codes((40, 2), 2)
    with pytest.raises(ValueError, match=r"chunk: got 20, must be at most 15, as the engine is built$"):
        engine.matmul(a, b, operand=CBFLOAT16, chunk=20)
    with pytest.raises(ValueError, match="of the engine chunk: got 20, must be at most 15"):
        golden.matmul(a, b, operand=CBFLOAT16, chunk=20, backend=engine)
    assert not double.commands
    assert (engine.matmul(a, b, operand=CBFLOAT16, chunk=15) == golden.matmul(a, b, operand=CBFLOAT16, chunk=15)).all()


def test_memory_beyond_the_addresses_of_the_engine_is_not_used():
    engine, double = engine_with(size=1 << 17, base=0xF000, address_bits=16)
    assert engine.info()["memory"] == (0xF000, 0x1000)
    a, b = codes((40, 60)), codes((60, 50), 2)
    assert (engine.matmul(a, b, operand=CBFLOAT16) == golden.matmul(a, b, operand=CBFLOAT16)).all()
    done = len(double.commands)
    assert done > 1
    with pytest.raises(ValueError, match="takes 20008 bytes of the engine's memory, must take at most 4096; shorter"):
        engine.matmul(codes((1, 2000)), codes((2000, 1)), operand=CBFLOAT16, chunk=None)
    assert len(double.commands) == done
    with pytest.raises(ValueError, match="memory: got address 0x10000, must be below 0x10000, as the engine is built"):
        engine_with(base=0x10000, address_bits=16)


def test_matmul_that_no_command_fits_says_what_it_needs():
    engine, _ = engine_with(size=256)
    with pytest.raises(ValueError, match=r"got 90 products a result; even a part .* must take at most 256; shorter"):
        engine.matmul(codes((1, 90)), codes((90, 1)), operand=CBFLOAT16, chunk=None)
    without, _ = engine_with(size=256, initial=0)
    with pytest.raises(ValueError, match=r"got 90 products a result; even .*; an engine built with initial=F"):
        without.matmul(codes((1, 90)), codes((90, 1)), operand=CBFLOAT16, level=0)
    without, _ = engine_with(size_bits=4, initial=0)
    with pytest.raises(ValueError, match=r"got 90 products a result, must be at most 15, .*; an engine built with"):
        without.matmul(codes((1, 90)), codes((90, 1)), operand=CBFLOAT16, level=0)


def test_matmul_keeps_an_operand_that_is_there_and_writes_one_that_is_not():
    engine, double = engine_with(size=4000)
    written = []
    write = double.write_memory
    double.write_memory = lambda at, content: (written.append((at, len(content))), write(at, content))[1]
    a, b = codes((100, 20)), codes((20, 40), 2)
    assert (engine.matmul(a, b, operand=CBFLOAT16) == golden.matmul(a, b, operand=CBFLOAT16)).all()
    assert len(written) < 2 * len(double.commands)
    a[:] = codes((100, 20), 9)
    assert (engine.matmul(a, b, operand=CBFLOAT16) == golden.matmul(a, b, operand=CBFLOAT16)).all()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"operand": "cb16"}, ValueError, "operand: got cb16, must be one of cbfloat16, float16, bfloat16, as"),
        ({"operand": golden.FloatFormat("cbfloat16", 6, 9, 30)}, ValueError, "operand: got "),
        ({"operand": 3}, TypeError, "operand: got 3, must be a FloatFormat or the name"),
        ({"level": 2}, ValueError, "level: got 2, must be one of 0, 1, as the engine is built"),
        ({"level": "1"}, TypeError, "level: got '1', must be one of 0, 1"),
        ({"chunk": 0}, ValueError, "chunk: got 0, must be at least 1, or None"),
        ({"chunk": -1, "level": 0}, ValueError, "chunk: got -1, must be at least 1, or None"),
        ({"chunk": "x", "level": 0}, TypeError, "chunk: got 'x', must be an int of at least 1, or None"),
        ({"rounding": "to_odd"}, ValueError, "rounding: got to_odd, must be one of nearest_even, toward_zero, down"),
        ({"out": "float8_e5m2"}, ValueError, "out: got float8_e5m2, must be one of float32, cbfloat16"),
        ({"transpose_a": 1}, TypeError, "transpose_a: got 1, must be True or False"),
        ({"a": codes((2, 2, 4))}, ValueError, r"a, b: got shapes \(2, 2, 4\) and \(3, 5\), transposed as asked, must"),
        ({"a": codes((3,))}, ValueError, r"a: got shape \(3,\), must have at least two axes"),
        ({"a": codes((2, 2, 3)), "b": codes((3, 3, 5))}, ValueError, "a, b: got shapes .* leading axes must broadcast"),
        ({"a": np.ones((2, 3))}, TypeError, "a: got float64, must be unsigned codes or float32; astype"),
        ({"b": np.ones((3, 5), np.int16)}, TypeError, "b: got int16, must be uint16 codes of cbfloat16, or float32"),
        ({"b": np.full((3, 5), 1 << 16, np.uint32)}, ValueError, "b: got code 0x10000, must fit the 16 bits of cbfl"),
        ({"b": [[1, 2], [3]]}, ValueError, "b: got .* must be an array, or lists of equal lengths"),
        ({"a": np.ma.ones((2, 3))}, TypeError, "a: got a masked array"),
        (
            {"initial": codes((3, 5), 1, FP32)},
            ValueError,
            r"initial: got shape \(3, 5\), must broadcast to the result's",
        ),
        ({"initial": codes((1, 2, 5), 1, FP32)}, ValueError, r"initial: got shape \(1, 2, 5\), must broadcast to"),
    ],
)
def test_wrong_argument_raises_an_error_that_names_it(change, error, message):
    engine, double = engine_with(levels=0b11)
    given = {"a": codes((2, 3)), "b": codes((3, 5)), "operand": CBFLOAT16} | change
    with pytest.raises(error, match=message):
        engine.matmul(given.pop("a"), given.pop("b"), **given)
    assert not double.commands


@pytest.mark.parametrize(
    ("transport", "patience", "error", "said"),
    [
        ("/dev/ttyUSB0", 1, TypeError, "transport: got '/dev/ttyUSB0'; Engine.serial and Engine.mapped take a name"),
        (Double(), "10", TypeError, "patience: got '10', must be a number of seconds above 0"),
        (Double(), -1, ValueError, "patience: got -1, must be above 0 seconds"),
        (Double(), float("nan"), ValueError, "patience: got nan, must be above 0 seconds"),
    ],
)
def test_engine_with_a_wrong_argument_names_it(transport, patience, error, said):
    with pytest.raises(error, match=said):
        Engine(transport, patience=patience)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8])
def test_level_of_numpys_types_is_a_level_like_any(dtype):
    engine, _ = engine_with()
    a, b = codes((2, 3)), codes((3, 5))
    for level in (0, 1, 2):
        wanted = golden.matmul(a, b, operand=CBFLOAT16, level=level)
        assert (engine.matmul(a, b, operand=CBFLOAT16, level=dtype(level)) == wanted).all()


def test_batch_whose_matrices_lie_4_gib_apart_takes_a_command_for_each():
    sizes = Sizes(2, 2, 0, 4, *[False] * 6, word=8)
    for side, together in ((32768, 2), (65536, 1)):
        plan = planned(Shape(2, side, 1, side), sizes, 1 << 36, 1 << 20, 1, "")
        assert plan.block == (together, side, 1, side)
    engine, double = engine_with()
    engine.matmul(codes((3, 4, 5)), codes((3, 5, 2)), operand=CBFLOAT16)
    engine.matmul(codes((1, 4, 5)), codes((1, 5, 2)), operand=CBFLOAT16)
    names = ("A_BATCH_STRIDE", "B_BATCH_STRIDE", "D_BATCH_STRIDE")
    assert [[each[name] for name in names] for each in double.commands] == [[64, 40, 32], [0, 0, 0]]


def test_row_beyond_a_register_is_refused():
    device = Engine(Double())._device
    with pytest.raises(ValueError, match="A_ROW_STRIDE would be 0x100000000, must fit the register's 32 bits"):
        device.run({"A_ROW_STRIDE": 1 << 32})


def test_engine_without_initial_values_refuses_them():
    engine, _ = engine_with(initial=0)
    with pytest.raises(ValueError, match="initial: got an array, must be None, as the engine is built"):
        engine.matmul(codes((2, 3)), codes((3, 5)), operand=CBFLOAT16, initial=0)
    with pytest.raises(ValueError, match=r"the engine was built without initial values; .*numpy and exact serve this"):
        golden.matmul(codes((2, 3)), codes((3, 5)), operand=CBFLOAT16, initial=np.uint32(0), backend=engine)


def test_empty_product_with_a_conversion_to_the_outer_format_itself_gives_its_nan():
    a, b, start = codes((2, 0)), codes((0, 1)), np.array([[0x7F800001], [0xFFC12345]], np.uint32)
    for engine, double in (engine_with(), engine_with(results=0)):
        options = {"operand": CBFLOAT16, "initial": start}
        assert (engine.matmul(a, b, **options) == start).all()
        if double.words["FORMATS"] >> 16:
            assert (engine.matmul(a, b, **options, out=FP32) == FP32.nan).all()
            assert (golden.matmul(a, b, **options, out=FP32) == FP32.nan).all()
            continue
        with pytest.raises(ValueError, match="out: got float32, must be one of "):
            engine.matmul(a, b, **options, out=FP32)


@pytest.mark.parametrize("error", [each for each in EngineError if each])
def test_error_of_the_engine_is_an_exception_that_names_the_cause(error):
    engine, double = engine_with(fail=error)
    with pytest.raises(CommandFailed, match=rf"error {error.value} .{error.name}.: .*[a-z]") as raised:
        engine.matmul(codes((2, 3)), codes((3, 5)), operand=CBFLOAT16)
    assert raised.value.error is error
    double.fail = None
    assert engine.matmul(codes((2, 3)), codes((3, 5)), operand=CBFLOAT16).shape == (2, 5)


def test_unknown_error_of_the_engine_is_an_exception_too():
    engine, _ = engine_with(fail=77)
    with pytest.raises(CommandFailed, match=r"error 77 .unknown.: a code that this driver does not know"):
        engine.matmul(codes((2, 3)), codes((3, 5)), operand=CBFLOAT16)


def test_engine_that_does_nothing_is_given_up_and_reset():
    double = Double(hangs=True)
    engine = Engine(double, patience=0.02)
    with pytest.raises(EngineStuck, match=r"no product in 0.02 s; STATUS: "):
        engine.matmul(codes((2, 3)), codes((3, 5)), operand=CBFLOAT16)
    assert double.resets == 2
    double.hangs = False
    a, b = codes((2, 3)), codes((3, 5))
    assert (engine.matmul(a, b, operand=CBFLOAT16) == golden.matmul(a, b, operand=CBFLOAT16)).all()


class Slow(Double):
    """A double on which waiting takes a second, and its commands `seconds`; a cycle takes a millisecond."""

    def __init__(self, monkeypatch, seconds):
        super().__init__(delay=0)
        self.now, self.seconds, self.until, self.hangs = 0.0, seconds, None, True
        self.words["CYCLES"] = (1 << 32) - 500
        monkeypatch.setattr("time.monotonic", lambda: self.now)

    def run(self, tag):
        cycles, self.until = self.words["CYCLES"], self.now + self.seconds
        try:
            return super().run(tag)
        finally:
            self.words["CYCLES"] = cycles

    def wait(self, seconds):
        self.now += 1.0
        self.words["CYCLES"] = (self.words["CYCLES"] + 1000 * bool(self.results)) % (1 << 32)
        self.hangs = self.until is not None and self.now < self.until


def test_results_without_products_may_take_the_cycles_that_they_need(monkeypatch):
    a, b, start = codes((40, 0)), codes((0, 25)), codes((40, 25), 3, FP32)
    double = Slow(monkeypatch, seconds=60)
    assert (Engine(double).matmul(a, b, operand=CBFLOAT16, initial=start) == start).all()
    double = Slow(monkeypatch, seconds=10_000)
    with pytest.raises(EngineStuck, match="no product in 10 s"):
        Engine(double).matmul(a, b, operand=CBFLOAT16, initial=start)
    assert 100 <= double.now < 130
    double = Slow(monkeypatch, seconds=60)
    with pytest.raises(EngineStuck, match="no product in 10 s"):
        Engine(double).matmul(codes((40, 1)), codes((1, 25)), operand=CBFLOAT16)


def interrupted(double, then):
    """Make the next wait call `then` and be interrupted."""

    def wait(seconds):
        then()
        double.wait = lambda seconds: None
        raise KeyboardInterrupt

    double.wait = wait
    engine = Engine(double, patience=0.02)
    with pytest.raises(KeyboardInterrupt):
        engine.matmul(codes((2, 3)), codes((3, 5)), operand=CBFLOAT16)
    return engine


def test_product_that_is_interrupted_leaves_the_engine_idle():
    double = Double(hangs=True)
    engine = interrupted(double, lambda: setattr(double, "hangs", False))
    assert double.resets == 2
    assert not double.results
    a, b = codes((2, 3)), codes((3, 5))
    assert (engine.matmul(a, b, operand=CBFLOAT16) == golden.matmul(a, b, operand=CBFLOAT16)).all()


def test_product_that_is_interrupted_on_a_dead_bus_still_ends_with_the_interrupt():
    double, busy = Double(hangs=True), register_named("STATUS").word(busy=1)
    engine = interrupted(double, lambda: double.words.update(STATUS=busy))
    a, b = codes((2, 3)), codes((3, 5))
    with pytest.raises(EngineStuck, match=r"STATUS: busy for 0.02 s after a reset"):
        engine.matmul(a, b, operand=CBFLOAT16)
    double.words["STATUS"], double.hangs = 0, False
    assert (engine.matmul(a, b, operand=CBFLOAT16) == golden.matmul(a, b, operand=CBFLOAT16)).all()


def test_result_of_somebody_else_is_found():
    engine, double = engine_with()
    run = double.run
    double.run = lambda tag: run(tag ^ 1)
    with pytest.raises(TransportError, match=r"RESULT: got tag \d+, must be \d+: somebody else uses the engine"):
        engine.matmul(codes((2, 3)), codes((3, 5)), operand=CBFLOAT16)


def test_drivers_count_from_tags_of_their_own():
    tags = set()
    for _ in range(20):
        engine, double = engine_with()
        for _ in range(2):
            engine.matmul(codes((2, 3)), codes((3, 5)), operand=CBFLOAT16)
        first, second = (command["tag"] for command in double.commands)
        assert second == (first + 1) % 256
        tags.add(first)
    assert len(tags) > 5


def test_something_else_at_the_address_is_found():
    with pytest.raises(TransportError, match="ID: got 0xffff in its upper half, must be 0x4d45"):
        Engine(Double(identity=0xFFFFFFFF))
    with pytest.raises(TransportError, match="ID: got version 99 of the registers, must be 1"):
        Engine(Double(identity=0x4D45 << 16 | 99))


def test_info_tells_what_the_engine_was_built_for():
    engine, _ = engine_with(levels=0b101, roundings=0b11, operands=0b1001, results=0, subnormals_flush=1)
    info = engine.info()
    assert (info["rows"], info["columns"], info["bus_width"], info["levels"]) == (4, 4, 64, (0, 2))
    assert (info["operands"], info["results"], info["float32_operands"]) == (("cbfloat16", "cb16"), (), False)
    assert info["subnormals"] == "flush"
    assert info["memory"] == (0x1000, 1 << 20)
    assert info["riscv"] == {"G": 1, "psm": 0, "rnd": ("nearest_even", "toward_zero")}


def test_counters_count_until_they_are_cleared_and_the_connection_ends():
    with Engine(double := Double()) as engine:
        engine.matmul(codes((2, 3)), codes((3, 5)), operand=CBFLOAT16)
        found = engine.counters()
        assert (found["cycles"], found["beats"], found["products"]) == (100, 1, 16)
        assert found["stalls"] == {"load": 0, "array": 0, "store": 0}
        engine.clear_counters()
        assert engine.counters()["beats"] == 0
    assert double.closed


class Lossy(Double):
    """A double whose answer to the next write of one register is lost, after the write has taken effect."""

    lost = None

    def write(self, address, value):
        super().write(address, value)
        if address == self.lost:
            self.lost = None
            raise TransportError("lost")


@pytest.mark.parametrize("register", ["CHUNK", "K", "OPTIONS", "SUBMIT"])
def test_product_after_a_lost_answer_to_a_write_has_goldens_bits(register):
    double = Lossy()
    engine = Engine(double)
    a, b = codes((4, 64)), codes((64, 4), 2)
    engine.matmul(a, b, operand=CBFLOAT16)
    double.lost = register_named(register).address
    with pytest.raises(TransportError, match="lost"):
        engine.matmul(a[:, :32], b[:32], operand=CBFLOAT16, level=2, chunk=16)
    assert (engine.matmul(a, b, operand=CBFLOAT16) == golden.matmul(a, b, operand=CBFLOAT16)).all()


def test_product_after_a_reset_that_also_failed_resets_again_and_has_goldens_bits():
    double = Lossy()
    engine = Engine(double)
    a, b = codes((4, 64)), codes((64, 4), 2)
    submit, control = (register_named(name).address for name in ("SUBMIT", "CONTROL"))
    double.lost, write = submit, double.write

    def failing(address, value):
        if address == control:
            raise TransportError("lost, too")
        write(address, value)

    double.write = failing
    with pytest.raises(TransportError, match=r"^lost$"):
        engine.matmul(a, b, operand=CBFLOAT16)
    double.write = write
    assert (engine.matmul(a, b, operand=CBFLOAT16) == golden.matmul(a, b, operand=CBFLOAT16)).all()


def test_products_of_two_threads_have_goldens_bits():
    engine, _ = engine_with()

    def product(seed):
        a, b = codes((12, 60), seed), codes((60, 12), seed + 100)
        return (engine.matmul(a, b, operand=CBFLOAT16) == golden.matmul(a, b, operand=CBFLOAT16)).all()

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(product, range(40)))
