"""What runs log to W&B, read back from the files of offline runs."""

from __future__ import annotations

import csv
import json
import logging
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf

import wandb_file
from whitepool import wandb_names
from whitepool.commands import hydra_job
from whitepool.evaluation import evaluate
from whitepool.scores import Row
from whitepool.training import train
from whitepool.wandb_log import WandbRun, summary_of

import tiny_suite
from tiny import WORDS

CONF = Path(__file__).resolve().parents[1] / "conf"
SWEEPS = sorted(path.stem for path in (CONF / "sweep").glob("*.yaml"))
TASK = "mine"


class Multirun:
    """A finished multirun and the records of its jobs' runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.jobs = {
            path.parts[-4]: wandb_file.records(path)
            for path in sorted(folder.glob("*/wandb/offline-run-*/run-*.wandb"))
        }
        (last,) = folder.glob("wandb/offline-run-*/run-*.wandb")
        self.summary = wandb_file.records(last)

    def results(self, job: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.folder / job / "results.json").read_text())
        return content


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pytest.MonkeyPatch]:
    """W&B without a key, and with all that it keeps in a folder of its own."""
    import wandb

    folder = tmp_path_factory.mktemp("wandb_home")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("WANDB_MODE", "WANDB_API_KEY", "WANDB_IDENTITY_TOKEN_FILE", "NETRC"):
            patch.delenv(name, raising=False)
        for name in ("CACHE", "CONFIG", "DATA"):
            patch.setenv(f"WANDB_{name}_DIR", str(folder))
        for name, value in (("HOME", str(folder)), ("WANDB_SILENT", "true"),
                            ("WANDB_CONSOLE", "off")):  # fmt: skip
            patch.setenv(name, value)
        yield patch
        wandb.teardown()


@pytest.fixture(scope="module")
def multirun(
    offline: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
    pairs: Path,
    checkpoint: Callable[[str], Path],
) -> Multirun:
    """Heads times analyses, one head of which the model does not have."""
    folder = tmp_path_factory.mktemp("wandb")
    GlobalHydra.instance().clear()
    offline.chdir(folder)
    with pytest.raises(SystemExit) as ended:
        hydra_job.run("evaluate", [
            "-m", "pooling=avg,pooler", "analysis=none,dims", "logger=wandb", "logger.tags=[tiny]",
            "model=distilbert", f"model.path={checkpoint('distilbert')}", "data=pairs",
            f"data.path={pairs}", "bootstrap=10", "cache=off", "trainer=cpu",
            "trainer.enable_progress_bar=false",
        ])  # fmt: skip
    assert ended.value.code == 1
    HydraConfig.instance().cfg = None  # else runs of other tests would count as jobs
    (made,) = folder.glob("multirun/*/*")
    return Multirun(made)


def of(found: list[Any], field: str) -> Iterator[Any]:
    """The records of a kind."""
    return (getattr(record, field) for record in found if record.HasField(field))


def test_each_job_is_a_run_that_is_finished_and_failures_are_marked(multirun: Multirun) -> None:
    assert {job: wandb_file.exit_code(found) for job, found in multirun.jobs.items()} == {
        "0": 0, "1": 0, "2": 1, "3": 1,
    }  # fmt: skip
    assert wandb_file.exit_code(multirun.summary) == 0


def test_every_metric_is_logged(multirun: Multirun) -> None:
    found = wandb_file.summary(multirun.jobs["0"])
    content = multirun.results("0")
    for row in (*content["scores"], *content["differences"]):
        name = f"{row['task']}/{row['aggregate']}/{row['stage']}/{row['metric']}"
        assert found[name] == row["value"]
    assert found["headline"] == content["headline"]["value"]
    assert found[TASK] == found["avg"] == content["headline"]["value"]
    raw = [r for r in content["scores"] if (r["stage"], r["metric"]) == ("raw", "spearman")]
    assert found[f"raw/{TASK}"] == found["raw/avg"] == raw[0]["value"]
    assert f"{TASK}/all/raw/spearman" not in wandb_file.summary(multirun.jobs["2"])
    grid = wandb_file.summary(multirun.jobs["1"])  # whose best is no recipe's fair score
    assert "headline" in grid
    assert not {"avg", TASK} & set(grid)


def test_the_table_is_that_of_the_run(multirun: Multirun) -> None:
    (path,) = multirun.folder.glob("0/wandb/offline-run-*/files/media/table/scores*.json")
    table = json.loads(path.read_text())
    content = multirun.results("0")
    found = [dict(zip(table["columns"], row, strict=True)) for row in table["data"]]
    assert [logged | row for row, logged in zip(content["scores"], found, strict=True)] == found
    assert wandb_file.summary(multirun.jobs["0"])["scores"]["nrows"] == len(content["scores"])


def test_figures_are_images(multirun: Multirun) -> None:
    for job, names in (("0", ("scores", "cosines", "spectrum")), ("1", ("dims",))):
        found = wandb_file.summary(multirun.jobs[job])
        for name in names:
            image = found[f"figures/{name}"]["filenames"][0]
            (path,) = multirun.folder.glob(f"{job}/wandb/offline-run-*/files/{image}")
            drawn = multirun.folder / job / "figures" / f"{name}.png"
            assert path.read_bytes() == drawn.read_bytes()


def test_the_curve_over_k_has_an_axis_of_its_own(multirun: Multirun) -> None:
    found = multirun.jobs["1"]
    steps = {metric.name or metric.glob_name: metric.step_metric for metric in of(found, "metric")}
    assert steps["k/*"] == "k"
    with (multirun.folder / "1" / "dims.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    wanted = {
        stage: {
            int(r["k"]): float(r["value"]) for r in rows
            if (r["stage"], r["aggregate"], r["metric"]) == (stage, "all", "spearman")
        }
        for stage in ("post", "rotated")
    }  # fmt: skip
    ks = wandb_file.history(found, "k")
    assert ks == sorted(ks)
    for stage, curve in wanted.items():
        assert wandb_file.history(found, f"k/{stage}") == [curve[k] for k in ks if k in curve]
        assert set(curve) <= set(ks)


def test_the_fitted_map_is_an_artifact_with_its_provenance(multirun: Multirun) -> None:
    kept = {a.type: a for a in of(multirun.jobs["0"], "artifact") if a.type == "whitening"}
    artifact = kept["whitening"]
    assert artifact.name.startswith("whitening-distilbert-avg-pca")
    names = {entry.path for entry in artifact.manifest.contents}
    assert {"whitening.safetensors", "recipe/recipe.yaml", "recipe/weights.safetensors"} <= names
    provenance = json.loads(artifact.metadata)
    assert provenance["model"]["name"] == "distilbert"
    assert provenance["covariance"] == "n - 1"
    assert provenance["versions"]["torch"]


def test_names_tags_groups_and_job_types(multirun: Multirun) -> None:
    runs = {job: next(of(found, "run")) for job, found in multirun.jobs.items()}
    runs["summary"] = next(of(multirun.summary, "run"))
    group = "_".join(multirun.folder.parts[-2:])
    assert {run.run_group for run in runs.values()} == {group}
    assert {run.project for run in runs.values()} == {"whitepool"}
    assert {job: run.job_type for job, run in runs.items()} == {
        "0": "evaluate", "1": "analysis", "2": "evaluate", "3": "analysis", "summary": "summary",
    }  # fmt: skip
    assert runs["0"].display_name == "distilbert avg[-1] pca on mine"
    assert runs["1"].display_name == "distilbert analysis dims on mine"
    wanted = ["tiny", "distilbert", "avg", "pca", "simcse", "mine"]
    assert sorted(runs["0"].tags) == sorted(wanted)
    assert sorted(runs["1"].tags) == sorted([*wanted, "dims"])


def test_the_summary_has_the_jobs_and_their_figure(multirun: Multirun) -> None:
    found = wandb_file.summary(multirun.summary)
    assert found["jobs"]["nrows"] == 4
    assert found["figures/recipes_simcse"]["filenames"]


def test_configurations_are_whole(multirun: Multirun) -> None:
    config = {
        ".".join(item.nested_key) or item.key: json.loads(item.value_json)
        for record in multirun.jobs["0"]
        for item in (*record.run.config.update, *record.config.update)
    }
    assert config["pooling"]["name"] == "avg"
    assert config["model"]["name"] == "distilbert"


def test_summary_of_several_tasks() -> None:
    def row(task: str, stage: str, value: float, metric: str = "spearman") -> Row:
        return Row(task, "", "mean", stage, metric, value, 0, 0, 9)

    rows = [row(t, s, v) for t, s, v in [("a", "raw", 1), ("a", "post", 2), ("b", "raw", 3),
            ("b", "post", float("nan")), ("avg", "raw", 2), ("avg", "post", 2)]]  # fmt: skip
    rows += [row("a", "post", 50, "pearson"), Row("a", "", "all", "post", "spearman", 9, 0, 0, 9)]
    assert summary_of(rows, "mean") == {
        "raw/a": 1, "raw/b": 3, "raw/avg": 2, "a": 2, "avg": 2,
    }  # fmt: skip
    assert summary_of([row("bq", "raw", 70, "accuracy"), row("bq", "raw", 30)], "mean") \
        == {"raw/bq": 70, "raw/avg": 70, "bq": 70, "avg": 70}  # fmt: skip
    undefined = [row("a", "raw", 1), row("a", "post", float("nan"))]
    assert summary_of(undefined, "mean") == {"raw/a": 1, "raw/avg": 1}


def test_names_of_artifacts_have_the_letters_that_wandb_takes() -> None:
    assert wandb_names.artifact("whitening", "a/b c", "é") == "whitening-a-b-c-"
    assert len(wandb_names.artifact("x" * 300)) == 128


def test_a_name_says_what_a_run_is() -> None:
    def named(script: str, *overrides: str) -> str:
        with initialize_config_dir(str(CONF), version_base="1.3"):
            return wandb_names.name(compose(script, overrides=["output_dir=out", *overrides]))

    assert named("evaluate", "pooling=first_last", "whitening.k=256", "data=sts") == (
        "all_minilm first_last[1,-1] pca k=256 on sts12+sts13+sts14+sts15+sts16+stsb+sickr"
    )
    given = ["corpus=text", "corpus.path=x.txt", "pooling=pooler", "model=bert"]
    assert named("train", *given) == "bert pooler pca on text"


def agent_command(sweep: dict[str, Any], chosen: dict[str, Any]) -> list[str]:
    """What W&B's agent runs: program and arguments."""
    from wandb.sdk.launch.sweeps import utils

    given = {"args": {key: {"value": value} for key, value in chosen.items()}}
    words = {
        "${env}": ["/usr/bin/env"],
        "${program}": [sweep["program"]],
        **{f"${{{name}}}": some for name, some in utils.create_sweep_command_args(given).items()},
    }
    parts = utils.create_sweep_command(list(sweep["command"]))
    env, python, *rest = [word for part in parts for word in words.get(part, [part])]
    assert (env, python) == ("/usr/bin/env", "python")
    return rest


