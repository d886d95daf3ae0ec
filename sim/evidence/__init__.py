"""What is known of every unit, and from which run: collected from the tools, and drawn on one screen."""
