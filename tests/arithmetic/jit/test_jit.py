"""Where compiled kernels are kept, how they are called, and that a run never fails for it."""

import gc
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from buda_emu.arithmetic.jit import kernel as jit
from buda_emu.arithmetic.jit.machine_code import disk_cache
from buda_emu.support.errors import InternalError

compiled_only = pytest.mark.skipif(jit.disabled, reason="nothing is compiled or cached")


def double(x: np.float32) -> np.float32:
    return x * np.float32(2)


@pytest.fixture
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(disk_cache, "own_caches", lambda: tmp_path / "caches" / "buda-emu")
    return tmp_path / "caches"


def compiled_by(call: Callable[[], object]) -> int:
    with jit.compilations() as compiled:
        call()
    return len(compiled)


def call_double() -> None:
    assert jit.kernel(double)(np.float32(1)) == 2


def test_kernel_keeps_float32_and_overflows_silently() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = jit.kernel(double)(np.float32(3e38))
    assert np.isinf(result)


@compiled_only
def test_expressions_on_whole_arrays_are_refused() -> None:
    """They would be slow: numba's step that makes loops of them is left out."""

    def add_to_itself(x: Any) -> None:
        x[:] = x + x

    with pytest.raises(InternalError, match="an expression on whole arrays in a kernel: write a loop"):
        jit.kernel(add_to_itself)(np.ones(3, np.float32))


@compiled_only
def test_collections_go_on_after_a_kernel_was_compiled(caches: Path) -> None:
    assert gc.isenabled()
    assert compiled_by(call_double) == 1
    assert gc.isenabled()


# ------------------------------------------------------------------------------------------------------ what is kept
@compiled_only
def test_compiled_code_lies_in_the_users_cache(caches: Path) -> None:
    assert compiled_by(call_double) == 1
    (folder,) = (caches / "buda-emu").iterdir()
    assert folder.name.startswith("kernels-")
    (file,) = folder.iterdir()
    assert file.name.startswith("double-")
    assert file.suffix == ".o"
    assert compiled_by(call_double) == 0


@compiled_only
def test_a_helper_is_compiled_into_its_kernel(caches: Path) -> None:
    twice = jit.helper(double)

    def four_times(x: np.float32) -> np.float32:
        return twice(twice(x))

    assert jit.kernel(four_times)(np.float32(1.5)) == 6
    assert len(list(caches.rglob("*.o"))) == 1


@compiled_only
def test_what_a_function_finds_around_it_is_part_of_its_name(caches: Path) -> None:
    def times(factor: int, kept: bool) -> Callable[..., Any]:
        unknown = (factor,)  # a tuple may hold anything

        def known_factor(x: int) -> int:
            return x * factor

        def unknown_factor(x: int) -> int:
            return x * unknown[0]

        return jit.kernel(known_factor if kept else unknown_factor)

    assert [times(factor, True)(5) for factor in (2, 3)] == [10, 15]
    assert len(list(caches.rglob("*.o"))) == 2
    assert [times(factor, False)(5) for factor in (2, 3)] == [10, 15]
    assert len(list(caches.rglob("*.o"))) == 2


def test_no_cache_where_the_folder_cannot_be_made(caches: Path) -> None:
    caches.write_text("a file, not a folder")
    call_double()