@pytest.mark.parametrize("sweep", SWEEPS)
def test_sweeps_of_wandb_are_what_evaluate_takes(sweep: str) -> None:
    """Every value composes, and the metric is one that a run of it logs."""
    content = yaml.safe_load((CONF / "sweep" / f"{sweep}.yaml").read_text())
    choices = [
        [(key, v) for v in p.get("values", [p[k] for k in ("value", "min", "max") if k in p])]
        for key, p in content["parameters"].items()
    ]
    for place in range(max(map(len, choices))):
        chosen = [some[min(place, len(some) - 1)] for some in choices]
        program, *overrides = agent_command(content, dict(chosen))
        assert (CONF.parent / program).is_file()
        with initialize_config_dir(str(CONF), version_base="1.3"):
            config = compose(Path(program).stem, overrides=["output_dir=out", *overrides])
        for key, value in chosen:
            got = OmegaConf.select(config, key)
            assert (got.get("name", value) if OmegaConf.is_dict(got) else got) == value
        assert config.logger.name == "wandb"
        assert config.logger.project == content["project"]
        assert content["metric"]["name"] in ("avg", *wandb_names.tasks(config))
        assert content["metric"]["goal"] == "maximize"


def test_the_workspace_shows_what_runs_log() -> None:
    pytest.importorskip("wandb_workspaces", reason="wandb-workspaces is not installed")
    from whitepool.workspace import MAPS, PROTOCOLS, build

    workspace = build("me", "whitepool")
    assert set(PROTOCOLS) == {path.stem for path in (CONF / "protocol").glob("*.yaml")}
    assert set(MAPS) == {
        "layer_pairs_raw",
        "layer_pairs_post",
        "layers_best",
        "heads",
        "dims",
        "table1",
        "weights",
    }
    assert [section.name for section in workspace.sections] == [
        "Leaderboard", "Directions kept", "Layers and heads", "Vectors and weights",
    ]  # fmt: skip
    text = workspace._to_model().model_dump_json(by_alias=True)
    for logged in ("summary:avg", "summary:stsb", "summary:raw/avg", "k/post", "k/rotated",
                   "figures/layer_pairs_raw", "figures/heads", "figures/cosines"):  # fmt: skip
        assert logged in text


