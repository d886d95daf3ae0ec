"""Tools that the rooms above share: outside programs, compiled models, paths, regions of pages, plot style.

It is the lowest room: `sim` and `lab` import it, and it imports neither. It knows no arithmetic: of `golden` only the
formats, of `hdl` only the way from a component to Verilog. Nothing here is run by itself.
"""