@compiled_only
def test_a_damaged_cache_file_is_healed(caches: Path) -> None:
    """A byte is enough; once it is compiled again, the file is good again."""
    call_double()
    (path,) = caches.rglob("*.o")
    data = path.read_bytes()
    damages = [data[: len(data) // 2], b"", b"x" * len(data)]
    for position in (0, 25, len(data) // 2, len(data) - 1):
        changed = bytearray(data)
        changed[position] ^= 1
        damages.append(bytes(changed))
    for damaged in damages:
        path.write_bytes(damaged)
        assert compiled_by(call_double) == 1
        assert compiled_by(call_double) == 0


@compiled_only
def test_code_for_another_processor_or_with_other_settings_is_not_run(
    caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from buda_emu.arithmetic.jit.machine_code import loading

    call_double()
    with monkeypatch.context() as patched:
        patched.setattr(loading, "processor", lambda: "another")
        assert compiled_by(call_double) == 1
    with monkeypatch.context() as patched:
        patched.setenv("NUMBA_OPT", "1")
        assert compiled_by(call_double) == 1
    with monkeypatch.context() as patched:
        patched.setenv("NUMBA_NUM_THREADS", "1")
        assert compiled_by(call_double) == 0


@compiled_only
def test_code_of_an_older_layout_is_compiled_again(caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(disk_cache, "_MAGIC", b"buda-emu kernel 1\n")
        assert compiled_by(call_double) == 1
    assert compiled_by(call_double) == 1
    assert compiled_by(call_double) == 0


@compiled_only
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX locks")
def test_processes_that_need_the_same_compile_it_once(tmp_path: Path, child_environment: dict[str, str]) -> None:
    source = tmp_path / "shared_kernel.py"
    source.write_text("from buda_emu.arithmetic.jit.kernel import kernel\n\n@kernel\ndef twice(x):\n    return x + x\n")
    script = (
        "import shared_kernel as shared, sys, time\n"
        "from buda_emu.arithmetic.jit import kernel as jit\n"
        "from buda_emu.arithmetic.jit.compiling import by_numba\n"  # numba is there: what is left takes as long in each
        "print('ready', flush=True); sys.stdin.readline()\n"
        "with jit.compilations() as compiled:\n"
        "    assert shared.twice(4) == 8\n"
        "print(len(compiled))"
    )
    environment = {**child_environment, "XDG_CACHE_HOME": str(tmp_path / "home"), "PYTHONPATH": str(tmp_path)}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", script], env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    counts = [int(worker.communicate(timeout=60)[0]) for worker in workers]
    assert sum(counts) == 1
    (folder,) = (tmp_path / "home" / "buda-emu").iterdir()
    assert [path.suffix for path in folder.iterdir()] == [".o"]


@compiled_only
def test_a_process_that_waits_in_vain_compiles_it_itself(caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(disk_cache, "_LONGEST_WAIT", 0.05)
    place = disk_cache.machine_code_file(double, "somewhere")
    assert place is not None
    monkeypatch.setattr(disk_cache, "machine_code_file", lambda *_: place)
    with Path(f"{place}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert compiled_by(call_double) == 1
    assert compiled_by(call_double) == 0


def test_the_file_that_processes_wait_at_is_its_owners_alone(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    with disk_cache.compilation_lock(str(tmp_path / "code")):
        assert (tmp_path / "code.lock").stat().st_mode & 0o777 == 0o600


@compiled_only
def test_numbas_own_folders_are_not_used(caches: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where ours does not serve, a kernel has no cache: not beside its source, and not where numba's settings say."""
    source = tmp_path / "source.py"
    source.write_text("def double(x):\n    return x + x\n")
    names: dict[str, Any] = {}
    exec(compile(source.read_text(), str(source), "exec"), names)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))

    def full(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("buda_emu.support.caches.os.open", full)
    assert jit.kernel(names["double"])(np.float32(1)) == 2
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path != source]


@compiled_only
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_the_folder_is_looked_at_again_at_each_open(caches: Path) -> None:
    call_double()
    caches.chmod(0o777)
    assert compiled_by(call_double) == 1
    caches.chmod(0o700)
    assert compiled_by(call_double) == 0


@compiled_only
def test_a_folder_that_vanishes_costs_only_the_cache(caches: Path) -> None:
    kernel = jit.kernel(double)
    assert jit.cache_folder() is not None
    for path in sorted(caches.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    caches.rmdir()
    caches.write_text("a file, not a folder")
    assert kernel(np.float32(1)) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_a_folder_that_others_can_write_to_is_not_used(caches: Path) -> None:
    folder = jit.cache_folder()
    assert folder is not None
    assert folder.is_relative_to(caches)
    folder.chmod(0o777)
    assert jit.cache_folder() is None


def test_the_hash_follows_every_source(tmp_path: Path) -> None:
    helper = tmp_path / "helper.py"
    helper.write_text("A = 1\n")
    before = disk_cache._sources_hash(str(tmp_path))
    assert disk_cache._sources_hash(str(tmp_path)) == before
    helper.write_text("A = 2\n")
    assert disk_cache._sources_hash(str(tmp_path)) != before


def test_rooms_of_kernels_share_one_folder() -> None:
    room = Path(jit.__file__).parent
    assert disk_cache._sources_hash(str(room)) == disk_cache._sources_hash(str(room / "libm"))


# ----------------------------------------------------------------------------------------------------- how it is called
class Pair(NamedTuple):
    numbers: Any
    factor: int


def element(array: Any, number: int) -> Any:
    return array[number]


def first_of(pair: Any) -> Any:
    return pair[0][0] * pair[1]


@compiled_only
@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64])
def test_arrays_and_scalars_of_integers(caches: Path, kind: Any) -> None:
    least, most = np.iinfo(kind).min, np.iinfo(kind).max
    get, itself = jit.kernel(element), jit.kernel(lambda x: x)
    array = np.array([least, most], kind)
    for number, value in enumerate((least, most)):
        assert get(array, number) == value
        assert itself(kind(value)) == value


@compiled_only
def test_arrays_in_every_layout(caches: Path) -> None:
    get = jit.kernel(lambda array, i, j: array[i, j])
    plain = np.arange(12, dtype=np.float32).reshape(3, 4)
    constant = plain.copy()
    constant.flags.writeable = False
    arrays = [plain, plain[:, ::2], plain[::-1], np.asfortranarray(plain), constant, plain.astype(">f4").astype("=f4")]
    for _ in range(2):  # each its own code, then found again
        for array in arrays:
            assert get(array, 2, 1) == array[2, 1]
    assert get(np.ma.masked_array(plain), 2, 1) == 9  # of a class of its own


@compiled_only
def test_tuples(caches: Path) -> None:
    first = jit.kernel(first_of)
    numbers = np.array([1.5, 2.5])
    assert first((numbers, 4)) == 6
    assert first(Pair(numbers, 4)) == 6
    nested = jit.kernel(lambda pair: pair[1][0][1] + pair[0])
    assert nested((1, (numbers, 2))) == 3.5
    with pytest.raises(TypeError):
        jit.kernel(lambda _: 0)(({}, 1))


@compiled_only
def test_numbers_and_flags(caches: Path) -> None:
    itself = jit.kernel(lambda x: x)
    for value in (0, -1, 2**63 - 1, -(2**63), True, False, 1.5, np.float64(2.5), np.bool_(True), np.int64(7)):
        result = itself(value)
        assert result == value
        assert type(result) is type(value.item() if isinstance(value, np.generic) else value)
    assert itself(np.float32(0.1)) == np.float32(0.1)
    with pytest.raises(OverflowError):
        itself(2**63)
    assert itself(1) == 1  # and nothing is left of the error
    assert jit.kernel(lambda _: None)(1) is None


@compiled_only
@pytest.mark.parametrize("value", ["text", None, object(), np.array(["text"]), np.zeros(2, ">f4"), 1j])
def test_what_no_kernel_takes(caches: Path, value: object) -> None:
    itself = jit.kernel(lambda _: 0)
    itself(1)
    with pytest.raises(TypeError, match="a kernel takes"):
        itself(value)


@compiled_only
def test_a_wrong_number_of_arguments_is_a_type_error(caches: Path) -> None:
    get = jit.kernel(element)
    array = np.zeros(3)
    get(array, 0)
    for arguments in ((array,), (array, 0, 0), ()):
        with pytest.raises(TypeError):
            get(*arguments)


@compiled_only
def test_what_a_kernel_returns_is_a_number_or_nothing(caches: Path) -> None:
    with pytest.raises(TypeError, match="returns None or a number"):
        jit.kernel(lambda x: (x, x))(1)


@compiled_only
def test_memory_of_a_kernel_is_given_back(caches: Path) -> None:
    def fill(rounds: int, size: int) -> int:
        total = 0
        for number in range(rounds):
            some = np.empty(size, np.int64)
            some[:] = number
            total += some[-1]
        return total

    resource = pytest.importorskip("resource")
    kernel = jit.kernel(fill)
    assert kernel(1, 10) == 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert kernel(400, 1 << 17) == sum(range(400))  # 400 MiB, one at a time
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10
    with pytest.raises(MemoryError, match="Allocation failed"):
        kernel(1, 1 << 58)


@compiled_only
def test_what_a_kernel_raises(caches: Path) -> None:
    def root(x: int) -> int:
        if x < 0:
            raise ValueError("below zero", 3)
        return x

    kernel = jit.kernel(root)
    for _ in range(3):
        with pytest.raises(ValueError, match="below zero") as caught:
            kernel(-1)
        assert caught.value.args == ("below zero", 3)
        assert kernel(1) == 1


@compiled_only
def test_an_exception_that_says_what_it_saw(caches: Path) -> None:
    def root(x: int) -> int:
        if x < 0:
            raise ValueError("below zero", x)
        return x

    kernel = jit.kernel(root)
    with pytest.raises(ValueError, match="raised in kernel root; with NUMBA_DISABLE_JIT"):
        kernel(-1)


@compiled_only
def test_a_kernel_lets_other_threads_run(caches: Path) -> None:
    """It looks at memory until another thread, in Python, writes there."""
    from buda_emu.arithmetic.jit.job_slot import JobSlot
    from buda_emu.arithmetic.jit.thread_team import serve

    slot = JobSlot()
    serve(slot.address, 0, 1)
    waiting = threading.Thread(target=serve, args=(slot.address, 0, 1 << 40), daemon=True)
    waiting.start()
    slot.announce()
    waiting.join(60)
    assert not waiting.is_alive()


# ------------------------------------------------------------------------------------------------------------ watching
def test_disabled_compiler_leaves_python_functions(child_environment: dict[str, str]) -> None:
    program = (
        "import numpy as np, sys\n"
        "from buda_emu.arithmetic.jit.kernel import helper, kernel\n"
        "square = helper(lambda x: x * x)\n"
        "overflow = kernel(lambda x: square(x))\n"
        "result = overflow(np.float32(1e30))\n"
        "assert type(overflow).__name__ == 'function' and result.dtype == np.float32 and np.isinf(result)\n"
        "assert not {'numba', 'llvmlite'} & set(sys.modules)\n"
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
    call_double()
    assert len(compiled) == 1  # no longer watched
