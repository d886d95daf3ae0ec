"""What is driven into a unit, what golden says must come back, and what that covers; made before the simulation."""
