"""Checks over every input there is: no sample, no stimulus, no doubt about what was left out."""
