"""Two runs that update a baseline at the same time: neither loses what the other wrote."""

from buda_emu.report.baselines import Item, read_baseline


def test_what_another_run_wrote_meanwhile_is_kept(tmp_path):
    path = str(tmp_path / "known.json")
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).touch()
    first = read_baseline(path, "perf", {}, update=True)
    second = read_baseline(path, "perf", {}, update=True)
    first.keep({str(tmp_path / "a.yaml"): [Item("epoch", 1.0)]})
    second.keep({str(tmp_path / "b.yaml"): [Item("epoch", 2.0)]})
    files = read_baseline(path, "perf", {}).content["perf"]["files"]
    assert files.keys() == {"a.yaml", "b.yaml"}
