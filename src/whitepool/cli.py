"""What stands between Hydra and a run: errors in one sentence, and multiruns that go on."""

from __future__ import annotations

import difflib
import errno
import functools
import logging
import os
import re
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from whitepool import config_help, credentials, listing
from whitepool.disks import fault_of, is_refusal, telling_of_disk
from whitepool.disks import sentence as sentence_of_disk
from whitepool.errors import UserError, in_one_line
from whitepool.published import experiments
from whitepool.stopping import exit_status, stoppable, unmasked
from whitepool.sweeps import marker
from whitepool.sweeps.job import ERROR_FILE, INTERRUPTED, SkippedJob, run_marked
from whitepool.whole_file import write_text

log = logging.getLogger(__name__)

IGNORED_FILE = "ignored.txt"  # of a job of a multirun: settings that it could not use, one a line
FULL_ERROR = "HYDRA_FULL_ERROR"
TRACEBACK = "WHITEPOOL_TRACEBACK"  # what the user set FULL_ERROR to
LEFT = (
    ERROR_FILE, IGNORED_FILE, marker.FILE, "results.json", "scores.csv", "predictions.safetensors",
    "whitening.safetensors", "report.html",
)  # fmt: skip

LAUNCHERS = {  # of a multirun's jobs -> the extra that brings it
    "joblib": "joblib", "ray": "ray", "submitit_local": "slurm", "submitit_slurm": "slurm",
}  # fmt: skip

MULTIRUN = frozenset({"-m", "--multirun"})

failed_jobs: list[Path] = []


def is_multirun() -> bool:
    """Whether the running job is one of a multirun."""
    return bool(HydraConfig.initialized() and HydraConfig.get().mode == RunMode.MULTIRUN)


def ignore(setting: str, message: str) -> None:
    """Say, in a job of a multirun, that a setting is of no use to it; others may use it."""
    log.warning("%s: ignored.", message)
    folder = Path(HydraConfig.get().runtime.output_dir)
    with (folder / IGNORED_FILE).open("a", encoding="utf-8") as file:
        file.write(f"{setting}\n")


def job(function: Callable[[DictConfig], float]) -> Callable[[DictConfig], float]:
    """Leave a failed run's traceback in its folder; in a multirun, go on with the next job.

    A failed job of a multirun scores NaN. With ``fail_fast=true`` the jobs behind it are skipped. A
    folder that is used again is first cleared of what an earlier run left there.
    """

    @functools.wraps(function)
    def run(config: DictConfig) -> float:
        folder = Path(HydraConfig.get().runtime.output_dir)
        if not is_multirun():
            return _attempt(function, config, folder)
        with marker.at_work(folder, "another process"):
            return _attempt(lambda own: run_marked(function, own, folder), config, folder)

    return run


def _attempt(function: Callable[[DictConfig], float], config: DictConfig, folder: Path) -> float:
    """What the function returns, or NaN after it has failed."""
    elsewhere = f"hydra.{'sweep' if is_multirun() else 'run'}.dir=FOLDER"
    try:
        with unmasked(), telling_of_disk(folder, elsewhere):
            for name in LEFT:
                (folder / name).unlink(missing_ok=True)
            return function(config)
    except KeyboardInterrupt:
        _leave(folder, f"{INTERRUPTED}\n")
        raise
    except SkippedJob as reason:
        _leave(folder, f"{reason}\n")
    except Exception as error:
        _leave(folder, f"{sentence(error)}\n\n{traceback.format_exc()}")
        failed_jobs.append(folder)
        if is_multirun():
            log.error("Failed: %s", sentence(error))
        elif os.environ.get(TRACEBACK) == "1":
            raise
        else:
            _tell(error)
    return float("nan")


def _leave(folder: Path, why: str) -> None:
    """Leave in a run's folder why it has no results, if the disk takes it."""
    with suppress(OSError):
        text = credentials.hidden(why).encode(errors="backslashreplace").decode()
        write_text(folder / ERROR_FILE, text)


def launch(main: Callable[[], Any], command: str) -> NoReturn:
    """Run a Hydra entry point and exit: 0, or 1 after an error or a failed job; 130 on Ctrl-C and
    143 on SIGTERM, after the table of a multirun's jobs.

    Args:
        main: decorated by Hydra.
        command: ``evaluate``, ``train`` or ``encode``: whose groups `--list GROUP` lists.

    Errors are one sentence on stderr. `HYDRA_FULL_ERROR=1` shows the traceback.
    """
    config_help.register()
    failed_jobs.clear()
    words = sys.argv[1:]
    if MULTIRUN.intersection(words):  # argparse takes overrides on one side of it alone
        sys.argv[1:] = ["-m", *(word for word in words if word not in MULTIRUN)]
    if (word := listing.asked(sys.argv[1:])) is not None:
        _list(word, command)
    if any("experiment" in word for word in sys.argv[1:]):
        experiments.register(sys.argv[1:])
    before = os.environ.get(FULL_ERROR, "0")
    wants_traceback = before == "1"
    os.environ[TRACEBACK] = str(int(wants_traceback))
    os.environ[FULL_ERROR] = "1"  # Hydra then raises instead of printing in its own way
    try:
        credentials.refuse(words)
        with stoppable(), unmasked():
            main()
    except KeyboardInterrupt as stop:
        sys.exit(exit_status(stop))
    except BrokenPipeError:  # whoever reads has seen enough, as in --help | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if wants_traceback:
            raise
        _tell(error)
        sys.exit(1)
    finally:
        os.environ[FULL_ERROR] = before
    sys.exit(1 if failed_jobs else 0)


