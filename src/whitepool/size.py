"""Sizes in bytes as people write them."""

from __future__ import annotations

import re

from whitepool.errors import UserError

UNITS = {"B": 1} | {
    f"{prefix}{ending}": base**power
    for ending, base in (("B", 1000), ("iB", 1024))
    for power, prefix in enumerate("KMGT", start=1)
}


def parse_size(text: object, setting: str) -> int:
    """Bytes meant by ``4GiB``, ``500 MB`` or ``1.5GiB``, the value of ``setting``.

    Raises:
        UserError: no number with a unit, or less than a byte.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT]?i?B)", str(text), re.ASCII)
    size = int(float(match[1]) * UNITS.get(match[2], 0)) if match else 0
    if size < 1:
        raise UserError(
            f"{setting} is {text!r}: give a number with a unit ({', '.join(UNITS)}), for example "
            "4GiB."
        )
    return size


def format_size(size: int) -> str:
    """Bytes in the largest unit of which there is one: ``87.4 MiB``, ``12 B``."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size >= UNITS[unit]:
            return f"{size / UNITS[unit]:.1f} {unit}"
    return f"{size} B"
