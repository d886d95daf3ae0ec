"""The laboratory: it judges and measures the project beyond the regression, in one room for each discipline.

``python -m lab`` lists the rooms, and each room says how it is run. They import `tools` and `sim`; neither of these
imports a room of the laboratory.
"""

from tools.extras import name_missing_extras

name_missing_extras()
