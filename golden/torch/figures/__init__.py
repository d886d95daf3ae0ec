"""Pictures of what narrow formats and precision levels do to sums, products and training; all from runs made here."""
