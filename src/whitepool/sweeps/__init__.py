"""Multiruns that can be broken off and begun again: which folder is whose, and what is done."""
