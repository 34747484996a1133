"""What loading gave is kept and taken again, and nothing that lies in the cache can change a result."""

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from buda_emu.netlist import build, cache, yaml_reader
from buda_emu.netlist import cache as pickled
from buda_emu.netlist.load import NetlistResult, check
from buda_emu.netlist.model import Execute, Netlist
from buda_emu.netlist.nodes import Mapping, Node, Scalar, Sequence
from buda_emu.netlist.sourced import Sourced
from buda_emu.support.caches import digest
from netlist.netlist_texts import NETLIST
from shared_files import CORPUS, needs_corpus

TEST_CONFIG = "test-config:\n  test-args: {loops: 3, other: [1, 'two']}\n"


@pytest.fixture
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setattr("buda_emu.support.caches.own_caches", lambda: tmp_path / "caches")
    return tmp_path / "caches" / cache.FOLDER


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.yaml"
    path.write_text(NETLIST + TEST_CONFIG, encoding="utf-8")
    return path


def objects(netlist: Netlist) -> Iterator[Sourced]:
    yield from (*netlist.queues.values(), *netlist.graphs.values(), *netlist.fused_ops.values(), *netlist.ops.values())
    for program in netlist.programs.values():
        yield program
        for instruction in program.instructions:
            yield instruction
            if isinstance(instruction, Execute):
                yield from instruction.queue_settings


def plain(node: Node | None) -> object:
    """A tree with all that it says."""
    if node is None:
        return None
    if isinstance(node, Scalar):
        return (node.text, node.plain, node.mark)
    if isinstance(node, Sequence):
        return (node.mark, [plain(item) for item in node.items])
    return (node.mark, [(plain(key), plain(value)) for key, value in node.pairs])


def everything(result: NetlistResult) -> object:
    """All that a result says, places included."""
    netlist = result.netlist
    assert netlist is not None
    sections = {name: plain(node) for name, node in netlist.sections.items()}
    sources = [(item.at(), item.broken, plain(item.source), plain(item.name_node)) for item in objects(netlist)]
    tms = [tm.mark for op in netlist.ops.values() for chain in op.input_tms for tm in chain]
    names = ("path", "arch_name", "archs", "queues", "graphs", "fused_ops", "programs", "program_order")
    return (
        [getattr(netlist, name) for name in names],
        netlist.temporal_graphs,
        netlist.diagnostics,
        result.diagnostics,
        sections,
        sources,
        tms,
    )


def kept(caches: Path) -> Path:
    (found,) = caches.iterdir()
    return found


