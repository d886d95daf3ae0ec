"""Shared by all rooms: checks of arguments, notices, processes, devices, the state of generators."""
