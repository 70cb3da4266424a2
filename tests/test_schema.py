"""Plain data to dataclasses: what is read, what is refused, and how that is said."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whitepool.errors import UserError
from whitepool.schema import parse, plain, read


@dataclass(frozen=True, kw_only=True)
class Square:
    kind: Literal["square"] = "square"
    side: float


@dataclass(frozen=True, kw_only=True)
class Circle:
    kind: Literal["circle"] = "circle"
    radius: float
    filled: bool = False


@dataclass(frozen=True)
class Drawing:
    name: str
    shape: Square | Circle
    sizes: tuple[int | Literal["all"], ...] = ()
    notes: Mapping[str, str | int | float | bool] | None = None
    count: int | None = None


@pytest.mark.parametrize(
    "drawing",
    [
        Drawing("a", Square(side=2.5)),
        Drawing("b", Circle(radius=1, filled=True), (1, "all", -3), {"by": "me", "n": 3}, 7),
    ],
)
def test_what_is_written_is_read_again(drawing: Drawing) -> None:
    assert read(Drawing, plain(drawing)) == drawing


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: a\nname: b", "line 2 gives name twice"),
        ("x: {y: 1, y: 2}", "gives y twice"),
        ("a: !!python/object/apply:os.system [id]", "line 1 has a YAML tag"),
        ("a: !!str b", "a YAML tag"),
        ("%YAML 1.1\n---\na: 1", "a YAML directive"),
        ("a: &x [1]\nb: *x", "line 1 has a YAML anchor"),
        ("a: [1", "not plain YAML"),
        ("a: 1\n---\nb: 2", "not plain YAML"),
        ("a: \x00", "not plain YAML"),
        ("[a, b]: 1", "has a key of parts"),
        ("a: " + "[" * 5000, "over 20 levels"),
        ("- " * 900, "over 20 levels"),
        ("a: " + "9" * 5000, "not plain YAML"),
        ("a: 2020-13-45", "not plain YAML"),
        ("x" * 200_001, "over 200,000"),
    ],
)
def test_yaml_beyond_plain_data_is_refused(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse(text)


BASE = {"name": "a", "shape": {"kind": "square", "side": 1.0}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nmae": 1}, r"there is no key 'nmae': the keys are name, shape, sizes, notes, count"),
        ({"shape": {"kind": "square", "side": 1, "_target_": "os.system"}}, "'shape._target_'"),
        ({"name": 3}, "name is 3: give a text"),
        ({"name": None}, "name is null: give a text"),
        ({"count": True}, "count is True: give a whole number or null"),
        ({"count": 1.0}, "count is 1.0"),
        ({"shape": {"kind": "square"}}, "shape.side is missing"),
        ({"shape": {"kind": "cube", "side": 1}}, "'cube': choose one of square, circle"),
        ({"shape": {"side": 1}}, "shape.kind is null: choose one of square, circle"),
        ({"shape": {"kind": ["square"], "side": 1}}, "shape.kind is a list"),
        ({"shape": [1]}, "shape is a list: give a mapping of keys"),
        ({"shape": {"kind": "square", "side": math.nan}}, "shape.side is nan: give a finite"),
        ({"shape": {"kind": "square", "side": math.inf}}, "shape.side is inf"),
        ({"shape": {"kind": "square", "side": "1"}}, "shape.side is '1': give a number"),
        ({"shape": {"kind": "circle", "radius": 1, "filled": 1}}, "give true or false"),
        ({"sizes": "all"}, "sizes is 'all': give a list"),
        ({"sizes": [1, "some"]}, r"sizes\[1\] is 'some': give a whole number or all"),
        ({"sizes": [True]}, r"sizes\[0\] is True"),
        ({"notes": {"_x": 1}}, "notes has the key '_x'"),
        ({"notes": {"a": [1]}}, "notes.a is a list"),
        ({"notes": {1: "a"}}, "notes has the key 1"),
    ],
)
def test_wrong_content_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(Drawing, BASE | change)


def test_given_fields_cannot_come_from_the_file() -> None:
    with pytest.raises(UserError, match="no key 'name'"):
        read(Drawing, BASE, given={"name": "mine"})
    assert read(Drawing, {"shape": BASE["shape"]}, given={"name": "mine"}).name == "mine"


def test_a_file_that_is_no_mapping() -> None:
    with pytest.raises(UserError, match="the file is a list"):
        read(Drawing, [1, 2])


DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["kind", "side", "name", "shape", "x"]), inner, max_size=4
        )
    ),
    max_leaves=8,
)


@given(DATA)
def test_any_data_is_read_or_refused(content: Any) -> None:
    try:
        found = read(Drawing, content)
    except UserError:
        return
    assert read(Drawing, plain(found)) == found


@given(st.text(max_size=60) | st.text(alphabet="ab:-[]{}&*!%#|>'\"\n\t ,0.9e~=<", max_size=60))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    with contextlib.suppress(UserError):
        parse(text)
