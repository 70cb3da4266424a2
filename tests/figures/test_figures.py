"""What figures show, read back from the artists that are drawn."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from whitepool.figures import cosines, dims, heads, layers, recipes, spectrum, style, tokens
from whitepool.token_weights import Weighed

LAYERS = 5


def layer_rows(stage: str = "raw") -> list[dict[str, Any]]:
    draw = np.random.default_rng(0)
    return [
        {"layers": "+".join(map(str, mix)), "size": n, "stage": stage, "value": 50 + draw.random()}
        for n in range(1, LAYERS + 1)
        for mix in itertools.combinations(range(LAYERS), n)
    ]


def texts(figure: Figure) -> Iterator[str]:
    """Everything that is written."""
    for axes in figure.axes:
        for artist in axes.get_children():
            if isinstance(artist, mpl.text.Text):
                yield artist.get_text()
        if legend := axes.get_legend():
            yield from (text.get_text() for text in legend.get_texts())
    yield figure.get_suptitle()


def check(figure: Figure) -> str:
    """Nothing drawn stands outside the page or is too small to read; what is written."""
    canvas = FigureCanvasAgg(figure)
    with mpl.rc_context(style.RULES):
        figure.draw_without_rendering()
        box = figure.get_tightbbox(canvas.get_renderer())
    assert figure.get_figwidth() in (style.COLUMN, style.PAGE)
    assert min(box.x0, box.y0) > -0.03
    assert box.x1 < figure.get_figwidth() + 0.03
    assert box.y1 < figure.get_figheight() + 0.03
    assert all(text.get_fontsize() >= 4.5 for text in figure.findobj(mpl.text.Text))
    return "\n".join(texts(figure))


def test_pair_map_has_every_pair_and_frames_the_best() -> None:
    rows = layer_rows()
    best = max((r for r in rows if r["size"] <= 2), key=lambda r: r["value"])
    figure = layers.pair_map(rows, "bert")
    axes = figure.axes[0]
    values = axes.images[0].get_array()
    assert np.isfinite(values).sum() == LAYERS * (LAYERS + 1) / 2
    for row in rows:
        if row["size"] <= 2:
            low, *high = (int(x) for x in row["layers"].split("+"))
            assert values[(high or [low])[0], low] == row["value"]
    (frame,) = axes.patches
    low, *high = (int(x) for x in best["layers"].split("+"))
    assert frame.get_xy() == (low - 0.5, (high or [low])[0] - 0.5)
    assert f"best of these: {best['layers']}, {best['value']:.2f}" in check(figure)
    assert axes.get_xlabel() == "layer (0: embedding output)"
    assert figure.axes[1].get_ylabel() == "Spearman x100"


def test_best_by_size_marks_the_layers_taken() -> None:
    raw = layer_rows()
    best = [max((r for r in raw if r["size"] == n), key=lambda r: r["value"]) for n in range(1, 6)]
    figure = layers.best_by_size([*best, {**best[0], "stage": "post", "value": 60.0}], "bert")
    top, below = figure.axes
    np.testing.assert_array_equal(top.lines[0].get_ydata(), [r["value"] for r in best])
    dots = [line for line in below.lines if line.get_marker() == "o"]
    taken = {
        (size, int(y))
        for line in dots
        for size, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    }
    assert taken == {(r["size"], int(x)) for r in best for x in r["layers"].split("+")}
    top_row = max(best, key=lambda r: r["value"])
    written = check(figure)
    assert f"best: layers {top_row['layers']}, {top_row['value']:.2f}" in written
    assert "whitened" in written


def test_score_by_k_marks_the_best_of_every_k() -> None:
    rng = np.random.default_rng(0)
    value = rng.random(200)
    value[[3, 50]] = [0.5, 2.0]
    rows = [{"k": k + 1, "stage": "post", "value": v} for k, v in enumerate(value)]
    rows += [{"k": k + 1, "stage": "rotated", "value": math.nan} for k in range(200)]
    rows.append({"k": 256, "stage": "raw", "value": 0.7})
    figure = dims.score_by_k(rows, "bert")
    (axes,) = figure.axes
    curve, full = axes.lines
    assert axes.get_xscale() == "log"
    np.testing.assert_array_equal(curve.get_xdata(), np.arange(1, 201))
    assert curve.get_markevery() == [50]
    assert full.get_ydata() == [0.7, 0.7]
    written = check(figure)
    assert "whitened: best k = 51, 2.00" in written
    assert "all 256, no step after pooling: 0.70" in written
    assert "rotated" not in written


def test_head_map_frames_chosen_and_published() -> None:
    rng = np.random.default_rng(0)
    rows = [
        {"block": b, "head": h, "layers": ls, "value": float(rng.random())}
        for ls in ("[-1]", "[0,-1]")
        for b in range(3)
        for h in range(4)
    ]
    chosen = [
        {"block": 2, "head": 1, "layers": "[-1]", "choice": "selected"},
        {"block": 0, "head": 3, "layers": "[-1]", "choice": "published"},
    ]
    figure = heads.head_map(rows, chosen, "bert: stsb dev")
    first, second, _ = figure.axes
    for axes, ls in ((first, "[-1]"), (second, "[0,-1]")):
        values = axes.images[0].get_array()
        for row in rows:
            if row["layers"] == ls:
                assert values[row["block"], row["head"]] == row["value"]
    frames = {patch.get_xy(): patch.get_linestyle() for patch in first.patches}
    assert frames == {(0.5, 1.5): "-", (2.5, -0.5): ":"}
    assert not second.patches
    assert "chosen: block 2, head 1" in check(figure)


def test_histograms_are_shares_of_all_pairs() -> None:
    rng = np.random.default_rng(0)
    raw = cosines.Cosines(rng.uniform(-1, 1, 500), np.ones(7))
    figure = cosines.histograms({"raw": raw, "post": raw}, "bert")
    for axes in figure.axes:
        scored, random = axes.patches
        assert scored.get_data().values.sum() == pytest.approx(100)
        assert random.get_data().values[-1] == pytest.approx(100)
        assert axes.get_ylabel() == "% of pairs"
    assert "random, mean 1.00" in check(figure)


def test_spectrum_ends_at_the_rank() -> None:
    values = np.array([60.0, 20.0, 15.0, 5.0, 0.0, 0.0])
    figure = spectrum.spectrum({"stsb": spectrum.Eigenvalues(values, 4)}, "bert")
    line, held, end = figure.axes[0].lines
    np.testing.assert_array_equal(line.get_ydata(), values[:4])
    assert (held.get_xdata()[0], held.get_ydata()[0]) == (3, 15)
    assert (end.get_xdata()[0], end.get_ydata()[0]) == (4, 5)
    assert "stsb:\nrank 4 of 6; 90 % in 3" in check(figure)
    many = {f"sts12.{i}": spectrum.Eigenvalues(values, i % 4 + 1) for i in range(25)}
    assert "25 fit sets, effective ranks 1 to 4" in check(spectrum.spectrum(many, "bert"))


@pytest.mark.parametrize("name", ["$x_{1$", "$x_1$", "_mine", "a_long_name_" * 10])
def test_names_are_text_whatever_they_hold(name: str) -> None:
    eigenvalues = spectrum.Eigenvalues(np.array([60.0, 20.0, 5.0]), 3)
    figure = spectrum.spectrum({name: eigenvalues}, name)
    shown = name if len(name) < 30 else f"{name[:15]}…{name[-15:]}"
    assert f"{shown}:\nrank 3 of 3" in check(figure)
    scored = recipes.Recipe("", "raw", {name: recipes.Score(60.0, 58.0, 61.5)})
    assert shown[:15] in check(recipes.scores([scored], name))


def test_stages_of_one_task_stand_apart() -> None:
    """The first picture that anybody sees."""
    score = {"stsb": recipes.Score(60.0, 58.0, 61.5)}
    figure = recipes.scores([recipes.Recipe("", s, score) for s in ("raw", "post")], "bert")
    figure.draw_without_rendering()
    axes = figure.axes[0]
    raw, post = (label.get_window_extent() for label in axes.get_yticklabels())
    assert not raw.overlaps(post)
    assert abs(raw.y0 - post.y0) > 1.5 * raw.height


@pytest.mark.parametrize("tasks", [["stsb"], ["stsb", "sickr", "sts12", "sts13", "avg"]])
def test_scores_of_recipes(tasks: list[str]) -> None:
    score = recipes.Score(60.0, 58.0, 61.5, 62.0)
    lines = [
        recipes.Recipe("pooling=cls", "raw", dict.fromkeys(tasks, score)),
        recipes.Recipe("$\\frac{", "post", {tasks[0]: recipes.Score(math.nan)}),
    ]
    figure = recipes.scores(lines, "protocol simcse")
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in shown] == tasks
    interval, value, published = shown[0].lines
    assert list(interval.get_xdata()) == [58.0, 61.5]
    assert value.get_xdata() == [60.0]
    assert published.get_xdata() == [62.0]
    check(figure)


def test_of_many_recipes_the_first_are_drawn() -> None:
    lines = [recipes.Recipe(str(i), "raw", {"stsb": recipes.Score(i)}) for i in range(50)]
    assert "(the first 40 of 50)" in check(recipes.scores(lines, "simcse"))


def test_long_names_leave_room_for_the_scores() -> None:
    line = recipes.Recipe("a" * 99 + "=pca", "post", {"stsb": recipes.Score(50.0, 49.0, 51.0)})
    figure = recipes.scores([line], "simcse")
    check(figure)
    (label,) = figure.axes[0].get_yticklabels()
    assert label.get_text().endswith("a=pca")
    assert figure.axes[0].get_position().width > 0.4


def test_strips_show_every_token_as_it_is() -> None:
    sentence = Weighed(tuple("[CLS] $x$ costs {5} % \\frac".split()), (1, 2, 3, 4, 5, 5))
    long = Weighed(tuple(f"word{i}" for i in range(40)), (1.0,) * 40)
    figure = tokens.strips([sentence, long, Weighed((), ())], "ditto")
    written = check(figure)
    assert all(token in written for token in (*sentence.tokens, *long.tokens))
    boxes = figure.axes[0].patches
    assert len(boxes) == 46
    assert max(box.get_x() + box.get_width() for box in boxes) <= style.COLUMN
    cividis, scale = mpl.colormaps[style.HEAT], mpl.colors.Normalize(0, 25)
    assert boxes[2].get_facecolor() == pytest.approx(cividis(scale(15)))


def test_styles_stay_inside() -> None:
    before = dict(mpl.rcParams)
    layers.pair_map(layer_rows(), "bert")
    assert dict(mpl.rcParams) == before
