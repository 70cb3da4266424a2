"""Files kept between runs: exact or absent, whatever happens to them."""

from __future__ import annotations

import logging
import multiprocessing
import os
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import save_file

from whitepool.reuse import Store, digest

MADE = {"kind": "vectors", "n": 1}
X = np.arange(6, dtype=np.float32).reshape(2, 3)
LARGE = 1024**3


def path_of(store: Store, made_from: dict[str, Any]) -> Path:
    return store.folder / f"{digest(made_from)}.safetensors"


def kept(folder: Path) -> Store:
    """A store as a later run sees it, with X in it."""
    Store(folder, LARGE).save(MADE, {"x": X})
    return Store(folder, LARGE)


def equal(found: Any, wanted: Any) -> bool:
    return (
        found is not None
        and found.keys() == wanted.keys()
        and all(
            (found[k].dtype, found[k].shape, found[k].tobytes())
            == (wanted[k].dtype, wanted[k].shape, wanted[k].tobytes())
            for k in wanted
        )
    )


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    arrays=st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
            lambda name: name != "__metadata__"
        ),
        hnp.arrays(
            st.sampled_from([np.float32, np.float64]),
            hnp.array_shapes(min_dims=0, min_side=0),
            elements={"allow_nan": False, "allow_infinity": False},
        ),
        min_size=1,
    )
)
def test_arrays_come_back_bit_for_bit(
    arrays: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = Store(tmp_path_factory.mktemp("store"), LARGE)
    assert store.load(MADE) is None
    store.save(MADE, arrays)
    assert equal(Store(store.folder, LARGE).load(MADE), arrays)
    assert store.load({**MADE, "n": 2}) is None
    assert len(list(store.folder.iterdir())) == 1


def test_a_cut_file_is_told_of_and_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = kept(tmp_path)
    path = path_of(store, MADE)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        caplog.clear()
        assert store.load(MADE) is None, length
        (record,) = caplog.records
        assert "cannot be reused" in record.message
        assert "\n" not in record.message
    store.save(MADE, {"x": X})
    assert equal(store.load(MADE), {"x": X})


def test_no_flipped_bit_goes_unnoticed(tmp_path: Path) -> None:
    """A flip in the blanks that fill up the header may leave the content as it is."""
    store = kept(tmp_path)
    path = path_of(store, MADE)
    whole = path.read_bytes()
    harmless = 0
    for position in range(len(whole)):
        for bit in (position % 7, 7):
            damaged = bytearray(whole)
            damaged[position] ^= 1 << bit
            path.write_bytes(damaged)
            found = store.load(MADE)
            assert found is None or equal(found, {"x": X}), (position, bit)
            harmless += found is not None
    assert harmless < 10


@pytest.mark.parametrize("content", [b"", b"hello", b"\x00" * 64, b"{" * 5000])
def test_other_files_are_not_read(tmp_path: Path, content: bytes) -> None:
    store = kept(tmp_path)
    path_of(store, MADE).write_bytes(content)
    assert store.load(MADE) is None


def test_files_of_another_key_or_program_are_not_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = kept(tmp_path)
    other = {"kind": "vectors", "n": 2}
    path_of(store, other).write_bytes(path_of(store, MADE).read_bytes())
    assert store.load(other) is None
    for metadata in (None, {"whitepool": "[]"}, {"whitepool": "[" * 100_000}, {"whitepool": "NaN"}):
        save_file({"x": X}, path_of(store, MADE), metadata=metadata)
        assert store.load(MADE) is None
    path_of(store, MADE).unlink()
    path_of(store, MADE).mkdir()
    assert store.load(MADE) is None
    store.save(MADE, {"x": X})
    assert "nothing is kept for later runs" in caplog.text


def test_what_is_not_finite_is_not_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = Store(tmp_path, LARGE)
    for value in (np.nan, np.inf, -np.inf):
        store.save(MADE, {"x": X, "y": np.array([1.0, value])})
    assert not list(tmp_path.iterdir())
    assert caplog.text.count("not finite") == 3


def test_a_folder_that_cannot_be_made_costs_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    store = Store(tmp_path / "file" / "vectors", LARGE)
    assert store.load(MADE) is None
    store.save(MADE, {"x": X})
    assert store.load(MADE) is None
    assert caplog.text.count("nothing is kept for later runs") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind the superuser")
def test_a_folder_that_cannot_be_written_costs_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = kept(tmp_path)
    tmp_path.chmod(0o500)
    try:
        assert equal(store.load(MADE), {"x": X})
        store.save({"n": 2}, {"x": X})
    finally:
        tmp_path.chmod(0o700)
    assert "nothing is kept for later runs" in caplog.text


def test_a_full_disk_costs_a_warning_and_leaves_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The system refuses files over a size, as it refuses any on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        Store(tmp_path, LARGE).save(MADE, {"x": np.zeros(100_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "File too large" in caplog.text
    assert not list(tmp_path.iterdir())


def total(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def test_the_file_unused_for_longest_makes_room(tmp_path: Path) -> None:
    x = np.zeros(10_000)  # 80 kB
    made = [{"n": n} for n in range(4)]
    for n in range(3):
        Store(tmp_path, 300_000).save(made[n], {"x": x})
        os.utime(path_of(Store(tmp_path, 1), made[n]), (n, n))
    assert Store(tmp_path, 300_000).load(made[0]) is not None  # now the one used last
    Store(tmp_path, 300_000).save(made[3], {"x": x})
    later = Store(tmp_path, 300_000)
    assert [later.load(m) is not None for m in made] == [True, False, True, True]
    assert total(tmp_path) <= 300_000


def test_a_job_never_removes_what_it_has_kept_or_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    x = np.zeros(10_000)
    Store(tmp_path, 200_000).save({"n": 0}, {"x": x})
    store = Store(tmp_path, 200_000)
    assert store.load({"n": 0})
    store.save({"n": 1}, {"x": x})
    for path in tmp_path.iterdir():
        os.utime(path, (0, 0))
    store.save({"n": 2}, {"x": x})
    assert store.load({"n": 0})
    assert store.load({"n": 1})
    assert store.load({"n": 2}) is None
    assert "cache.max_size leaves" in caplog.text
    Store(tmp_path, 200_000).save({"n": 3}, {"x": x})  # another job may
    assert Store(tmp_path, 200_000).load({"n": 3})
    assert total(tmp_path) <= 200_000


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 4_000), min_size=1, max_size=12), limit=st.integers(1_000, 40_000)
)
def test_the_limit_holds(
    sizes: list[int], limit: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("store")
    for n, size in enumerate(sizes):
        store = Store(folder, limit)
        store.save({"n": n}, {"x": np.zeros(size)})
        assert total(folder) <= limit
        assert (store.load({"n": n}) is not None) == (8 * size + 1_500 <= limit) or (
            8 * size <= limit < 8 * size + 1_500
        )


def test_what_an_interrupted_process_left_goes_after_a_day(tmp_path: Path) -> None:
    fresh, old = tmp_path / ".a.partial", tmp_path / ".b.partial"
    for path in (fresh, old):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 90_000,) * 2)
    kept(tmp_path)
    assert fresh.exists()
    assert not old.exists()


def test_others_may_read_what_the_umask_lets_them(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        store = kept(tmp_path)
    finally:
        os.umask(before)
    assert path_of(store, MADE).stat().st_mode & 0o777 == 0o644


def _busy(folder: Path, seed: int, seconds: float, faults: Any) -> None:
    logging.getLogger("whitepool.reuse").addHandler(_Collect(faults))
    draw = np.random.default_rng(seed)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        n = int(draw.integers(6))
        store = Store(folder, 250_000)
        found = store.load({"n": n})
        if found is None:
            store.save({"n": n}, {"x": np.full(10_000, n, dtype=np.float64)})
        elif not (found["x"] == n).all():
            faults.put(f"{n}: other values")


class _Collect(logging.Handler):
    def __init__(self, faults: Any) -> None:
        super().__init__(logging.WARNING)
        self.faults = faults

    def emit(self, record: logging.LogRecord) -> None:
        self.faults.put(record.getMessage())


def test_processes_share_a_folder_that_is_always_too_small(tmp_path: Path) -> None:
    """Reading, writing and making room at once: no fault, no warning, no false value."""
    context = multiprocessing.get_context("fork")
    faults = context.Queue()
    arguments = [(tmp_path, seed, 1.5, faults) for seed in range(4)]
    processes = [context.Process(target=_busy, args=a) for a in arguments]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert faults.empty()
    assert {path.suffix for path in tmp_path.iterdir()} == {".safetensors"}
