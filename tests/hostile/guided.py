"""Coverage-guided fuzzing of one reader: argv is READER RUNS SEED.

Bytes are mutated towards lines of the package that no case has reached yet; the first case whose
outcome is neither rows nor one plain error ends the process with its traceback, as does one of
more than 10 seconds or 4 GB. Source: libFuzzer, through atheris.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["whitepool"]):
    from whitepool.data import senteval, stsb

    from file_cases import FILES
    from reader_cases import NASTY, READERS, outcome

name, runs, seed = sys.argv[1:4]
(reader,) = (one for one in (*READERS, *FILES) if one.name == name)
senteval.check_count = stsb.check_count = lambda *numbers: None
place = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
(place / "seeds").mkdir()
(place / "seeds" / "seed").write_bytes(reader.seed)
(place / "case").mkdir()
words = ["".join(f"\\x{byte:02x}" for byte in x) for x in (*reader.pieces, *NASTY) if x]
(place / "words").write_text("".join(f'"{word}"\n' for word in words if len(word) < 1000))
found: Counter[str] = Counter()


def case(raw: bytes) -> None:
    found[outcome(reader, raw, place / "case")] += 1
    if found.total() == int(runs):
        sys.stdout.write(f"{name}: {found['rows']} read, {found['error']} refused\n")
        sys.stdout.flush()


options = ["-max_len=4096", "-timeout=10", "-rss_limit_mb=4096", "-verbosity=0", "-len_control=0"]
words_of = [f"-dict={place / 'words'}", f"-runs={runs}", f"-seed={seed}"]
atheris.Setup([sys.argv[0], *options, *words_of, str(place / "seeds")], case)
atheris.Fuzz()
