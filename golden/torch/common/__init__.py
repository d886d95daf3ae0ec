"""What all rooms share: checks of arguments, notices, processes, devices, the state of generators."""
