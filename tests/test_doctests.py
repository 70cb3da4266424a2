"""The examples of the docstrings."""

from __future__ import annotations

import doctest
import importlib
import logging

import pytest

OPTIONS = doctest.NORMALIZE_WHITESPACE


def examples(module: str) -> int:
    logging.disable(logging.WARNING)
    try:
        failed, tried = doctest.testmod(importlib.import_module(module), optionflags=OPTIONS)
    finally:
        logging.disable(logging.NOTSET)
    assert failed == 0
    return tried


@pytest.mark.parametrize("module", ["similarity"])
def test_examples(module: str) -> None:
    assert examples(f"whitepool.{module}") > 0


@pytest.mark.slow
@pytest.mark.parametrize("module", ["encoder", "loading", "text_encoder"])
def test_examples_with_the_embedded_model(module: str) -> None:
    assert examples(f"whitepool.{module}") > 0
