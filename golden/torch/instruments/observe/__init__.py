"""What low precision does inside the products of a training: see `golden.torch.observing`."""
