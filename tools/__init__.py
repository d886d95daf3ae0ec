"""Tools that the rooms above share: outside programs, compiled models, paths, regions of pages, plot style.

It is the lowest room: `sim` and `lab` import it, and it imports neither. It knows no arithmetic: it uses only the
formats of `golden`, and only the way from a component to Verilog of `hdl`. Nothing here is run by itself.
"""
