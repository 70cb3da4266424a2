"""Peak memory of `whitepool encode` and `whitepool train` as their input grows.

Each command is a process of its own, which writes down its own peak at its end: what the system
tells the parent (ru_maxrss) begins at what the parent held when it started the process.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import sentences
from benchmarks.scale import peak_memory
from whitepool.errors import UserError

COMMANDS = ("encode", "train")
ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Peak:
    """What a command held.

    Attributes:
        command: ``encode`` or ``train``.
        sentences: of the input, all distinct.
        seconds: of the process, imports included.
        peak: resident memory in MB.
    """

    command: str
    sentences: int
    seconds: float
    peak: float


def run(arguments: Sequence[str], work: Path, threads: int | None = None) -> tuple[float, float]:
    """Seconds and peak memory in MB of `whitepool …` with ``work`` as its current folder.

    Raises:
        UserError: the command failed.
    """
    file = work / "peak"
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    if threads is not None:
        environment["OMP_NUM_THREADS"] = str(threads)
    command = [sys.executable, "-m", "benchmarks.memory", str(file), *arguments]
    started = time.perf_counter()
    done = subprocess.run(
        command, cwd=work, env=environment, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - started
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise UserError(f"whitepool {' '.join(arguments)} failed: {lines[-1] if lines else ''}")
    return seconds, float(file.read_text())


def measure(
    folder: Path,
    texts: Sequence[str],
    sizes: Sequence[int],
    work: Path,
    *,
    commands: Sequence[str],
    layers: Sequence[int],
    threads: int | None,
) -> Iterator[Peak]:
    """Every command on every size.

    Args:
        folder: the model.
        texts: sentences that are repeated with a number at the end.
        sizes: numbers of sentences.
        work: a folder for inputs and outputs.
        commands: of `COMMANDS`.
        layers: of the mean.
        threads: of the processor.
    """
    chosen = f"pooling.layers=[{','.join(map(str, layers))}]"
    model = ["model=local", f"model.path={folder}", "trainer=cpu", chosen]
    quiet = ["hydra.run.dir=run", "trainer.enable_progress_bar=false"]
    for count in sizes:
        file = work / f"{count}.txt"
        file.write_text("\n".join(sentences.repeated(texts, count)) + "\n", encoding="utf-8")
        given = {
            "encode": [f"input={file}", f"output=vectors{count}", "format=npy"],
            "train": ["corpus=text", f"corpus.path={file}", f"output=recipe{count}"],
        }
        for command in commands:
            arguments = [command, *model, *quiet, *given[command]]
            yield Peak(command, count, *run(arguments, work, threads))


def rows(peaks: Sequence[Peak]) -> list[dict[str, str]]:
    """The table that is printed: growth is over the smallest size of the same command."""
    least = {p.command: p for p in sorted(peaks, key=lambda p: -p.sentences)}
    return [
        {
            "command": p.command,
            "sentences": f"{p.sentences:,}",
            "seconds": f"{p.seconds:.1f}",
            "peak MB": f"{p.peak:,.0f}",
            "growth MB": f"{p.peak - least[p.command].peak:+,.0f}",
        }
        for p in peaks
    ]


def main() -> int:
    """Be the process that is measured: FILE for the peak, then the words of a command."""
    from whitepool.commands import console

    file = Path(sys.argv[1])
    atexit.register(lambda: file.write_text(str(peak_memory())))
    sys.argv = ["whitepool", *sys.argv[2:]]
    return console.main()


if __name__ == "__main__":
    sys.exit(main())
