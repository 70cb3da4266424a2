"""What a configuration chooses, loaded: protocol, model, and the table of unique sentences."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hydra.utils import instantiate
from omegaconf import DictConfig

from whitepool.cli import ignore, is_multirun
from whitepool.data.corpus import Corpus
from whitepool.data.corpus_config import load_corpus
from whitepool.data.pairs import PairSet, Task
from whitepool.data.table import SentenceTable
from whitepool.errors import UserError
from whitepool.framing import Frame, is_apart
from whitepool.from_config import by_task, frame_of, load_model, max_length, options
from whitepool.longtext import framed
from whitepool.maps.names import called
from whitepool.plm import FrozenPLM
from whitepool.pooling import Impact, LinearPooling, Pooling
from whitepool.pooling.binding import bind
from whitepool.pooling.estimated import is_estimated
from whitepool.pooling.impact import work
from whitepool.pooling.spec import describe
from whitepool.protocol import EvalProtocol
from whitepool.recipe import Recipe
from whitepool.recipe_run import head_identity, open_recipe_model, tokenize
from whitepool.reuse import fingerprint
from whitepool.token_counts import with_corpus
from whitepool.whitening import Map, PostProcess
from whitepool.word_moments import check_words

log = logging.getLogger(__name__)

Select = Callable[[Sequence[Task]], Sequence[PairSet]]


def no_selection(tasks: Sequence[Task]) -> tuple[PairSet, ...]:
    """What is read beside the tasks where nothing is chosen."""
    return ()


@dataclass(frozen=True, eq=False)
class Choice:
    """What is chosen before anything is loaded.

    Attributes:
        protocol: with the fit set that the command line asks for.
        pooling: the head.
        head: the arguments it was made with, classes included.
        post: what is fitted after pooling, None for nothing.
        fixed: a map that was fitted before and is applied to all, None for none.
        corpus: what ``corpus=`` chose: ``post`` is fitted on it if the protocol says so, and token
            weights are estimated from it.
        frame: what is put around texts.
    """

    protocol: EvalProtocol
    pooling: Pooling
    head: dict[str, Any]
    post: PostProcess | None
    fixed: Map | None
    corpus: Corpus | None
    frame: Frame


@dataclass(frozen=True, eq=False)
class Inputs(Choice):
    """Everything a run works on.

    Attributes:
        plm: the frozen model.
        max_length: tokens per text.
        table: unique sentences and scored pairs.
        token_corpus: what was read for the head's token weights; None where they need no corpus.
    """

    plm: FrozenPLM
    max_length: int
    table: SentenceTable
    token_corpus: dict[str, Any] | None = None

    def fixed_maps(self) -> dict[str, Map] | None:
        """The map that was fitted before, for every fit set; None without one."""
        if self.fixed is None:
            return None
        names = {self.table.fit_set_of(s, self.protocol.fit_on) for s in self.table.scored}
        return dict.fromkeys(sorted(names), self.fixed)


def choose(config: DictConfig, recipe: Recipe | None = None) -> Choice:
    """Protocol, head and step after it; a ``recipe`` has the word on the latter two.

    Raises:
        UserError: an option that a choice does not take, or a value that is none.
    """
    protocol: EvalProtocol = instantiate(config.protocol, _convert_="all")
    if config.whitening.fit_on is not None:
        protocol = replace(protocol, fit_on=config.whitening.fit_on)
    if protocol.fit_on == "corpus":
        protocol = replace(protocol, all_splits=False)
    if recipe is not None:
        if config.corpus.name != "none":
            raise UserError(f"a recipe is fitted already: leave corpus={config.corpus.name} out.")
        frame = Frame(recipe.template, recipe.full_stop)
        return Choice(
            protocol, recipe.head, head_identity(recipe), None, recipe.fitted, None, frame
        )
    head = options(config.pooling, "pooling")
    step = options(config.whitening, "whitening")
    post = instantiate(step, _convert_="all") if "_target_" in step else None
    pooling: Pooling = instantiate(head, _convert_="all")
    corpus = load_corpus(config.corpus)
    check_corpus(corpus, protocol, post, pooling)
    check_words(post, pooling)
    frame = frame_of(config, pooling)
    return Choice(protocol, pooling, {**head, **frame.plain()}, post, None, corpus, frame)


def prepare(
    config: DictConfig,
    choice: Choice,
    recipe: Recipe | None = None,
    select: Select = no_selection,
    plm: FrozenPLM | None = None,
) -> Inputs:
    """Load the model and data that ``config`` chooses, and check that all fits together.

    Args:
        config: composed from `conf/evaluate.yaml`.
        choice: of `choose`.
        recipe: has the word on model and length in place of ``config``.
        select: the sets on which an analysis of these tasks chooses between recipes.
        plm: the model that ``config`` chooses, where it was loaded before.

    Raises:
        UserError: something cannot be loaded, or the parts do not go together.
    """
    tasks = instantiate(config.data, _convert_="all")
    if plm is None:
        plm = load_model(config) if recipe is None else open_recipe_model(config, recipe)
    bound = bind(choice.pooling, plm, choice.frame)
    plm.check(bound.needs)
    length = max_length(config, choice.protocol, plm) if recipe is None else recipe.max_length
    pooling, token_corpus = with_corpus(
        bound, choice.corpus, plm, length, config.window, choice.frame
    )
    if token_corpus is not None:
        _, weights = describe(pooling)
        assert weights is not None
        # What vectors depend on is the weights themselves.
        head = {**choice.head, "token_weights": fingerprint({"weights": weights.numpy()})}
        choice = replace(choice, head=head)
    choice = replace(choice, pooling=pooling)
    in_frame = framed(plm, length, choice.frame, apart=is_apart(pooling))
    table = SentenceTable.build(
        tasks,
        lambda texts: in_frame(texts) if recipe is None else tokenize(plm, recipe, texts),
        other_splits=choice.protocol.all_splits,
        select=select(tasks),
        by_task=by_task(config, choice.protocol, plm) if recipe is None else None,
    )
    choice.protocol.check(table)
    announce(table, choice, length, called(config.whitening.name, "whitening"))
    return Inputs(
        **vars(choice), plm=plm, max_length=length, table=table, token_corpus=token_corpus
    )


def check_corpus(
    given: Corpus | None, protocol: EvalProtocol, post: PostProcess | None, pooling: Pooling
) -> None:
    """See that a corpus is given where one is needed, and used where it is given.

    Raises:
        UserError: it is not. In a multirun, where a corpus may serve only some of the jobs, one
            of no use is a word in the log instead.
    """
    fits = post is not None and protocol.fit_on == "corpus"
    if fits and given is None:
        raise UserError(
            "whitening.fit_on=corpus has no corpus: choose one, as corpus=text corpus.path=FILE."
        )
    if given is not None and not fits and not is_estimated(pooling):
        message = f"corpus={given.name} is of no use without whitening fitted on it"
        if not is_multirun():
            raise UserError(f"{message}: set whitening.fit_on=corpus, or leave it out.")
        ignore("corpus", message)


def task_lengths(config: DictConfig, inputs: Inputs) -> dict[str, int | None]:
    """Tokens that each task's texts were cut to; None for the model's own limit."""
    cut_elsewhere = {} if config.model.max_length is not None else inputs.protocol.max_lengths
    lengths = {
        task.name: min(cut_elsewhere.get(task.name, inputs.max_length), inputs.plm.limit)
        for task in inputs.table.tasks
    }
    return {name: None if n == inputs.plm.limit else n for name, n in lengths.items()}


def announce(table: SentenceTable, choice: Choice, length: int, step: str) -> None:
    """Say what is about to be done, and what is odd about the input; ``step`` follows pooling."""
    protocol, fit = choice.protocol, ""
    if choice.post is not None:
        fit = f"; {step} fitted on {protocol.describe_fit(table)}"
    elif choice.fixed is not None:
        fit = f"; {step} from the recipe"
    log.info(
        "%s sentences, %s unique, in %s %s of %s%s; protocol %s%s",
        f"{table.sentences:,}",
        f"{len(table):,}",
        f"{sum(len(s.gold) for s in table.scored):,}",
        "queries" if all(s.ranking for s in table.scored) else "pairs",
        ", ".join(task.name for task in table.tasks),
        "".join(f" and {len(s.pairs):,} of {s.name} {s.split} to select on" for s in table.select),
        protocol.name,
        fit,
    )
    if isinstance(choice.pooling, LinearPooling) and isinstance(choice.pooling.tokens, Impact):
        copies, tokens = work([len(ids) for ids in table.ids])
        log.info(
            "pooling=impact runs the model on up to %s masked copies of the sentences, %s tokens",
            f"{copies:,}",
            f"{tokens:,}",
        )
    if table.truncated:
        log.warning("%d texts are cut to %d tokens.", table.truncated, length)
    if table.blank:
        log.warning(
            "%d sentences are blank, or hold no word of the model's: their vector is zero, and its "
            "cosine with any other is 0.",
            table.blank,
        )
