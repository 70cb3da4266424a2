"""Timings of whitepool beside other programs and beside itself: python -m benchmarks --help."""
