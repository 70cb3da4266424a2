"""A multirun in order: its jobs, its folder, what is done already, and the rest through a launcher.

A job that fails, or whose process dies, does not take the others down, and no folder of a finished
job is written to again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hydra.core.config_loader import ConfigLoader
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from whitepool import cli
from whitepool.sweep import sum_up_stopped
from whitepool.sweeps import depends, folders, marker
from whitepool.sweeps.marker import Marker
from whitepool.sweeps.plan import Asked, Placed, place

log = logging.getLogger(__name__)

Words = list[str]
GOES_ON = "encode"  # the command that goes on by itself with what it finds


def run_jobs(
    config: DictConfig,
    loader: ConfigLoader,
    launcher: Launcher,
    arguments: Sequence[str],
    jobs_of: Callable[[Sequence[str]], list[Words]],
    *,
    at_once: int | None = None,
) -> list[Sequence[JobReturn]]:
    """Run the jobs of a sweep; the folders of those that failed are left in `cli.failed_jobs`.

    Args:
        config: of the multirun; its folder is set to the one that is resumed.
        loader: composes the configuration of a job.
        launcher: runs jobs.
        arguments: overrides, those that are swept included.
        jobs_of: overrides -> those of each job.
        at_once: how many jobs a launcher is given at a time; None for all.

    Raises:
        UserError: the folder is in use, holds jobs that nobody asked to resume, or is not to be
            found.
    """
    words, resume = folders.without_resume(arguments)
    jobs = jobs_of(words)
    asked = _asked(config, loader, jobs, with_keys=resume)
    goes_on = config.hydra.job.name == GOES_ON
    folder = folders.chosen(config, words, asked, resume=resume, goes_on=goes_on)
    if folder != Path(config.hydra.sweep.dir):
        with read_write(config.hydra), open_dict(config.hydra):
            config.hydra.sweep.dir = str(folder)
            config.hydra.overrides.hydra.append(f"hydra.sweep.dir={_quoted(str(folder))}")
    folder.mkdir(parents=True, exist_ok=True)
    with marker.at_work(folder, "a multirun"):
        there = folders.standing(folder)
        for name in there:
            with marker.at_work(folder / name, f"job {name} of an earlier multirun"):
                pass
        taken = [path.name for path in folder.iterdir() if not folders.is_vacant(path)]
        placed = place(asked, there, taken, goes_on=goes_on)
        if resume:
            _tell(placed, there, folder)
        OmegaConf.save(config, folder / folders.RECORD)
        todo = [
            (one.folder, [*job, f"hydra.sweep.subdir={_quoted(one.folder)}"])
            for one, job in zip(placed, jobs, strict=True)
            if not one.finished
        ]
        returned: list[Sequence[JobReturn]] = []
        try:
            for first in range(0, len(todo), at_once or max(len(todo), 1)):
                batch = todo[first : first + (at_once or len(todo))]
                returned += _launch(launcher, batch, first, folder)
        except KeyboardInterrupt:
            log.warning("%s", _how_to_go_on(folder))
            names = (one.folder for one in placed)
            sum_up_stopped(config, dict(zip(names, jobs, strict=True)))
            raise
    failed = [folder / name for name, _ in todo if not _is_finished(folder / name)]
    cli.failed_jobs[:] = failed
    if failed:
        log.warning("%d of %d jobs failed. %s", len(failed), len(jobs), _how_to_go_on(folder))
    return returned


def _asked(
    config: DictConfig, loader: ConfigLoader, jobs: Sequence[Words], *, with_keys: bool
) -> list[Asked]:
    """The jobs of a sweep; settings and sources are empty unless ``with_keys``."""
    checksums = depends.Checksums()
    hydra = HydraConfig.instance()
    before, found = hydra.cfg, []
    try:
        for number, words in enumerate(jobs):
            job = loader.load_sweep_config(config, list(words))
            with open_dict(job):
                job.hydra.job.num, job.hydra.job.id = number, str(number)
            hydra.set_config(job)
            name = str(OmegaConf.select(job, "hydra.sweep.subdir"))
            with open_dict(job):
                own = job.copy()
                del own["hydra"]
            settings = depends.settings(own) if with_keys else ""
            found.append(Asked(name, settings, checksums.of(own) if with_keys else {}))
    finally:
        hydra.cfg = before
    return found


def _tell(placed: Sequence[Placed], there: Mapping[str, Marker | None], folder: Path) -> None:
    """Say what is done, and what becomes of the rest."""
    done = [one.folder for one in placed if one.finished]
    again = [one.folder for one in placed if one.again]
    log.info(
        "%s: %d of %d jobs are finished and not run again%s.",
        folder,
        len(done),
        len(placed),
        f" ({', '.join(done)})" if done else "",
    )
    if again:
        log.info("Begun earlier and run again: %s.", ", ".join(again))
    now = depends.versions()
    for name in done:
        state = there[name]
        if state and (others := [f"{k} {v}" for k, v in state.versions.items() if v != now.get(k)]):
            log.warning("Job %s was finished with %s.", name, ", ".join(others))
    for one in placed:
        if one.beside:
            log.warning(
                "Job %s was finished before the %s changed: it stays, and is made anew as job %s.",
                one.beside,
                " and ".join(one.changed),
                one.folder,
            )


def _launch(
    launcher: Launcher, batch: Sequence[tuple[str, Words]], first: int, folder: Path
) -> list[Sequence[JobReturn]]:
    """Run jobs; where a process dies and the launcher gives up, go on with those not yet begun."""
    found: list[Sequence[JobReturn]] = []
    waiting = list(batch)
    while waiting:
        before = {name: _touched(folder / name) for name, _ in waiting}
        try:
            returned = launcher.launch([words for _, words in waiting], initial_job_idx=first)
        except Exception as fault:
            left = [job for job in waiting if _touched(folder / job[0]) == before[job[0]]]
            if len(left) == len(waiting):  # the launcher itself does not work
                raise
            log.error("A job's process died (%s: %s).", type(fault).__name__, fault)
            first += len(waiting) - len(left)
            waiting = left
            continue
        for (name, _), job in zip(waiting, returned, strict=True):
            if job.status == JobStatus.FAILED:
                log.error("Job %s: %s", name, _why(job))
        found.append(returned)
        break
    return found


def _why(job: JobReturn) -> str:
    try:
        _ = job.return_value
    except Exception as fault:
        return cli.sentence(fault)
    return ""


def _touched(folder: Path) -> int:
    """When the state of a job was last written; 0 where it never was."""
    file = folder / marker.FILE
    return file.stat().st_mtime_ns if file.exists() else 0


def _is_finished(folder: Path) -> bool:
    state = marker.read(folder)
    return state is not None and state.finished


def _how_to_go_on(folder: Path) -> str:
    return f"To go on: the same words with hydra.sweep.dir={folder} resume=true."


def _quoted(text: str) -> str:
    """A value as Hydra's grammar of overrides has it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
