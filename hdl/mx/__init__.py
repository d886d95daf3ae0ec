"""The block quantiser of microscaling, and its parts."""