def test_a_second_load_reads_no_yaml_and_says_the_same(
    net: Path, caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plainly = check(net, cache=False)
    assert not caches.exists()
    first = check(net)
    with monkeypatch.context() as patch:
        patch.setattr(build, "read_tree", None)  # may not be called
        second = check(net)
    assert everything(plainly) == everything(first) == everything(second)
    assert second.netlist is not None
    assert isinstance(second.netlist.sections["test-config"], Mapping)


def test_the_place_of_a_field_is_read_when_it_is_asked_for(net: Path, caches: Path) -> None:
    check(net)
    netlist = check(net).netlist
    assert netlist is not None
    op = netlist.ops["copy"]
    assert isinstance(op.source, Mapping)
    value = op.source.find("inputs")
    assert value is not None
    assert op.at("inputs") == value.mark != op.at()
    with pytest.raises(AttributeError, match="colour"):
        _ = op.source.colour  # type: ignore[attr-defined]
    again = pickle.loads(pickle.dumps(netlist))
    assert again.ops["copy"].at("inputs") == value.mark


def test_a_run_needs_no_place(root: Path, caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from buda_emu.app.api.run_netlist import run_netlist

    path = root / "netlists" / "training.yaml"
    plainly = run_netlist(check(path).netlist)  # type: ignore[arg-type]
    monkeypatch.setattr(yaml_reader, "read_tree", None)  # may not be called
    assert run_netlist(check(path).netlist).outputs == plainly.outputs  # type: ignore[arg-type]


@pytest.mark.parametrize("edit", ["content", "path", "arch", "strict"])
def test_what_a_result_depends_on_makes_another_file(edit: str, net: Path, caches: Path, tmp_path: Path) -> None:
    check(net)
    if edit == "content":
        net.write_text(NETLIST + "# more\n", encoding="utf-8")
    elif edit == "path":
        net = net.rename(tmp_path / "other.yaml")
    arch = "blackhole" if edit == "arch" else None
    result = check(net, arch, strict=edit == "strict")
    assert result.netlist is not None
    assert len(list(caches.iterdir())) == 2
    assert result.netlist.path == str(net)
    assert result.netlist.arch_name == (arch or "wormhole_b0")
    assert ("test-config" in result.netlist.sections) == (edit != "content")


def test_other_sources_make_another_file(net: Path, caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(net)
    monkeypatch.setattr(cache, "sources", lambda *_: (("rules.py", 1, 2),))
    check(net)
    assert len(list(caches.iterdir())) == 2


def test_a_refused_netlist_is_not_kept(net: Path, caches: Path) -> None:
    net.write_text(NETLIST.replace("entries: 2", "entries: two"), encoding="utf-8")
    results = [check(net), check(net)]
    assert [item.rule for item in results[1].diagnostics] == ["V180", "V180"]
    assert results[0] == results[1]
    assert list(caches.iterdir()) == []


class Bomb:
    """Runs code when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.marker),)


def damages(path: Path, good: bytes, marker: Path) -> Iterator[bytes]:
    """Files that are not what they should be."""
    yield b""
    yield good[:30]
    yield good[:-1]
    yield good[: len(good) // 2]
    yield good[:-1] + bytes([good[-1] ^ 1])
    yield good[:25] + bytes([good[25] ^ 1]) + good[26:]
    whole = [b"", b"\xff" * 8, b"\x08" + bytes(7), pickle.dumps(Bomb(marker)), (0).to_bytes(8, "little") + b"."]
    size = int.from_bytes(good[51:59], "little")
    for bomb in (Bomb(marker), ({}, ()), ([1], Bomb(marker))):
        body = pickle.dumps(bomb)
        whole += [good[51:59] + good[59 : 59 + size] + body, len(body).to_bytes(8, "little") + body + good[59 + size :]]
    for payload in whole:  # with the right checksum: by hand of somebody
        yield good[:19] + digest(str(path), payload) + payload


def test_no_file_can_change_a_result_or_run_code(net: Path, caches: Path, tmp_path: Path) -> None:
    expected = everything(check(net))
    path = kept(caches)
    good = path.read_bytes()
    for content in damages(path, good, tmp_path / "marker"):
        path.write_bytes(content)
        assert everything(check(net)) == expected
        assert path.read_bytes() == good  # it was replaced
    assert not (tmp_path / "marker").exists()


def test_only_classes_of_a_netlist_can_be_named() -> None:
    for name in (
        "os\nsystem",
        "builtins\neval",
        "buda_emu.netlist.load\nload",
        "buda_emu.netlist.cache\n_slots",
    ):
        payload = f"c{name}\n.".encode()
        with pytest.raises(pickle.UnpicklingError, match="not part of a netlist"):
            pickled.unpickle_result(memoryview(len(payload).to_bytes(8, "little") + payload), b"")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_a_folder_that_others_can_write_to_is_not_used(net: Path, caches: Path, tmp_path: Path) -> None:
    expected = everything(check(net))
    caches.chmod(0o777)
    before = kept(caches).read_bytes()
    kept(caches).write_bytes(b"from somebody else")
    assert everything(check(net)) == expected
    assert kept(caches).read_bytes() == b"from somebody else"
    kept(caches).write_bytes(before)
    caches.rename(tmp_path / "elsewhere")
    caches.symlink_to(tmp_path / "elsewhere")
    assert everything(check(net)) == expected


def test_no_cache_where_the_folder_cannot_be_made(net: Path, caches: Path) -> None:
    caches.parent.write_text("a file, not a folder")
    assert everything(check(net)) == everything(check(net, cache=False))


def test_files_that_were_not_used_for_longest_make_room(
    net: Path, caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [NETLIST + f"# {number}\n" for number in range(4)]

    def use(text: str) -> set[str]:
        net.write_text(text, encoding="utf-8")
        assert check(net).ok
        return {path.name for path in caches.iterdir()}

    (first,) = use(texts[0])
    os.utime(caches / first, (1, 1))
    (second,) = use(texts[1]) - {first}
    os.utime(caches / second, (2, 2))
    use(texts[0])  # now the second is the oldest
    monkeypatch.setattr(cache, "MOST_BYTES", sum(path.stat().st_size for path in caches.iterdir()) + 10)
    left = use(texts[2])
    assert len(left) == 2
    assert first in left
    assert second not in left


def test_processes_share_a_cache(net: Path, tmp_path: Path, child_environment: dict[str, str]) -> None:
    script = "import sys; from buda_emu import load\nfor _ in range(20): assert list(load(sys.argv[1]).ops) == ['copy']"
    environment = {**child_environment, "XDG_CACHE_HOME": str(tmp_path / "home")}
    processes = [subprocess.Popen([sys.executable, "-c", script, str(net)], env=environment) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    folder = tmp_path / "home" / "buda-emu" / cache.FOLDER
    assert len(list(folder.iterdir())) == 1


@needs_corpus
def test_real_netlists_are_the_same_from_the_cache(caches: Path) -> None:
    files = sorted((CORPUS / "netlists").rglob("*.yaml"), key=lambda path: path.stat().st_size)
    for path in (files[len(files) // 2], *files[-12:-1:3]):
        plainly = check(path, cache=False)
        if plainly.netlist is None:
            continue
        check(path)
        assert everything(check(path)) == everything(plainly)
