"""A tiny library of standard cells, written from a few numbers."""

from pathlib import Path

_HEAD = Path(__file__).with_name("tiny.lib")
#: Name: area, inputs, function, sense, delay without load in ns, nanoseconds for each pF.
_GATES = {
    "INV": (2, "A", "!A", "negative_unate", 0.1, 10),
    "BUF": (3, "A", "A", "positive_unate", 0.2, 5),
    "NAND2": (4, "AB", "!(A*B)", "negative_unate", 0.2, 10),
    "NAND2_WIDE": (7, "AB", "!(A*B)", "negative_unate", 0.2, 5),
    "NOR2": (5, "AB", "!(A+B)", "negative_unate", 0.3, 10),
}
#: Picofarads of every input.
PIN = 0.01


def _table(kind: str, start: float, slope: float) -> str:
    rows = ", ".join(f'"{", ".join(f"{start + slope * load:g}" for load in (0, 1))}"' for _ in range(2))
    return f'{kind}(lacking) {{ index_1("0, 1"); index_2("0, 1"); values({rows}); }}\n'


def _timing(related: str, sense: str, kind: str, start: float, slope: float) -> str:
    tables = "".join(
        _table(f"cell_{edge}", start, slope) + _table(f"{edge}_transition", 0.1, 1) for edge in ("rise", "fall")
    )
    return f'timing() {{ related_pin : "{related}"; timing_sense : {sense}; timing_type : {kind};\n{tables}}}\n'


def _input(name: str, inside: str = "") -> str:
    return f"pin({name}) {{ direction : input; capacitance : {PIN}; {inside} }}\n"


def _gate(name: str) -> str:
    area, inputs, function, sense, start, slope = _GATES[name]
    timings = "".join(_timing(pin, sense, "combinational", start, slope) for pin in inputs)
    output = f'pin(Y) {{ direction : output; max_capacitance : 10; function : "{function}";\n{timings}}}\n'
    return f"cell({name}) {{ area : {area};\n{''.join(map(_input, inputs))}{output}}}\n"


def _flip_flop() -> str:
    held = "".join(f'{edge}_constraint(setup) {{ values("0.05"); }}\n' for edge in ("rise", "fall"))
    setup = f'timing() {{ related_pin : "CK"; timing_type : setup_rising;\n{held}}}\n'
    output = f'pin(Q) {{ direction : output; function : "IQ";\n{_timing("CK", "non_unate", "rising_edge", 0.4, 10)}}}\n'
    state = 'ff(IQ, IQN) { clocked_on : "CK"; next_state : "D"; }\n'
    return f"cell(DFF) {{ area : 20;\n{state}{_input('CK')}{_input('D', setup)}{output}}}\n"


def tiny(without: tuple[str, ...] = ()) -> str:
    """Return the library as text, without some of its cells."""
    cells = [_gate(name) for name in _GATES if name not in without]
    cells += [] if "DFF" in without else [_flip_flop()]
    return _HEAD.read_text(encoding="utf-8").replace("@CELLS@", "".join(cells))
