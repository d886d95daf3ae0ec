"""The longest path between registers in a netlist of standard cells, without wires."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from graphlib import TopologicalSorter
from typing import Any, NamedTuple

from lab.fpga.liberty import Arc, Library
from lab.fpga.placement import CriticalPath, Placement

__all__ = ["longest_path"]

_EDGES = ("rise", "fall")
_OTHER = {"rise": "fall", "fall": "rise"}


class _Arrival(NamedTuple):
    """The latest arrival of an edge at a net, and its slew: both in the library's unit of time."""

    time: float
    slew: float
    before: tuple[int, str] | None = None


class _Netlist:
    """The drivers and loads of the nets of a module in Yosys's JSON."""

    def __init__(self, module: Mapping[str, Any], library: Library) -> None:
        self.library = library
        self.cells = {name: cell for name, cell in module["cells"].items() if not cell["type"].startswith("$scope")}
        unmapped = sorted({cell["type"] for cell in self.cells.values()} - library.cells.keys())
        if unmapped:
            raise ValueError(f"cells: got {', '.join(unmapped)}, must be cells of {library.name}")
        ports = module["ports"].values()
        self.inputs = {bit for port in ports if port["direction"] == "input" for bit in port["bits"]}
        self.outputs = {bit for port in ports if port["direction"] == "output" for bit in port["bits"]}
        data = next(pin for pin in library.flip_flop.pins.values() if _setup(pin.arcs))
        self.load = defaultdict[int, float](float)
        for cell in self.cells.values():
            for name, (net, *_) in cell["connections"].items():
                self.load[net] += library.cells[cell["type"]].pins[name].capacitance
        for net in self.outputs:
            self.load[net] += data.capacitance
        self.names = _names(module)


def _setup(arcs: tuple[Arc, ...]) -> Arc | None:
    return next((arc for arc in arcs if arc.kind == "setup_rising"), None)


def _names(module: Mapping[str, Any]) -> dict[int, str]:
    """Return a name for each net: the shortest one in the Verilog."""
    names: dict[int, str] = {}
    for name, found in sorted(module["netnames"].items(), key=lambda pair: (pair[1]["hide_name"], len(pair[0]))):
        for bit in found["bits"]:
            names.setdefault(bit, name)
    return names


def longest_path(module: Mapping[str, Any], library: Library) -> Placement:
    """Return the frequency of a mapped module and its longest path, from register to register.

    Clock-to-output and setup times of the flip-flops count, and so does the capacitance of every pin; wires and the
    clock tree do not. Inputs come from flip-flops of the smallest kind, and outputs go to such flip-flops.

    Raises
    ------
    ValueError
        If a cell is not in the library, or there is no path.
    """
    netlist = _Netlist(module, library)
    arrivals = _arrivals(netlist)
    worst: tuple[float, tuple[int, str]] | None = None
    for net, setup in _ends(netlist):
        for edge in _EDGES:
            if (arrival := arrivals.get((net, edge))) and (table := setup.tables.get(f"{edge}_constraint")):
                given = {"related_pin_transition": 0.0, "constrained_pin_transition": arrival.slew}
                needed = arrival.time + table(**dict.fromkeys(table.variables, 0.0) | given)
                if worst is None or needed > worst[0]:
                    worst = needed, (net, edge)
    if worst is None:
        raise ValueError("the netlist has no path between two registers")
    nanoseconds = worst[0] * library.nanoseconds
    return Placement(round(1000 / nanoseconds, 1), _path(netlist, arrivals, worst[1], nanoseconds))


def _path(
    netlist: _Netlist, arrivals: Mapping[tuple[int, str], _Arrival], end: tuple[int, str], nanoseconds: float
) -> CriticalPath:
    nets, at = [end[0]], arrivals[end].before
    while at is not None:
        nets.append(at[0])
        at = arrivals[at].before
    names = [netlist.names.get(net, "") for net in reversed(nets)]
    via = [name for name in dict.fromkeys(names[1:-1]) if name and not name.startswith("$")]
    return CriticalPath(names[0], names[-1], round(nanoseconds, 2), 0.0, len(nets) - 1, via)


def _ends(netlist: _Netlist) -> list[tuple[int, Arc]]:
    pins = netlist.library.flip_flop.pins.values()
    own = next(arc for pin in pins if (arc := _setup(pin.arcs)))
    ends = [(net, own) for net in netlist.outputs if isinstance(net, int)]
    for cell in netlist.cells.values():
        for name, pin in netlist.library.cells[cell["type"]].pins.items():
            if (setup := _setup(pin.arcs)) and isinstance(net := cell["connections"].get(name, [""])[0], int):
                ends.append((net, setup))
    return ends


def _arrivals(netlist: _Netlist) -> dict[tuple[int, str], _Arrival]:
    """Return the latest arrival of each edge at each net, in topological order."""
    found: dict[tuple[int, str], _Arrival] = {}
    after: dict[int, set[int]] = {}
    steps = defaultdict[int, list[tuple[int, Arc]]](list)
    starts = [(net, _clocked(netlist.library, netlist.library.flip_flop.name)) for net in netlist.inputs]
    for cell in netlist.cells.values():
        kind = netlist.library.cells[cell["type"]]
        for name, pin in kind.pins.items():
            net = cell["connections"].get(name, [""])[0]
            if not pin.is_output or not isinstance(net, int):
                continue
            if kind.is_flip_flop:
                starts.append((net, next(arc for arc in pin.arcs if arc.kind in ("rising_edge", "falling_edge"))))
            for arc in () if kind.is_flip_flop else pin.arcs:
                before = cell["connections"].get(arc.related, [""])[0]
                if isinstance(before, int) and arc.kind == "combinational":
                    steps[net].append((before, arc))
                    after.setdefault(net, set()).add(before)
    for net, arc in starts:
        for edge in _EDGES:
            _meet(found, (net, edge), _through(arc, edge, 0.0, netlist.load[net]))
    for net in TopologicalSorter(after).static_order():
        for before, arc in steps.get(net, ()):
            for edge in _EDGES:
                for given in _causes(arc, edge):
                    if (start := found.get((before, given))) and f"cell_{edge}" in arc.tables:
                        delay, slew = _through(arc, edge, start.slew, netlist.load[net])[:2]
                        _meet(found, (net, edge), _Arrival(start.time + delay, slew, (before, given)))
    return found


def _clocked(library: Library, name: str) -> Arc:
    arcs = (arc for pin in library.cells[name].pins.values() if pin.is_output for arc in pin.arcs)
    return next(arc for arc in arcs if arc.kind == "rising_edge")


def _causes(arc: Arc, edge: str) -> tuple[str, ...]:
    """Return the edges of the input that cause an edge of the output."""
    if arc.sense == "positive_unate":
        return (edge,)
    return (_OTHER[edge],) if arc.sense == "negative_unate" else _EDGES


def _through(arc: Arc, edge: str, slew: float, load: float) -> _Arrival:
    given = {"input_net_transition": slew, "total_output_net_capacitance": load}
    delay, transition = arc.tables[f"cell_{edge}"], arc.tables[f"{edge}_transition"]
    zeros = dict.fromkeys((*delay.variables, *transition.variables), 0.0)
    return _Arrival(delay(**zeros | given), transition(**zeros | given))


def _meet(found: dict[tuple[int, str], _Arrival], at: tuple[int, str], arrival: _Arrival) -> None:
    """Keep the later arrival, with the slower edge of both."""
    known = found.get(at)
    if known is None:
        found[at] = arrival
        return
    later = max(known, arrival, key=lambda each: each.time)
    found[at] = later._replace(slew=max(known.slew, arrival.slew))
