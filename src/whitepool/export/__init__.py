"""Encoders as folders of sentence-transformers."""
