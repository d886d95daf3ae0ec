"""A netlist as compiled C++: for the simulated engine, and for the benches of the project."""
