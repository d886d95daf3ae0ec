"""Tests of the golden model: against judges written by others, and array functions against the exact reference."""
