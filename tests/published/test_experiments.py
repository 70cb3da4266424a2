"""Every published row whose system runs here has an experiment that composes to its recipe."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.config_loader import ConfigLoader
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.object_type import ObjectType
from hydra.utils import instantiate

from whitepool.data import chinese, rte
from whitepool.data.counts import COUNTS, HUB_COUNTS
from whitepool.from_config import options
from whitepool.maps.names import POST_PROCESSES
from whitepool.pooling.spec import describe
from whitepool.published.experiments import by_experiment, content, register
from whitepool.published.match import Ran, head_of, resolved, same_recipe
from whitepool.published.rows import System, systems, values

from tiny_suite import CONF

DEPTH = 12


def shape(name: str) -> str:
    """What an experiment says, but for its model."""
    made = content(by_experiment()[name])
    kept = [d for d in made["defaults"] if "override /model" not in d]
    return json.dumps({**made, "defaults": kept}, sort_keys=True)


SHAPES = {shape(name): name for name in by_experiment()}


pytestmark = pytest.mark.usefixtures("hydra_store")


def composed(experiment: str) -> Any:
    register([f"experiment={experiment}"])
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("evaluate", overrides=["output_dir=out", f"experiment={experiment}"])


def check(experiment: str, served: list[System]) -> None:
    """See that an experiment's configuration is the recipe of each of its systems."""
    config = composed(experiment)
    protocol = instantiate(config.protocol, _convert_="all")
    pooling = instantiate(options(config.pooling, "pooling"), _convert_="all")
    step = options(config.whitening, "whitening")
    post = instantiate(step) if "_target_" in step else None
    on_corpus = config.whitening.fit_on == "corpus"
    run = Ran(
        model=config.model.name,
        depth=DEPTH,
        head=resolved(describe(pooling)[0], DEPTH) if config.pooling.name != "ditto" else None,
        post="" if post is None else {made: n for n, made in POST_PROCESSES.items()}[type(post)],
        k=getattr(post, "k", None),
        fit=config.corpus.name if on_corpus else protocol.fit_on,
        tasks={},
    )
    for system in served:
        if system.head == "diagonal":
            assert (config.model.name, config.pooling.name) == (system.model, "ditto")
            assert (config.pooling.block, config.pooling.head) != (None, None)
            assert list(config.pooling.layers) == [0, -1]
            continue
        assert same_recipe(run, system), system
        own = [value for value in values() if value.system == system.system]
        assert own
        for value in own:
            if value.task != "avg":
                check_data(config, protocol, system, value)
        assert protocol.aggregate in {value.aggregate for value in own} or len(served) > 1


def check_data(config: Any, protocol: Any, system: System, value: Any) -> None:
    """See that the tasks, lengths and fit set are those of the value."""
    length = protocol.max_lengths.get(value.task, protocol.max_length)
    assert length == value.max_length
    if config.data._target_.endswith("load_rte"):
        counts, split = dict(rte.RTE.counts), config.data.split
    elif config.data._target_.endswith("load_chinese"):
        assert value.task in config.data.tasks
        counts, split = dict(chinese.SETS[value.task].counts), config.data.split
    else:
        assert value.task in config.data.tasks
        split = config.data.split
        one_file = value.task in ("stsb", "sickr")
        counts = {"test": sum(n for (_, s), n in COUNTS[value.task].items() if s == "test")}
        if system.table == "mteb":
            counts = {"test": HUB_COUNTS[value.task]["test"]}
        elif one_file:
            counts = {s: n for (_, s), n in COUNTS[value.task].items()}
    assert split == value.split
    scored = sum(counts.values()) if split == "all" else counts[split]
    assert scored == value.pairs
    if value.fit_pairs is not None:
        assert value.fit_pairs == (sum(counts.values()) if protocol.all_splits else scored)


@pytest.mark.parametrize("experiment", SHAPES.values())
def test_one_experiment_of_each_shape_composes_to_its_recipes(experiment: str) -> None:
    check(experiment, by_experiment()[experiment])


@pytest.mark.nightly
@pytest.mark.parametrize("experiment", by_experiment())
def test_every_experiment_composes_to_its_recipes(experiment: str) -> None:
    check(experiment, by_experiment()[experiment])


def test_every_system_that_runs_has_an_experiment_of_its_own_model() -> None:
    for system in systems().values():
        if not system.model:
            continue
        made = content(by_experiment()[system.experiment])
        chosen = {k: v for d in made["defaults"] for k, v in d.items()}
        assert chosen["override /model"] == system.model
        assert chosen["override /protocol"] == system.protocol
        assert chosen["override /data"] == system.data
        assert (CONF / "model" / f"{system.model}.yaml").is_file()
        if system.head != "diagonal":
            served = by_experiment()[system.experiment]
            heads = {str(head_of(s, DEPTH)) for s in served}
            assert len(heads) == 1, "systems of one experiment share a head"
            whitened = {(s.post, s.k, s.fit) for s in served if s.post}
            assert len(whitened) <= 1
            if system.post:
                assert chosen["override /whitening"] == system.post
                assert made.get("whitening", {}).get("k") == system.k


def test_patterns_find_them_beside_the_files() -> None:
    register(["data=sts", "experiment=glob(*)"])
    with initialize_config_dir(str(CONF), version_base="1.3"):
        loader: ConfigLoader = GlobalHydra.instance().config_loader()
        found = loader.get_group_options("experiment", ObjectType.CONFIG)
    assert {"whiteningbert", "sweep_heads", "whiteningbert_table2_bert"} <= set(found)
    counts = {
        prefix: sum(name.startswith(prefix) for name in found)
        for prefix in ("whiteningbert_", "bert_whitening_zh_", "ditto_", "simcse_", "mteb_")
    }
    assert counts == {
        "whiteningbert_": 16 + 22 + 1,
        "bert_whitening_zh_": 2 * 42,
        "ditto_": 4,
        "simcse_": 7,
        "mteb_": 3,
    }


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["experiment=ditto_bert,whiteningbert_table2_bert"], 2),
        (["-m", "experiment=glob(whiteningbert_table2_*)"], 22),
        (["experiment=whiteningbert"], 0),  # a file
        (["experiment=whiteningbertt"], len(by_experiment())),  # the error lists them all
    ],
)
def test_only_those_that_are_named_are_stored(words: list[str], found: int) -> None:
    register(words)
    assert len(ConfigStore.instance().repo.get("experiment", {})) == found
