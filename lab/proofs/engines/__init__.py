"""Solvers, each started in a process of its own, which reads SMT-LIB and answers in JSON."""
