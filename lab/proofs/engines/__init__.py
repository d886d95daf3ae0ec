"""Solvers, each in a separate process, which reads SMT-LIB and answers in JSON."""
