"""Sizes in bytes: what is understood, and what is refused."""

from __future__ import annotations

import pytest

from whitepool.errors import UserError
from whitepool.size import format_size, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1B", 1),
        ("2 KB", 2000),
        ("2KiB", 2048),
        ("1.5GiB", 3 * 512 * 1024**2),
        ("4GiB", 4 * 1024**3),
        ("1TB", 10**12),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text, "x") == size


@pytest.mark.parametrize(
    "text",
    ["", "4", 4, 4.0, None, True, "GiB", "-1GiB", "+1GiB", "4gib", "4 G", "4GiBs", "4  GiB", "1e3B",
     "0B", "0.1B", "nanB", ".5GiB", "4iB", "٤GiB", "4GiB\n"],
)  # fmt: skip
def test_anything_else_is_refused(text: object) -> None:
    with pytest.raises(UserError) as error:
        parse_size(text, "cache.max_size")
    assert str(error.value) == (
        f"cache.max_size is {text!r}: give a number with a unit "
        "(B, KB, MB, GB, TB, KiB, MiB, GiB, TiB), for example 4GiB."
    )


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536 * 1024, "1.5 MiB"),
        (4 * 1024**3, "4.0 GiB"),
        (5 * 1024**5, "5120.0 TiB"),
    ],
)
def test_a_size_in_words(size: int, text: str) -> None:
    assert format_size(size) == text
