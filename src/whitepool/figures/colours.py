"""Colours of categories, the same in figures and on the report page.

They are those of Okabe and Ito (2008), "Color Universal Design", which stay apart under the common
kinds of colour blindness. Series differ in marker or line too, so that a grey print can be read.
"""

from __future__ import annotations

from typing import NamedTuple

BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PURPLE, BLACK, GREY = "#56B4E9", "#CC79A7", "#000000", "#777777"
CYCLE = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY, BLACK)


class Stage(NamedTuple):
    """How a stage of scores is drawn; markers in the letters of matplotlib."""

    colour: str
    marker: str


STAGES = {"raw": Stage(RED, "o"), "post": Stage(BLUE, "s"), "rotated": Stage(GREEN, "^")}
WHITENED = "whitened"


def stage_name(stage: str, post: str) -> str:
    """What a stage is called.

    Args:
        stage: raw, post or rotated.
        post: what the map is called that leads to the stage post, see `whitepool.maps.names`.
    """
    return post if stage == "post" else stage
