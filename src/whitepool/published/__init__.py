"""Published values as data, matched by recipe with what a run measures."""
