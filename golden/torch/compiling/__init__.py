"""What torch.compile has to know of the functions here."""
