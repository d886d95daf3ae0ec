"""The effects of low precision inside the products of a training: see `golden.torch.observing`."""
