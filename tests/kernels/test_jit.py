"""Where compiled kernels are kept, and that a run never fails for it."""

import subprocess
import sys
import warnings
from pathlib import Path

import numba
import numpy as np
import pytest

from buda_emu.kernels import jit

compiled_only = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled or cached")


def double(x: np.float32) -> np.float32:
    return x * np.float32(2)


@pytest.fixture
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(jit, "own_caches", lambda: tmp_path / "caches" / "buda-emu")
    return tmp_path / "caches"


def test_kernel_keeps_float32_and_overflows_silently() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = jit.kernel(double)(np.float32(3e38))
    assert np.isinf(result)


@compiled_only
def test_compiled_code_lies_in_the_users_cache(caches: Path) -> None:
    before = numba.config.CACHE_DIR
    jit.kernel(double)(np.float32(1))
    after = numba.config.CACHE_DIR
    assert after == before
    (folder,) = (caches / "buda-emu").iterdir()
    assert folder.name.startswith("kernels-")
    assert [path.suffix for path in sorted(folder.rglob("*.nb?"))] == [".nbc", ".nbi"]
    again = jit.kernel(double)
    again(np.float32(1))
    assert sum(again.stats.cache_hits.values()) == 1


@compiled_only
def test_a_helper_is_compiled_into_its_kernel(caches: Path) -> None:
    twice = jit.helper(double)

    def four_times(x: np.float32) -> np.float32:
        return twice(twice(x))

    assert jit.kernel(four_times)(np.float32(1.5)) == 6
    assert len(list(caches.rglob("*.nbc"))) == 1


def test_no_cache_where_the_folder_cannot_be_made(caches: Path) -> None:
    caches.write_text("a file, not a folder")
    assert jit.kernel(double)(np.float32(1)) == 2


@compiled_only
@pytest.mark.parametrize("content", [b"", b"not a pickle"])
def test_a_broken_cache_file_is_compiled_again(caches: Path, content: bytes) -> None:
    jit.kernel(double)(np.float32(1))
    for path in caches.rglob("*.nb?"):
        path.write_bytes(content)
    assert jit.kernel(double)(np.float32(1)) == 2


@compiled_only
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_a_damaged_cache_file_is_healed(caches: Path, kind: str) -> None:
    """A byte in the middle is enough; once it is compiled again, the file is good again."""
    jit.kernel(double)(np.float32(1))
    (path,) = caches.rglob(f"*.{kind}")
    data = bytearray(path.read_bytes())
    for position in (0, 25, len(data) // 2, len(data) - 1):
        data[position] ^= 1
        path.write_bytes(data)
        data[position] ^= 1
        kernel = jit.kernel(double)
        assert kernel(np.float32(1)) == 2
        assert sum(kernel.stats.cache_hits.values()) == 0
        again = jit.kernel(double)
        assert again(np.float32(1)) == 2
        assert sum(again.stats.cache_hits.values()) == 1


@compiled_only
def test_numbas_own_folders_are_not_used(caches: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where ours does not serve, a kernel has no cache: not beside its source, and not where numba's settings say."""
    source = tmp_path / "source.py"
    source.write_text("def double(x):\n    return x + x\n")
    names: dict[str, object] = {}
    exec(compile(source.read_text(), str(source), "exec"), names)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "numba"))

    def full(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("numba.core.caching.UserProvidedCacheLocator.ensure_cache_path", full)
    assert jit.kernel(names["double"])(np.float32(1)) == 2
    assert not list(tmp_path.rglob("*.nb?"))


@compiled_only
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_the_folder_is_looked_at_again_at_each_open(caches: Path) -> None:
    jit.kernel(double)(np.float32(1))
    kept = jit.kernel(double)
    caches.chmod(0o777)
    assert kept(np.float32(1)) == 2
    assert sum(kept.stats.cache_hits.values()) == 0
    caches.chmod(0o700)


@compiled_only
def test_a_folder_that_vanishes_costs_only_the_cache(caches: Path) -> None:
    kernel = jit.kernel(double)
    for path in sorted(caches.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    caches.rmdir()
    caches.write_text("a file, not a folder")
    assert kernel(np.float32(1)) == 2


def test_the_hash_follows_every_source(tmp_path: Path) -> None:
    helper = tmp_path / "helper.py"
    helper.write_text("A = 1\n")
    before = jit._sources_hash(tmp_path)
    assert jit._sources_hash(tmp_path) == before
    helper.write_text("A = 2\n")
    assert jit._sources_hash(tmp_path) != before


def test_rooms_of_kernels_share_one_folder() -> None:
    room = Path(jit.__file__).parent
    assert jit._sources_hash(room) == jit._sources_hash(room / "libm")


def test_disabled_compiler_leaves_python_functions(child_environment: dict[str, str]) -> None:
    program = (
        "import numpy as np\n"
        "from buda_emu.kernels.jit import helper, kernel\n"
        "square = helper(lambda x: x * x)\n"
        "overflow = kernel(lambda x: square(x))\n"
        "result = overflow(np.float32(1e30))\n"
        "assert type(overflow).__name__ == 'function' and result.dtype == np.float32 and np.isinf(result)\n"
    )
    environment = child_environment | {"NUMBA_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, "-W", "error", "-c", program], env=environment, check=True, timeout=60)


@compiled_only
def test_compilations_are_told_and_counted(caches: Path) -> None:
    twice = jit.helper(double)

    def four_times(x: np.float32) -> np.float32:
        return twice(twice(x))

    told: list[str] = []
    kernel = jit.kernel(four_times)
    with jit.compilations(told.append) as compiled:
        kernel(np.float32(1))
        kernel(np.float32(2))
        jit.kernel(four_times)(np.float32(1))  # from disk
    assert told == ["four_times"]  # the helper is part of it
    assert [item.kernel for item in compiled] == ["four_times"]
    assert compiled[0].seconds > 0
    jit.kernel(double)(np.float32(1))
    assert len(compiled) == 1  # no longer watched


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_a_folder_that_others_can_write_to_is_not_used(caches: Path) -> None:
    folder = jit.cache_folder()
    assert folder is not None
    assert folder.is_relative_to(caches)
    folder.chmod(0o777)
    assert jit.cache_folder() is None
