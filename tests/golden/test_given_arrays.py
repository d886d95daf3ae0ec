"""Arrays of every layout and class give the bits of a plain one; what would lose something is refused by name."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import golden
from golden import CBFLOAT16, FLOAT8_E4M3FN, FP32, kernels, mx

SHAPE = (33, 35)
Array = NDArray[Any]


class Subclass(np.ndarray):
    """An array by another name."""


def _strided(x: Array) -> Array:
    return np.repeat(np.repeat(x, 2, 0), 2, 1)[::2, ::2]


def _unaligned(x: Array) -> Array:
    found = np.empty(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    found[...] = x
    return found


def _read_only(x: Array) -> Array:
    found = x.copy()
    found.flags.writeable = False
    return found


def _field(x: Array) -> Array:
    found = np.zeros(x.shape, [("other", np.uint8), ("x", x.dtype)])
    found["x"] = x
    return found["x"]


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "big-endian": lambda x: x.astype(x.dtype.newbyteorder(">")),
    "big-endian and strided": lambda x: _strided(x.astype(x.dtype.newbyteorder(">"))),
    "column by column": np.asfortranarray,
    "strided": _strided,
    "backwards": lambda x: x[::-1, ::-1],
    "one row repeated": lambda x: np.broadcast_to(x[:1], x.shape),
    "one column repeated": lambda x: np.broadcast_to(x[:, :1], x.shape),
    "overlapping": lambda x: np.lib.stride_tricks.sliding_window_view(x.ravel(), x.shape[1])[: len(x)],
    "unaligned": _unaligned,
    "field of a structure": _field,
    "read-only": _read_only,
    "matrix": lambda x: x.view(np.matrix),
    "subclass": lambda x: x.view(Subclass),
}


def _values(number: int, dtype: Any = np.float32) -> Array:
    rng = np.random.default_rng(number)
    return (rng.normal(size=SHAPE) * np.exp2(rng.integers(-9, 9, SHAPE))).astype(dtype)


def _codes(number: int) -> Array:
    return np.asarray(golden.encode(_values(number), CBFLOAT16))


A, B, FLOATS = _codes(1), _codes(2), _values(3)
SCALES, ELEMENTS = mx.quantize(_values(4), FLOAT8_E4M3FN, block=5)
WORDS = np.random.default_rng(5).integers(0, 1 << 16, SHAPE, np.uint16)
START = np.asarray(golden.encode(_values(6)[:, :33], FP32))
#: Calls with all array arguments by name: each is given in another layout in turn.
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any], dict[str, Array]]] = {
    "encode float16": (golden.encode, {"fmt": CBFLOAT16}, {"values": _values(3, np.float16)}),
    "encode float32": (golden.encode, {"fmt": CBFLOAT16}, {"values": FLOATS}),
    "encode float64": (golden.encode, {"fmt": FP32}, {"values": _values(3, np.float64)}),
    "encode up": (golden.encode, {"fmt": CBFLOAT16, "rounding": "up"}, {"values": FLOATS}),
    "encode stochastic": (
        golden.encode,
        {"fmt": CBFLOAT16, "rounding": "stochastic"},
        {"values": FLOATS, "random": WORDS},
    ),
    "quantize": (golden.quantize, {"fmt": CBFLOAT16}, {"values": FLOATS}),
    "decode": (golden.decode, {"fmt": CBFLOAT16}, {"codes": A}),
    "convert": (golden.convert, {"source": CBFLOAT16, "destination": FLOAT8_E4M3FN}, {"codes": A}),
    "multiply_accumulate": (
        golden.multiply_accumulate,
        {"operand": CBFLOAT16, "accumulator": CBFLOAT16},
        {"a": A, "b": B, "acc": B[::-1].copy()},
    ),
    "dot": (golden.dot, {"operand": CBFLOAT16, "level": 2}, {"a": A, "b": B}),
    "matmul": (
        golden.matmul,
        {"operand": CBFLOAT16},
        {"a": A, "b": np.ascontiguousarray(B.T), "initial": START},
    ),
    "matmul_values": (
        golden.matmul_values,
        {"operand": CBFLOAT16, "level": 0},
        {"a": FLOATS, "b": np.ascontiguousarray(FLOATS.T), "initial": FLOATS[:, :33].copy()},
    ),
    "softmax": (golden.softmax, {"fmt": CBFLOAT16}, {"codes": A}),
    "mx.quantize": (mx.quantize, {"element": FLOAT8_E4M3FN, "block": 5}, {"values": FLOATS}),
    "mx.dequantize": (mx.dequantize, {"element": FLOAT8_E4M3FN}, {"scales": SCALES, "codes": ELEMENTS}),
}
EVERY_ARGUMENT = [(call, name) for call, (_, _, arrays) in CALLS.items() for name in arrays]


def _all(found: Any) -> list[Array]:
    return list(found) if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("path", ["auto", "numpy"])
def test_array_of_any_layout_or_class_gives_the_bits_of_a_plain_one(layout: str, path: str) -> None:
    with kernels.use(path):
        for call, name in EVERY_ARGUMENT:
            function, options, arrays = CALLS[call]
            given = LAYOUTS[layout](arrays[name])
            plain = np.array(given, arrays[name].dtype, order="C", subok=False)
            found, wanted = (_all(function(**options, **arrays | {name: each})) for each in (given, plain))
            for got, want in zip(found, wanted, strict=True):
                assert type(got) is np.ndarray, (call, name)
                assert (got.dtype, got.shape, got.tobytes()) == (want.dtype, want.shape, want.tobytes()), (call, name)


@pytest.mark.parametrize(("call", "name"), EVERY_ARGUMENT)
def test_masked_array_is_refused_by_name_with_its_remedy(call: str, name: str) -> None:
    # A mask was lost: encode of the masked array [--] of 1.0 was 0x3e00.
    function, options, arrays = CALLS[call]
    masked = np.ma.MaskedArray(arrays[name], mask=np.arange(arrays[name].size) == 0)
    for given in (masked, [masked], [[np.ma.masked]]):
        with pytest.raises(
            TypeError, match=rf"^{name}: got a masked array, must be .* without a mask; filled\(value\)"
        ):
            function(**options, **arrays | {name: given})


def test_masked_array_that_takes_the_result_or_names_rows_is_refused_by_name() -> None:
    out, rows = np.ma.MaskedArray(np.empty_like(FLOATS)), np.ma.MaskedArray([0, 1], mask=[True, False])
    with pytest.raises(TypeError, match=r"^out: got a masked array"):
        golden.quantize(FLOATS, CBFLOAT16, out=out)
    with pytest.raises(TypeError, match=r"^counted_rows: got a masked array"):
        golden.matmul(A, A.T, operand=CBFLOAT16, counts=True, counted_rows=rows)


@pytest.mark.parametrize("dtype", [object, "U3", "M8[s]", [("x", np.float32)]])
@pytest.mark.parametrize(("call", "name"), EVERY_ARGUMENT)
def test_array_of_anything_but_numbers_is_refused_by_name(call: str, name: str, dtype: Any) -> None:
    function, options, arrays = CALLS[call]
    with pytest.raises(TypeError, match=f"^{name}: got an array of "):
        function(**options, **arrays | {name: np.zeros(SHAPE, dtype)})


def test_array_likes_that_numpy_cannot_read_are_refused_by_name() -> None:
    class NeedsGradients:
        def __array__(self, dtype: object = None, copy: object = None) -> Array:
            raise RuntimeError("use tensor.detach().numpy() instead")

    with pytest.raises(ValueError, match=r"^values: got .*, must be an array, .*use tensor.detach\(\).numpy\(\)"):
        golden.encode(NeedsGradients(), CBFLOAT16)


def test_array_of_no_dimensions_gives_a_scalar_of_the_same_bits() -> None:
    for read in (np.array(1.5, ">f4"), np.broadcast_to(np.float32(1.5), ()), np.float32(1.5), 1.5):
        assert golden.encode(read, CBFLOAT16) == 0x3F00
    assert golden.decode(np.array(0x3F00, ">u2"), CBFLOAT16).tobytes() == np.float32(1.5).tobytes()
