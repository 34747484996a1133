#!/usr/bin/env python3
"""Build the playground: a static page in docs/playground/, from editors/playground, a wheel and packages of npm.

python tools/build_playground.py WHEEL                    npm ci, then build
python tools/build_playground.py WHEEL --packages FOLDER  with the node_modules of FOLDER, without the network
"""

import argparse
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib.metadata import distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "editors" / "playground"
TARGET = ROOT / "docs" / "playground"
PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json", "python_stdlib.zip")
"""What Pyodide loads in a browser."""
DISTRIBUTION = "https://cdn.jsdelivr.net/pyodide/v{version}/full/"
"""Where Pyodide's own packages are; the page asks for numpy there, and only when somebody wants cycles."""
NOT_IN_BROWSERS = ("buda_emu/netlists/", "buda_emu/compiler/")
"""Parts of the wheel that the page does not use."""


def build(wheel: Path, target: Path = TARGET, packages: Path | None = None) -> int:
    """Build the page and return its size in bytes. `packages` is a node_modules with what package.json names; without
    it npm installs them in a folder of its own."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        shutil.copytree(SOURCE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules"))
        if packages is None:
            subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], cwd=folder, check=True)
        else:
            (folder / "node_modules").symlink_to(packages.resolve())
        bundle(folder, target)
        copy_pyodide(folder / "node_modules" / "pyodide", target)
    for name in ("index.html", "style.css"):
        shutil.copy(SOURCE / name, target)
    shutil.copytree(ROOT / "netlists", target / "netlists", ignore=shutil.ignore_patterns("recipes"))
    (target / "package.zip").write_bytes(package_archive(wheel))
    write_file_lists(target)
    return sum(path.stat().st_size for path in target.rglob("*") if path.is_file())


def bundle(folder: Path, target: Path) -> None:
    """Bundle the page with CodeMirror, and copy the worker, which imports Pyodide from beside it."""
    esbuild = folder / "node_modules" / ".bin" / "esbuild"
    options = ["--bundle", "--format=esm", "--minify", "--target=es2022", "--legal-comments=eof", "--log-level=warning"]
    command = [esbuild, folder / "src" / "page.js", *options, f"--outfile={target / 'page.js'}"]
    subprocess.run([str(word) for word in command], cwd=folder, check=True)
    shutil.copy(SOURCE / "src" / "worker.js", target)


def copy_pyodide(package: Path, target: Path) -> None:
    """Copy Pyodide's files."""
    (target / "pyodide").mkdir()
    for name in PYODIDE:
        shutil.copy(package / name, target / "pyodide")


def package_archive(wheel: Path) -> bytes:
    """Return an archive of the wheel's modules and PyYAML's, all of them pure Python."""
    stream = io.BytesIO()
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(source.namelist()):
            if name.startswith("buda_emu/") and not name.startswith(NOT_IN_BROWSERS):
                add(archive, name, source.read(name))
        for file in sorted(distribution("pyyaml").files or (), key=str):
            if file.parts[0] == "yaml" and file.suffix == ".py":
                add(archive, file.as_posix(), file.read_binary())
    return stream.getvalue()


def add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Add a file with a fixed date, so that equal contents give equal archives."""
    archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)


def write_file_lists(target: Path) -> None:
    """Write files.json, which the page reads, and the service worker with the list of all files and their digest."""
    version = json.loads((SOURCE / "package.json").read_text())["dependencies"]["pyodide"]
    netlists = sorted(path.name for path in (target / "netlists").glob("*.yaml"))
    files = {"packages": DISTRIBUTION.format(version=version), "netlists": netlists}
    (target / "files.json").write_text(json.dumps(files, indent=1) + "\n")
    names = sorted(path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file())
    digest = hashlib.sha256()
    for name in names:
        digest.update(f"{name}\0".encode() + (target / name).read_bytes())
    worker = (SOURCE / "src" / "service-worker.js").read_text()
    worker = worker.replace("@VERSION@", digest.hexdigest()[:16]).replace("@FILES@", " ".join(["./", *names]))
    (target / "service-worker.js").write_text(worker)


def main() -> int:
    """Build the page where the docs look for it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wheel", type=Path, help="the wheel of this package")
    parser.add_argument("--packages", type=Path, metavar="FOLDER", help="a node_modules that is there already")
    parser.add_argument("--target", type=Path, default=TARGET, metavar="FOLDER", help="default: docs/playground")
    args = parser.parse_args()
    size = build(args.wheel, args.target, args.packages)
    print(f"{args.target}: {size / 1e6:.1f} MB; try: python -m http.server --directory {args.target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
