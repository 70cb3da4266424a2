"""Texts of any number to vectors on disk: a few at a time, and from where a run was broken off."""
