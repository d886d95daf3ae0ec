"""The driver on the RTL: the netlist of `hdl.MatrixEngine`, compiled, with a memory on its bus."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import golden
from golden import CBFLOAT16, FP32, Flag
from hdl.engine import CommandFailed, Engine, EngineStuck, TransportError
from hdl.matrix_engine.registers import EngineError, register_named
from tests.project.test_layout import ROOT

pytestmark = pytest.mark.long

SMALL = {"rows": 2, "columns": 2}


@pytest.fixture(autouse=True, scope="module")
def _cache():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CBFLOAT_CACHE", str(ROOT / "build" / "compiled"))
        yield


@pytest.fixture(scope="module")
def engine():
    with Engine.simulated(**SMALL, memory=1 << 16) as found:
        yield found


def codes(shape, seed=1, fmt=CBFLOAT16):
    rng = np.random.default_rng(seed)
    found = np.asarray(golden.encode(rng.normal(size=shape).astype(np.float32), fmt))
    # Few specials: a sum of many would be NaN in any order.
    return np.where(rng.random(shape) < 0.001, rng.integers(0, 1 << fmt.width, shape), found).astype(found.dtype)


def values(shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (3, 70, 5), (17, 33, 6), (2, 0, 3)])
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_product_by_the_rtl_gives_goldens_bits(engine, level, m, k, n, transposed):
    a, b = codes((m, k)), codes((k, n), 2)
    stored = [np.ascontiguousarray(each.T) if flip else each for each, flip in zip((a, b), transposed, strict=True)]
    options = {"operand": CBFLOAT16, "level": level, "chunk": 8}
    found = engine.matmul(*stored, **options, transpose_a=transposed[0], transpose_b=transposed[1])
    assert (found == golden.matmul(a, b, **options)).all()


def test_simulation_of_the_rtl_counts_the_bytes_that_an_engine_reads_and_writes(engine):
    m, k, n = 6, 32, 10
    read, written = engine._transport.bytes_moved
    engine.matmul(codes((m, k)), codes((k, n), 2), operand=CBFLOAT16, level=0)
    now_read, now_written = engine._transport.bytes_moved
    assert now_written - written == 4 * m * n
    # Two rows or columns at a time: all of B for each pair of rows, and of A at least once.
    assert 2 * (m * k + k * n) <= now_read - read <= 2 * (m * k * (n // 2) + k * n * (m // 2))


def test_product_of_values_and_batches_by_the_rtl_gives_goldens_bits(engine):
    a, b = values((3, 9, 21)), values((21, 10), 2)
    wanted = golden.matmul_values(a, b, operand=CBFLOAT16, out=CBFLOAT16)
    found = engine.matmul(a, b, operand=CBFLOAT16, out=CBFLOAT16)
    assert (golden.decode(found, CBFLOAT16).view(np.uint32) == wanted.view(np.uint32)).all()
    given = golden.matmul_values(a, b, operand=CBFLOAT16, out=CBFLOAT16, backend=engine)
    assert (given.view(np.uint32) == wanted.view(np.uint32)).all()


def test_counters_of_a_simulation_may_be_watched_from_another_thread(engine):
    a, b = codes((24, 60)), codes((60, 24), 2)
    engine.clear_counters()
    with ThreadPoolExecutor(1) as pool:
        product = pool.submit(lambda: [engine.matmul(a, b, operand=CBFLOAT16) for _ in range(3)])
        seen = []
        while not product.done():
            seen.append(engine.counters()["beats"])
        assert all((found == golden.matmul(a, b, operand=CBFLOAT16)).all() for found in product.result())
    assert seen == sorted(seen)
    assert len(set(seen)) > 2


def test_simulation_that_is_closed_ends_the_product_of_another_thread():
    engine = Engine.simulated(**SMALL, memory=1 << 16)
    a, b = codes((100, 100)), codes((100, 100), 2)
    with ThreadPoolExecutor(1) as pool:
        product = pool.submit(lambda: [engine.matmul(a, b, operand=CBFLOAT16) for _ in range(100)])
        while not engine.counters()["beats"]:
            pass
        engine.close()
        with pytest.raises(TransportError, match="the transport is closed; make another Engine"):
            product.result()


def test_simulation_has_as_much_patience_as_is_asked_for():
    options = {"memory": 1 << 16, "latency": 1 << 20, "patience": 0.01}
    with Engine.simulated(**SMALL, **options) as engine, pytest.raises(EngineStuck, match=r"no product in 0.01 s"):
        engine.matmul(codes((2, 3)), codes((3, 5)), operand=CBFLOAT16)


def test_product_beyond_the_memory_by_the_rtl_takes_several_commands(engine):
    a, b = codes((200, 64)), codes((64, 150), 2)
    submit, count = register_named("SUBMIT").address, 0
    transport = engine._transport
    write = transport.write

    def counted(address, value):
        nonlocal count
        count += address == submit
        write(address, value)

    transport.write = counted
    try:
        found = engine.matmul(a, b, operand=CBFLOAT16)
    finally:
        del transport.write
    assert (found == golden.matmul(a, b, operand=CBFLOAT16)).all()
    assert count > 1


SPECIAL = [0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000]
SPECIAL += [0x7FC00000, 0xFFC12345, 0x7F800001, 0x3F800001]


def initial_values(shape, level):
    found = np.resize(np.random.default_rng(7).permutation(SPECIAL), shape).astype(np.uint32)
    if level != 2:
        return found
    # A signalling NaN becomes a quiet one.
    return np.where(found == 0x7F800001, CBFLOAT16.inf | 1, golden.convert(found, FP32, CBFLOAT16)).astype(np.uint16)


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("k", [0, 1, 40])
@pytest.mark.parametrize("shape", [(2, 5, 23), (5, 23), (5, 1), (23,), (2, 1, 23), ()])
def test_product_from_initial_values_by_the_rtl_gives_goldens_bits(engine, shape, k, level):
    # Finite factors: initial values that are special show in the result.
    a, b, start = golden.encode(values((2, 5, k)), CBFLOAT16), golden.encode(values((k, 23), 2), CBFLOAT16), None
    start = initial_values(shape, level)
    for options in ({}, {"out": CBFLOAT16}, {"out": FP32}):
        options |= {"operand": CBFLOAT16, "level": level, "chunk": 8, "initial": start}
        assert (engine.matmul(a, b, **options) == golden.matmul(a, b, **options)).all()
        assert (golden.matmul(a, b, **options, backend=engine) == golden.matmul(a, b, **options)).all()


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("start", [False, True])
def test_product_split_over_k_by_the_rtl_goes_on_from_its_totals(level, start):
    a, b = codes((5, 900)), codes((900, 7), 2)
    options = {"operand": CBFLOAT16, "level": level, "chunk": 8, "out": FP32}
    options["initial"] = codes((7,), 3, FP32 if level != 2 else CBFLOAT16) if start else None
    with Engine.simulated(**SMALL, memory=1 << 12) as small:
        lengths, write = [], small._transport.write
        place = register_named("K").address

        def seen(address, value):
            if address == place:
                lengths.append(value)
            write(address, value)

        small._transport.write = seen
        assert (small.matmul(a, b, **options) == golden.matmul(a, b, **options)).all()
    assert lengths
    assert lengths[0] < 900


def test_product_longer_than_a_buffer_is_one_chain(engine):
    long = codes((1, 4_000), 5), codes((4_000, 2), 6)
    assert (engine.matmul(*long, operand=CBFLOAT16) == golden.matmul(*long, operand=CBFLOAT16)).all()


def test_flags_and_counters_of_the_rtl_are_read(engine):
    one, tiny = golden.encode([[1.0]], CBFLOAT16), golden.encode([[2.0**-39]], CBFLOAT16)
    engine.matmul(one, one, operand=CBFLOAT16, level=2)
    assert engine.flags == Flag(0)
    engine.matmul(tiny, tiny, operand=CBFLOAT16, level=2)
    assert engine.flags == Flag.UNDERFLOW | Flag.INEXACT
    engine.clear_counters()
    assert engine.counters()["cycles"] == 0
    engine.matmul(codes((8, 64)), codes((64, 8)), operand=CBFLOAT16, level=0)
    counted = engine.counters()
    assert counted["products"] == 8 * 64 * 8
    assert counted["beats"] * 4 == counted["products"]
    assert counted["cycles"] > counted["beats"]


def test_wrong_bus_address_ends_the_product_with_the_cause(engine):
    transport = engine._transport
    write, place = transport.write, register_named("B_ADDRESS").address
    transport.write = lambda address, value: write(address, 1 << 24 if address == place else value)
    a = codes((4, 4))
    try:
        with pytest.raises(CommandFailed, match=r"READ.: the bus answered a read with an error") as raised:
            engine.matmul(codes((4, 5)), codes((5, 6)), operand=CBFLOAT16)
    finally:
        del transport.write
    assert raised.value.error is EngineError.READ
    assert (engine.matmul(a, a, operand=CBFLOAT16) == golden.matmul(a, a, operand=CBFLOAT16)).all()


def test_write_to_a_register_that_cannot_be_written_is_an_error(engine):
    with pytest.raises(TransportError, match="register 0x0: the bus answered with error 2"):
        engine._transport.write(0, 1)


@pytest.mark.parametrize("latency", [0, 150])
def test_latency_of_the_memory_costs_cycles_and_changes_no_bit(engine, latency):
    a, b = codes((8, 64)), codes((64, 8), 2)
    engine.clear_counters()
    wanted = engine.matmul(a, b, operand=CBFLOAT16)
    usual = engine.counters()["cycles"]
    with Engine.simulated(**SMALL, latency=latency) as other:
        assert (other.matmul(a, b, operand=CBFLOAT16) == wanted).all()
        assert (other.counters()["cycles"] > usual) == (latency > 20)


@pytest.mark.parametrize("latency", [0, 150])
def test_latency_of_the_only_slice_is_counted_as_waiting_for_operands(latency):
    with Engine.simulated(**SMALL, latency=latency) as engine:
        engine.matmul(codes((1, 8)), codes((8, 1), 2), operand=CBFLOAT16)
        assert latency <= engine.counters()["stalls"]["load"] < latency + 50


def test_simulation_is_compiled_once(engine, monkeypatch, tmp_path):
    # Other tests compile into the common folder at the same time.
    for each in (ROOT / "build" / "compiled").iterdir():
        (tmp_path / each.name).symlink_to(each)
    monkeypatch.setenv("CBFLOAT_CACHE", str(tmp_path))
    before = {*tmp_path.iterdir()}
    with Engine.simulated(**SMALL) as again:
        assert again.info()["rows"] == 2
    assert {*tmp_path.iterdir()} == before
    monkeypatch.setenv("CXX", "false")
    with pytest.raises(RuntimeError, match=r"false .* failed with status 1"):
        Engine.simulated(**SMALL, size_bits=7)


def test_simulation_that_is_closed_says_so():
    engine = Engine.simulated(**SMALL)
    engine.close()
    for use in (engine.counters, lambda: engine.matmul(codes((2, 3)), codes((3, 2)), operand=CBFLOAT16)):
        with pytest.raises(TransportError, match=r"simulation, .*: the transport is closed; make another Engine"):
            use()
    with pytest.raises(TransportError, match="the transport is closed"):
        engine._transport.read_memory(0, 4)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"latency": -1}, "latency: got -1, must be an int from 0 to"),
        ({"memory": 10}, "memory: got 10, must be an int of at least 4096"),
        ({"operands": "cbfloat61"}, "operands: got 'cbfloat61', must be a FloatFormat or one of"),
        ({"rows": 3}, "rows: got 3, must be a power of two"),
        ({"levels": (3,)}, "levels: got "),
    ],
)
def test_wrong_argument_of_a_simulation_raises_an_error_that_names_it(given, message):
    with pytest.raises(ValueError, match=message):
        Engine.simulated(**given)


def test_engine_by_name_serves_a_block_of_golden(monkeypatch):
    monkeypatch.setattr("golden.arrays.backends._loaded", {})
    with golden.backend("simulated"):
        a, b = codes((9, 12)), codes((12, 7), 2)
        found = golden.matmul(a, b, operand=CBFLOAT16, level=2)
        dots = golden.dot(a, b.T[:1], operand=CBFLOAT16)
        with pytest.raises(ValueError, match="backend: got 'simulated', but the engine takes cbfloat16, not float16"):
            golden.matmul(a, b, operand="float16")
    assert (found == golden.matmul(a, b, operand=CBFLOAT16, level=2)).all()
    assert (dots == golden.dot(a, b.T[:1], operand=CBFLOAT16)).all()
