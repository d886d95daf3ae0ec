"""The side inside the simulator: driver, monitor, scoreboard, failure lines, and the shell around the design."""
