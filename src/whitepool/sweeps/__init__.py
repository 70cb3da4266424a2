"""Multiruns that can be broken off and begun again: whose folder a job is, and whether it is done."""
