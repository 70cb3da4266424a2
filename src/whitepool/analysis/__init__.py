"""Grids of recipes from one forward pass: layers, heads, dimensions."""
