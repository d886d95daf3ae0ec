"""The parts of the site that are drawn from the code: port tables, timing diagrams, tables of results."""
