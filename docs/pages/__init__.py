"""What the pages of the site draw from the code: port tables, timing diagrams, tables of results."""
