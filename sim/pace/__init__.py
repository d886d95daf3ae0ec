"""How many products a unit takes in a cycle, measured at full rate, and what that makes per second and per area."""