def _list(word: str, command: str) -> NoReturn:
    """Answer `--list GROUP` and exit."""
    try:
        listing.show(config_help.conf_folder(), command, word)
    except UserError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(1)
    sys.exit(0)


def _tell(error: Exception) -> None:
    print(f"Error: {credentials.hidden(sentence(error))}", file=sys.stderr)


def sentence(error: BaseException) -> str:
    """What went wrong, in words for the user."""
    inner: BaseException | None = error
    while inner is not None:  # Hydra wraps what is raised while it instantiates
        if isinstance(inner, UserError):
            return str(inner)
        inner = inner.__cause__
    if isinstance(error, MissingMandatoryValue):
        return f"{error.full_key} has no value: give {error.full_key}=…"
    cause = error.__cause__
    if isinstance(error, HydraException) and isinstance(cause, OmegaConfBaseException):
        return _wrong_setting(cause)
    if isinstance(error, HydraException | OmegaConfBaseException):
        return _of_hydra(error)
    return _of_a_library(error)


def _of_hydra(error: BaseException) -> str:
    """A choice that there is none of, else Hydra's own words on one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = " ".join(lines)
    if missing := re.search(r"Could not find 'hydra/launcher/(\w+)'", said):
        return _no_launcher(missing[1])
    if missing := re.search(r"Could not find '(\w+)/(\S+)'", said):
        end = next((i for i, x in enumerate(lines) if x.startswith("Config search")), None)
        choices = ", ".join(lines[2:end])
        return f"there is no {missing[1]}={missing[2]}: choose one of {choices}."
    if group := re.match(r"Could not override '(\S+)'\. No match in the defaults list", said):
        return f"this command has no {group[1]}=: --help lists the groups and settings that it has."
    if "override_grammar" in said:  # of Hydra's parser, which then names a page on its grammar
        fault = said.partition(" See https://")[0]
        return (
            f"a word cannot be read ({fault}): close each bracket and quote, and put a value with "
            "spaces, commas or equals signs in quotes of its own, as 'data.path=\"a, b.tsv\"'."
        )
    return said


def _no_launcher(name: str) -> str:
    """A launcher that is not installed, or that there is none of."""
    if (extra := LAUNCHERS.get(name)) is None:
        return f"there is no hydra/launcher={name}: choose one of basic, {', '.join(LAUNCHERS)}."
    return f'hydra/launcher={name} is not installed: pip install "whitepool[{extra}]".'


def _of_a_library(error: BaseException) -> str:
    from whitepool.room import is_out_of_memory

    if type(error).__name__ == "MisconfigurationException":  # Lightning's, of its own settings
        return f"trainer= cannot be used here: {str(error).strip().splitlines()[0]}"
    fault = fault_of(error)
    if fault is not None and fault.errno == errno.EACCES and fault.filename:
        return f"{fault.filename}: {fault.strerror}: change its permissions, or give another path."
    if fault is not None and is_refusal(fault):
        where = str(fault.filename or "the run's folder")
        kind = "sweep" if MULTIRUN.intersection(sys.argv[1:]) else "run"
        return sentence_of_disk(fault, where, f"hydra.{kind}.dir=FOLDER")
    if is_out_of_memory(error):
        return (
            f"memory ran out ({type(error).__name__}: {error}): free some, or do less at once with "
            "batch_tokens= or analysis.max_memory=."
        )
    if isinstance(error, OSError) and isinstance(error.filename, str):
        return in_one_line(f"{error.filename} cannot be used ({error.strerror}): check the path.")
    return (
        f"{type(error).__name__}: {error} (this is not a mistake of yours that was foreseen; "
        f"the traceback is in {ERROR_FILE} in the run folder, or set {FULL_ERROR}=1)"
    )


def _wrong_setting(error: OmegaConfBaseException) -> str:
    """An override of a key that does not exist, or of the wrong type."""
    key = str(error.full_key or error.key)
    parent = error.parent_node
    if not OmegaConf.is_dict(parent) or error.key in parent:
        return f"{key}: {str(error.msg).splitlines()[0]}"
    prefix, _, leaf = key.rpartition(".")
    choices = [str(k) for k in parent if not str(k).startswith("_")]
    close = difflib.get_close_matches(leaf, choices, n=1)
    hint = f"did you mean {prefix + '.' if prefix else ''}{close[0]}? " if close else ""
    where = f"{prefix} has" if prefix else "the settings are"
    return f"there is no setting {key}: {hint}{where} {', '.join(choices)}."
