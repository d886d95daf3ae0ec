"""The command line of the training layer."""
