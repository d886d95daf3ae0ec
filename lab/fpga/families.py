"""The families of FPGAs: how each is synthesised, placed and routed, one row each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tools.errors import PlacementFailed
from tools.programs import NEXTPNR, Tool

__all__ = ["FAMILIES", "Family", "family_named"]


@dataclass(frozen=True, kw_only=True)
class Family:
    """A family of FPGAs, by one of its devices.

    Parameters
    ----------
    title : str
        The device in words; fields in braces are a target's.
    device, package : str
    speeds : tuple of int
        Speed grades, the slowest first; 0 alone for a device without them.
    nextpnr : Tool
    options : str
        Options of nextpnr, except the target frequency, the seed and the files. Fields as in the title.
    synthesis : str
        Yosys's command.
    bare, padded : str
        Its options for a unit without pins, and for the wrapper with them.
    pins : str
        A line of the file of constraints, with ``{port}`` and ``{pin}``; empty if nextpnr chooses pins itself.
    places : mapping of str to str
        A pin for each port of the wrapper.
    multiplier : str
        The form of the multiplier, of `hdl.cores.multiplier.MULTIPLIERS`.
    units : tuple of str
        Patterns of the units to measure by default.
    blind : str
        The limits of the flow: a sentence of Markdown.
    opens_carries : bool
        Whether the first carry of a chain must be disconnected: see `lab.fpga.synthesis.open_carries`.
    """

    title: str
    device: str
    package: str = ""
    speeds: tuple[int, ...] = (0,)
    nextpnr: Tool
    options: str
    synthesis: str
    bare: str
    padded: str
    pins: str = ""
    places: Mapping[str, str] = field(default_factory=dict)
    multiplier: str = "generic"
    units: tuple[str, ...]
    blind: str
    opens_carries: bool = False

    @property
    def constraints(self) -> str:
        """The file of constraints, ``pins.txt``; empty if there is none."""
        return "".join(f"{self.pins.format(port=port, pin=pin)}\n" for port, pin in self.places.items())


def _nextpnr(name: str) -> Tool:
    module = f"yowasp_nextpnr_{name}".replace("-", "_")
    return Tool(f"yowasp-nextpnr-{name}", f"{module}:run_nextpnr_{name.replace('-', '_')}", PlacementFailed)


_CONVERTERS = ("cbfloat16_to_float32", "float32_to_cbfloat16_stages_2")
_TABLE = (*_CONVERTERS, "mac_cbfloat16", "mac_cbfloat16_level_2", "mac", "vector_mac_cbfloat16_lanes_4")
_GOWIN = _nextpnr("himbaechel-gowin")
_GOWIN_PINS = 'IO_LOC "{port}" {pin};'
_GOWIN_BLIND = (
    "nextpnr has no delays for DSP blocks of Gowin, so that paths through a multiplier in a block are left out of the "
    "frequency; its authors call the other delays optimistic by about a fifth."
)

#: Every family, by its name on the command line. Pages show the units of `_TABLE` for all of them.
FAMILIES = {
    "ecp5": Family(
        title="Lattice {device}, {package}, speed grade {speed}",
        device="LFE5U-85F",
        package="CABGA756",
        speeds=(6, 7, 8),
        nextpnr=NEXTPNR,
        options="--{size}k --package {package} --speed {speed} --freq {megahertz} --router router1"
        " --lpf-allow-unconstrained --timing-allow-fail",
        synthesis="synth_ecp5",
        bare="-noiopad",
        padded="-noiopad",
        multiplier="ecp5",
        units=("*",),
        blind="The delays are Project Trellis's for the speed grade.",
    ),
    "nexus": Family(
        title="Lattice {device}, {package}, speed grade {speed}",
        device="LIFCL-40",
        package="BG400C",
        speeds=(7, 8, 9),
        nextpnr=_nextpnr("nexus"),
        # Its default router finds no route from the clock pin to the clock network.
        options="--device {device}-{speed}{package} --pdc pins.txt --freq {megahertz} --router router1"
        " --timing-allow-fail",
        synthesis="synth_nexus -family lifcl",
        bare="-noiopad",
        padded="-iopad",
        pins="ldc_set_location -site {{{pin}}} [get_ports {port}]",
        places={"clk": "L13", "si": "G14", "so": "G19"},
        multiplier="nexus",
        units=_TABLE,
        blind="The delays are Project Oxide's for the speed grade.",
        opens_carries=True,
    ),
    "gowin": Family(
        title="Gowin {device}, {package}",
        device="GW2A-18",
        package="GW2A-LV18PG256C8/I7",
        nextpnr=_GOWIN,
        options="--device {package} --vopt family={device} --vopt cst=pins.txt --freq {megahertz} --timing-allow-fail",
        synthesis="synth_gowin -family gw2a",
        bare="-noiopads",
        padded="",
        pins=_GOWIN_PINS,
        places={"clk": "H11", "si": "L14", "so": "T10"},
        units=_TABLE,
        blind=_GOWIN_BLIND,
    ),
    # nextpnr's chip has no place for memories in LUTs, and Yosys infers no multiplier.
    "gowin5": Family(
        title="Gowin {device}, {package}",
        device="GW5A-25",
        package="GW5A-LV25MG121NES",
        nextpnr=_GOWIN,
        options="--device {package} --vopt cst=pins.txt --freq {megahertz} --timing-allow-fail",
        synthesis="synth_gowin -family gw5a -nolutram -nobram",
        bare="-noiopads",
        padded="",
        pins=_GOWIN_PINS,
        places={"clk": "E2", "si": "C10", "so": "G10"},
        units=_TABLE,
        blind="Register files take flip-flops, for nextpnr knows no memory in LUTs of this device; Yosys infers no "
        "multiplier, which takes LUTs; the delays are as optimistic as those of the GW2A.",
    ),
    "ice40": Family(
        title="Lattice iCE40 {device}, {package}",
        device="UP5K",
        package="SG48",
        nextpnr=_nextpnr("ice40"),
        options="--up5k --package sg48 --freq {megahertz} --timing-allow-fail --pcf-allow-unconstrained",
        synthesis="synth_ice40 -device u -dsp",
        bare="",
        padded="",
        units=_CONVERTERS,
        blind="A carry chain that shares no cell with a LUT is not counted. Register files would take flip-flops, so "
        "only converters are shown.",
    ),
}


def family_named(name: str) -> Family:
    """Return a family.

    Raises
    ------
    ValueError
        If there is no family of that name.
    """
    if name not in FAMILIES:
        raise ValueError(f"family: got {name!r}, must be one of {', '.join(FAMILIES)}")
    return FAMILIES[name]
