"""Is the Verilog of every unit, after a change, equivalent to that before it?"""
