"""Multiruns that are begun again: what is run, what stays, what is refused."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

from whitepool.sweeps.marker import at_work, read

from tiny import WORDS

Command = Callable[..., tuple[int, str, str]]


def write_pairs(path: Path, seed: int) -> None:
    draw = random.Random(seed)
    rows = [(draw.sample(WORDS, 5), draw.sample(WORDS, 5)) for _ in range(20)]
    lines = [f"{' '.join(a)}\t{' '.join(b)}\t{len(set(a) & set(b))}" for a, b in rows]
    path.write_text("sentence1\tsentence2\tscore\n" + "\n".join(lines) + "\n")


def contents(folder: Path, *jobs: str) -> dict[str, bytes]:
    """All that finished jobs left."""
    files = [path for job in jobs for path in (folder / job).rglob("*") if path.is_file()]
    assert files
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def summary(folder: Path) -> list[tuple[str, str, str]]:
    """Job, file of pairs and status of each row."""
    with (folder / "summary.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        assert (row["score"] == "") == (row["status"] == "failed")
        assert "resume" not in row["overrides"]
    names = [next(w for w in r["overrides"].split() if w.startswith("data.path=")) for r in rows]
    return [
        (r["job"], n.removeprefix("data.path="), r["status"])
        for r, n in zip(rows, names, strict=True)
    ]


def sweep(paths: Sequence[str], *more: str) -> list[str]:
    return ["-m", "data=pairs", f"data.path={','.join(paths)}", "bootstrap=10", *more]


def seconds_of(folder: Path) -> dict[str, float]:
    with (folder / "summary.csv").open(newline="") as file:
        return {row["job"]: float(row["seconds"]) for row in csv.DictReader(file)}


def test_a_sweep_from_its_first_failure_to_changed_data(command: Command, tmp_path: Path) -> None:
    a, b, c = (f"{name}.tsv" for name in "abc")
    write_pairs(tmp_path / a, 1)
    status, printed, error = command("evaluate", *sweep([b, a]))
    assert status == 1, error
    (folder,) = tmp_path.glob("multirun/*/*")
    where = f"hydra.sweep.dir={folder}"
    assert summary(folder) == [("0", b, "failed"), ("1", a, "done")]
    assert "Traceback" in (folder / "0" / "error.txt").read_text()
    remedy = f"the same words with hydra.sweep.dir={folder.relative_to(tmp_path)} resume=true."
    assert f"1 of 2 jobs failed. To go on: {remedy}" in printed

    # What failed is run again, in its folder; without a folder, in that of the same words.
    write_pairs(tmp_path / b, 2)
    before = contents(folder, "1")
    status, printed, error = command("evaluate", *sweep([b, a], "resume=true"))
    assert status == 0, error
    assert "1 of 2 jobs are finished and not run again (1)." in printed
    assert "Begun earlier and run again: 0." in printed
    assert summary(folder) == [("0", b, "done"), ("1", a, "done")]
    assert not (folder / "0" / "error.txt").exists()
    assert contents(folder, "1") == before
    for job, seconds in seconds_of(folder).items():  # of the job, not of its encoding
        state = read(folder / job)
        assert state is not None
        assert state.seconds == seconds
        assert seconds > json.loads((folder / job / "results.json").read_text())["seconds"]

    # An edited sweep keeps what is there, changed data are noticed, and numbers are not.
    write_pairs(tmp_path / a, 4)
    write_pairs(tmp_path / c, 3)
    before = contents(folder, "0", "1")
    status, printed, error = command("evaluate", *sweep([c, b, a], "resume=true", where))
    assert status == 0, error
    assert "1 of 3 jobs are finished and not run again (0)." in printed
    assert "Job 1 was finished before the data changed: it stays, and is made anew as" in printed
    rows = [("0", b), ("1", a), ("2", c), ("3", a)]
    assert summary(folder) == [(*row, "done") for row in rows]
    assert contents(folder, "0", "1") == before
    assert contents(folder, "3")["3/scores.csv"] != before["1/scores.csv"]

    # Nothing is run over without being asked to resume, nor while another process is at it.
    before = contents(folder, "0", "1", "2", "3")
    with at_work(folder / "3", "a job"):
        status, _, error = command("evaluate", *sweep([a], "resume=true", where))
    assert status == 1
    assert f"job 3 of an earlier multirun is still at work in {folder}/3" in error
    status, printed, error = command("evaluate", *sweep([b], where))
    assert (status, printed) == (1, "")
    assert error.startswith(f"Error: {folder} holds 4 jobs of an earlier multirun, 4 of them")
    assert contents(folder, "0", "1", "2", "3") == before


def test_jobs_behind_a_failure_are_skipped_to_be_run_later(
    command: Command, tmp_path: Path
) -> None:
    words = sweep(["b.tsv", "a.tsv"], "fail_fast=true", "hydra.sweep.dir=all", "resume=true")
    status, _, _ = command("evaluate", *words)
    assert status == 1
    folder = tmp_path / "all"
    assert (folder / "1" / "error.txt").read_text() == "skipped, since job 0 failed.\n"
    assert [row[2] for row in summary(folder)] == ["failed", "failed"]
    failed, skipped = (read(folder / job) for job in "01")
    assert failed is not None
    assert skipped is not None
    assert failed.settings != skipped.settings
    assert not failed.finished
    assert not skipped.finished


def test_a_single_run_has_nothing_to_resume(command: Command) -> None:
    for name in ("evaluate", "train"):
        status, _, error = command(name, "resume=true", "hydra.run.dir=run")
        assert status == 1
        assert error.endswith("add -m and the words that are swept, or leave it out.\n")


def test_train_and_encode_go_on_too(command: Command, tmp_path: Path) -> None:
    draw = random.Random(0)
    texts = "".join(" ".join(draw.choices(WORDS, k=5)) + "\n" for _ in range(80))
    (tmp_path / "x.txt").write_text(texts)
    fit = ["-m", "corpus=text", "corpus.path=x.txt", "output='mine-${hydra:job.num}'"]
    fit += ["hydra.sweep.dir=fits", "resume=true"]
    status, _, error = command("train", *fit, "whitening.k=3")
    assert status == 0, error
    first = (tmp_path / "mine-0" / "recipe.yaml").read_bytes()
    status, printed, error = command("train", *fit, "whitening.k=4,3")
    assert status == 0, error
    assert "1 of 2 jobs are finished and not run again (0)." in printed
    # The number is that of the folder, though this is the first job that is left to run.
    assert (tmp_path / "mine-0" / "recipe.yaml").read_bytes() == first
    assert b"k: 4" in (tmp_path / "mine-1" / "recipe.yaml").read_bytes()

    bulk = ["-m", "input=x.txt", "format=npy", "output=v", "normalize=true"]
    bulk += ["hydra.sweep.dir=bulk", "resume=true"]
    status, _, error = command("encode", *bulk)
    assert status == 0, error
    vectors = sorted((tmp_path / "v").iterdir())
    before = [path.read_bytes() for path in vectors]
    vectors[0].unlink()
    status, printed, error = command("encode", *bulk)
    assert status == 0, error
    assert "0 of 1 jobs are finished and not run again." in printed
    assert [path.read_bytes() for path in vectors] == before
    assert sorted(path.name for path in (tmp_path / "bulk").glob("[0-9]")) == ["0"]
