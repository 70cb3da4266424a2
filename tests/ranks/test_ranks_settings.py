"""What ``trainer=`` cannot mean and several processes cannot do: a sentence at the start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir

from whitepool.bulk.several import check_sources
from whitepool.data.row_sources import open_input
from whitepool.errors import UserError
from whitepool.ranks.settings import check_passes, check_trainer, is_several

CONF = str(Path(__file__).resolve().parents[2] / "conf")


def composed(*overrides: str, name: str = "evaluate") -> Any:
    with initialize_config_dir(CONF, version_base="1.3"):
        return compose(name, [*overrides, "hydra.run.dir=x"], return_hydra_config=False)


@pytest.mark.parametrize("trainer", ["auto", "cpu", "gpu", "ddp", "ddp_cpu"])
def test_trainers_as_they_come(trainer: str) -> None:
    config = composed(f"trainer={trainer}")
    check_passes(config)
    assert is_several(config) == trainer.startswith("ddp")


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["trainer=ddp_cpu", "trainer.devices=0"], r"trainer.devices is 0: give the number of"),
        (["trainer=ddp", "trainer.devices=auto"], r"trainer.devices is 'auto': give the number"),
        (["trainer=ddp_cpu", "trainer.num_nodes=0"], r"trainer.num_nodes is 0: give the number"),
        (["trainer=cpu", "trainer.devices=2"], r"trainer.devices is 2 .* trainer=ddp \(GPUs\)"),
        (["trainer=gpu", "trainer.devices=[0,1]"], r"trainer.devices is \[0, 1\]"),
        (["trainer=cpu", "+trainer.num_nodes=2"], r"trainer.num_nodes is 2 and this trainer="),
        (["trainer=ddp_cpu", "analysis=layers"], r"analysis=layers works on one process and"),
        (["trainer=ddp_cpu", "whitening=flow"], r"whitening=flow works on one process"),
        (["trainer=ddp_cpu", "pooling=ditto", "pooling.head=auto"], r"pooling.head=auto works on"),
        (["trainer=ddp_cpu", "trainer.num_nodes=2"], r"trainer.num_nodes is 2 and MASTER_ADDR"),
    ],
)
def test_refused(overrides: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(UserError, match=sentence):
        check_passes(composed(*overrides))


@pytest.mark.parametrize("rank", ["2", "-1", "first"])
def test_a_node_rank_that_is_none(rank: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("MASTER_ADDR", "a"), ("MASTER_PORT", "1"), ("NODE_RANK", rank)):
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match=f"NODE_RANK is '{rank}' and trainer.num_nodes 2"):
        check_passes(composed("trainer=ddp_cpu", "trainer.num_nodes=2"))


def test_several_machines_make_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("MASTER_ADDR", "a"), ("MASTER_PORT", "1"), ("NODE_RANK", "1")):
        monkeypatch.setenv(name, value)
    nodes = ["trainer=ddp_cpu", "trainer.num_nodes=2"]
    check_passes(composed(*nodes))
    for extra in (["whitening=auto"], ["whitening.fit_on=corpus"]):
        with pytest.raises(UserError, match=f"{extra[0]} needs two passes"):
            check_passes(composed(*nodes, *extra))


def test_what_encode_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = composed("trainer=ddp_cpu", "input=-", "output=x", name="encode")
    with pytest.raises(UserError, match=r"input=- can be read once, and each of trainer.devices=2"):
        check_sources(config, open_input("-"))
    for name, value in (("MASTER_ADDR", "a"), ("MASTER_PORT", "1"), ("NODE_RANK", "0")):
        monkeypatch.setenv(name, value)
    (tmp_path / "x.txt").write_text("a dog\n")
    config = composed("trainer=ddp_cpu", "trainer.num_nodes=2", "output=x", name="encode")
    check_trainer(config)
    with pytest.raises(UserError, match=r"encode works on one machine and trainer.num_nodes is 2"):
        check_sources(config, open_input(str(tmp_path / "x.txt")))
