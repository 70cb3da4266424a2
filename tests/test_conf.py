"""Every shipped YAML composes, and what it names can be built."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hydra import compose, initialize_config_dir
from hydra.utils import get_method, instantiate
from omegaconf import OmegaConf

from whitepool.analysis.run import Grids
from whitepool.data.corpus_config import load_corpus
from whitepool.encoding import open_store
from whitepool.from_config import options
from whitepool.maps.names import POST_PROCESSES, takes
from whitepool.pooling import LinearPooling, Uniform
from whitepool.size import parse_size
from whitepool.whitening import Whitening

from tiny import FAMILIES

CONF = Path(__file__).resolve().parents[1] / "conf"
HEADS = {"bert": (0, 9), "roberta": (0, 4), "electra": (0, 10), "sbert_nli_stsb": (2, 6)}


def choices(group: str) -> list[str]:
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


def composed(*overrides: str) -> Any:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("evaluate", overrides=["output_dir=out", *overrides])


@pytest.mark.parametrize("model", choices("model"))
def test_models(model: str) -> None:
    given = {"hub": ["model.id=some/model"], "words": ["model.path=vectors.txt"]}.get(model, [])
    config = composed(f"model={model}", "pooling=ditto", *given).model
    assert config.name == (model if model != "hub" else "some/model")
    assert (config.ditto.block, config.ditto.head) == HEADS.get(model, (None, None))
    local = model in ("local", "words")
    assert sum(config[key] is not None for key in ("id", "asset")) == (not local)


FAMILY_OF = {
    "bert": (
        "all_minilm all_minilm_l12 bert bert_large bert_zh bert_zh_large labse mbert minilm "
        "roberta_zh roberta_zh_large sbert_nli sbert_nli_large sbert_nli_stsb simbert "
        "simbert_small simbert_tiny simcse_sup simcse_sup_large simcse_unsup simcse_unsup_large "
        "spanbert spanbert_large specter wobert"
    ),
    "roberta": (
        "roberta roberta_large simcse_sup_roberta simcse_sup_roberta_large simcse_unsup_roberta "
        "simcse_unsup_roberta_large"
    ),
    "xlm_roberta": "multilingual_e5 xlm_roberta xlm_roberta_large",
    "distilbert": "distilbert",
    "albert": "albert albert_large",
    "electra": "electra",
    "deberta": "deberta deberta_large",
    "mpnet": "all_mpnet mpnet",
    "t5": "t5 t5_large",
    "layoutlm": "layoutlm layoutlm_large",
    "squeezebert": "squeezebert",
    "roformer": "roformer",
    "nezha": "nezha nezha_large",
    "gpt2": "dialogrpt",
    "modernbert": "modernbert modernbert_large",
    "gemma3": "gemma gemma3",
    "qwen3": "qwen3",
    "llama": "llama3",
    "opt": "opt",
}


def test_every_model_is_of_a_family_that_is_tested() -> None:
    """`test_families` and `test_packing` encode with a tiny model of each of these."""
    named = [name for names in FAMILY_OF.values() for name in names.split()]
    assert sorted([*named, "hub", "local", "words"]) == choices("model")
    assert set(FAMILY_OF) <= set(FAMILIES)


@pytest.mark.parametrize("pooling", choices("pooling"))
def test_poolings(pooling: str) -> None:
    config = composed(f"pooling={pooling}", "model=bert").pooling
    assert config.name == pooling
    head = instantiate(options(config, "pooling"), _convert_="all")
    needs = head.needs
    assert needs.layers or needs.pooler or needs.since is not None
    assert needs.diagonals == (((0, 9),) if pooling == "ditto" else ())


@pytest.mark.parametrize("whitening", choices("whitening"))
def test_whitenings(whitening: str) -> None:
    config = composed(f"whitening={whitening}", "whitening.k=null").whitening
    assert config.name == whitening
    built = options(config, "whitening")
    assert ("_target_" in built) == (whitening != "off")
    step = instantiate(built)
    if whitening != "off":
        kind = "pca" if whitening == "auto" else whitening
        assert type(step) is POST_PROCESSES[kind]  # type: ignore[index]
        assert {*takes(kind), "fit_on"} == {*config.options}  # type: ignore[arg-type]


def test_every_step_has_a_yaml() -> None:
    assert sorted([*POST_PROCESSES, "off", "auto"]) == choices("whitening")


def test_one_sweep_mixes_steps_that_take_other_options() -> None:
    for whitening in ("off", "center"):
        composed(f"whitening={whitening}", "whitening.gamma=0.5", "whitening.remove=2")


@pytest.mark.parametrize("protocol", choices("protocol"))
def test_protocols(protocol: str) -> None:
    built = instantiate(composed(f"protocol={protocol}").protocol, _convert_="all")
    assert built.name == protocol
    wanted = {"simcse": "all", "mteb": "all", "whiteningbert": "mean", "su": "wmean"}
    assert built.aggregate == wanted[protocol]
    assert (built.max_length, built.all_splits, built.max_lengths) == (
        (64, True, {"pawsx": 128}) if protocol == "su" else (None, False, {})
    )


@pytest.mark.parametrize("data", choices("data"))
def test_data(data: str) -> None:
    config = composed(f"data={data}").data
    loaders = {
        "pairs": "load_pairs",
        "rte": "load_rte",
        "stsb_multi": "load_stsb_multi",
        "retrieval": "load_retrieval",
    }
    chinese = ("sts_zh", "atec", "bq", "lcqmc", "pawsx", "stsb_zh")
    loaders |= dict.fromkeys(chinese, "load_chinese")
    assert config._target_ == f"whitepool.data.{loaders.get(data, 'load_sts')}"
    takes = set(inspect.signature(get_method(config._target_)).parameters)
    assert set(config) - {"_target_"} == takes
    if "tasks" in config and data not in ("sts", "sts_zh"):
        assert OmegaConf.to_container(config.tasks) == [data]


@pytest.mark.parametrize("corpus", choices("corpus"))
def test_corpora(corpus: str) -> None:
    for name in ("evaluate", "train"):
        with initialize_config_dir(str(CONF), version_base="1.3"):
            config = compose(name, overrides=[f"corpus={corpus}", "output_dir=out"]).corpus
        assert (config.name, config.limit, config.seed) == (corpus, None, 0)
        if corpus == "none":
            assert load_corpus(config) is None
        else:
            function = get_method(config._target_)
            takes = set(inspect.signature(function).parameters)
            assert set(config) - {"_target_", "name", "limit", "seed"} == takes


@pytest.mark.parametrize("trainer", choices("trainer"))
def test_trainers(trainer: str) -> None:
    assert composed(f"trainer={trainer}").trainer.devices == (2 if "ddp" in trainer else 1)


@pytest.mark.parametrize("logger", choices("logger"))
def test_loggers(logger: str) -> None:
    assert composed(f"logger={logger}").logger.name == logger


@pytest.mark.parametrize("cache", choices("cache"))
def test_caches(cache: str) -> None:
    assert (open_store(composed(f"cache={cache}").cache) is None) == (cache == "off")


def test_vectors_are_kept_unless_it_is_said_otherwise() -> None:
    store = open_store(composed().cache)
    assert store is not None
    assert store.max_size == 4 * 1024**3


@pytest.mark.parametrize("experiment", choices("experiment"))
def test_experiments(experiment: str) -> None:
    config = composed(f"experiment={experiment}", "model=bert")
    assert config.pooling.name in choices("pooling")
    content = yaml.safe_load((CONF / "experiment" / f"{experiment}.yaml").read_text())
    for override in content.get("defaults", []):
        for key, value in override.items():
            assert config[key.removeprefix("override /")].name == value


@pytest.mark.parametrize("analysis", choices("analysis"))
def test_analyses(analysis: str) -> None:
    config = composed(f"analysis={analysis}").analysis
    assert config.name == analysis
    everything = [name for name in choices("analysis") if name not in ("none", "all")]
    wanted = {"none": [], "all": everything}.get(analysis, [analysis])
    assert sorted(config.grids) == wanted
    if wanted:
        choice: Any = SimpleNamespace(
            pooling=LinearPooling(Uniform(), [-1]),
            post=Whitening(),
            protocol=SimpleNamespace(fit_on="task"),
        )
        assert list(Grids(config, choice).analyses) == list(config.grids)
        assert parse_size(config.max_memory, "analysis.max_memory") == 4 * 2**30


def test_options_of_a_choice_that_takes_them_survive() -> None:
    config = composed("pooling=layers", "pooling.layers=[1,2,static]").pooling
    assert options(config, "pooling")["layers"] == [1, 2, "static"]


def test_encode() -> None:
    from whitepool.bulk.run import SETTINGS
    from whitepool.bulk.settings import Settings

    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("encode", overrides=["output_dir=out", "input=x", "output=y"])
    assert Settings(**{name: config[name] for name in SETTINGS}) == Settings()
    assert config.whitening.name == "off"