def test_a_fit_keeps_its_recipe(
    offline: pytest.MonkeyPatch, checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    draw = random.Random(0)
    lines = [" ".join(draw.sample(WORDS, 5)) for _ in range(80)]
    (tmp_path / "corpus.txt").write_text("\n".join(lines))
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("train", overrides=[
            "corpus=text", f"corpus.path={tmp_path / 'corpus.txt'}", f"output_dir={tmp_path}",
            "model=bert", f"model.path={checkpoint('bert')}", "logger=wandb", "trainer=cpu",
            "trainer.enable_progress_bar=false",
        ])  # fmt: skip
    assert train(config) == 80
    (path,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    found = wandb_file.records(path)
    (artifact,) = (a for a in of(found, "artifact") if a.type == "recipe")
    assert artifact.name == "recipe-bert-avg"
    names = {entry.path for entry in artifact.manifest.contents}
    assert names == {"recipe/recipe.yaml", "recipe/weights.safetensors"}
    assert json.loads(artifact.metadata)["corpus"] == "text"
    (run,) = of(found, "run")
    assert (run.job_type, run.run_group, run.display_name) == (
        "train", "", "bert avg[-1] pca on text",
    )  # fmt: skip
    assert wandb_file.summary(found)["figures/spectrum"]["filenames"]
    assert wandb_file.exit_code(found) == 0


class Breaking:
    """A W&B run with a call that fails."""

    def __init__(self, bad: str) -> None:
        self.id, self.bad = "x", bad
        self.calls: list[str] = []
        self.codes: list[int] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        def call(*_: object, exit_code: int = 0, **__: object) -> None:
            self.calls.append(name)
            if name == "finish":
                self.codes.append(exit_code)
            if name == self.bad:
                raise OSError("the disk is full")

        return call


@pytest.mark.parametrize("call", ["init", "log", "define_metric", "log_artifact", "finish"])
def test_no_failure_of_wandb_is_worth_a_run(
    call: str,
    checkpoint: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = Breaking(call)

    def init(**_: object) -> Breaking:
        if call == "init":
            raise OSError("the disk is full")
        return run

    monkeypatch.setattr("wandb.init", init)
    overrides = ["logger=wandb", "analysis=dims"] if call == "define_metric" else ["logger=wandb"]
    with caplog.at_level(logging.WARNING):
        score = evaluate(tiny_suite.composed(checkpoint("bert"), tmp_path, *overrides))
    assert json.loads((tmp_path / "results.json").read_text())["headline"]["value"] == score
    assert str(tmp_path) in capsys.readouterr().out.replace("\n", "")
    told = [record.getMessage() for record in caplog.records if "W&B" in record.getMessage()]
    assert told == ["W&B gets no more of this run, which goes on without it: OSError: the disk is "
                    "full"]  # fmt: skip
    assert run.codes == ([] if call == "init" else [0])


def test_after_a_failure_nothing_is_logged_and_the_run_is_ended() -> None:
    run = Breaking("log")
    logger = WandbRun(lambda: run)
    for _ in range(3):
        logger.log_metrics({"avg": 1.0})
    with pytest.raises(KeyboardInterrupt), logger:
        raise KeyboardInterrupt
    assert run.calls == ["log", "finish"]
    assert run.codes == [1]
