"""The regression tests, one folder per package that they test."""
