"""The chip: area and edge, peak rates, power and the clock that fits under its cap."""
