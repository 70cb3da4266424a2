"""Figures: pure functions from data to a matplotlib Figure, one module for each kind."""
