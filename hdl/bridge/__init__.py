"""What the matrix engine needs around it: a UART bridge for the driver, memory in block RAM, a module for LiteX."""
