#!/usr/bin/env python3
"""Make a release: everything up to publishing, and with --publish that, too (docs/releasing.md).

python tools/release.py             a dry run: build, check and try everything, into dist/
python tools/release.py --offline   the same without the network: steps that need it are left out, by name
python tools/release.py --offline --extension   the same, but with the extension where npm reaches its registry
python tools/release.py --publish   a dry run with nothing left out, then the upload and the tag
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

TOOLS = Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS.parent), str(TOOLS)]

import build_playground  # noqa: E402 - found through the path above
import release_extension  # noqa: E402
import release_papers  # noqa: E402
from buda_emu.support.version import __version__  # noqa: E402
from release_commands import ROOT, ReleaseError, digest, run  # noqa: E402

LEAST_RATING = 8
"""Of pyroma's ten; the two others are an address of the project and of its authors, for whoever publishes it."""
MOST_WHEEL_BYTES = 6 << 20
MOST_SDIST_BYTES = 12 << 20
FIRST_EXAMPLE = "attention"
MOST_SECONDS_FROM_NOTHING = 60
"""From an empty folder to the first result of the first example, its kernels compiled."""


@dataclass
class Release:
    """A release in the making. `packs_offline`: offline, the extension is packed all the same where npm can. `skipped`
    are the titles of steps that were left out, with the reason."""

    dist: Path
    offline: bool
    scratch: Path
    packs_offline: bool = False
    skipped: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def wheel(self) -> Path:
        """The wheel that was built."""
        return self.dist / f"buda_emu-{__version__}-py3-none-any.whl"

    @property
    def python(self) -> Path:
        """The Python of the fresh environment that the wheel is tried in."""
        return self.scratch / "try" / "venv" / "bin" / "python"

    @property
    def sdist(self) -> Path:
        """The source distribution that was built."""
        return self.dist / f"buda_emu-{__version__}.tar.gz"


class Skip(Exception):  # noqa: N818 - no error
    """A step cannot be done here, for the reason that it says."""


def release_date() -> str:
    """Return the date of the newest version in CHANGELOG.md. Raises ReleaseError where that is another version."""
    title = next(line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## "))
    version, _, date = title.removeprefix("## ").partition(", ")
    if version != __version__:
        raise ReleaseError(f"CHANGELOG.md begins with {version}, the package is {__version__}")
    return date


def source_epoch() -> int:
    """Return the release date as SOURCE_DATE_EPOCH: the time that files of the packages get."""
    return int(datetime.fromisoformat(release_date()).replace(tzinfo=UTC).timestamp())


# ------------------------------------------------------------------------------------------------------------ packages
def build_twice(release: Release) -> str:
    """Build from here, and again from the unpacked result, whose files have another place and other times."""
    seconds = source_epoch()
    build_packages(ROOT, release.dist, seconds)
    unpacked = release.scratch / "unpacked"
    with tarfile.open(release.sdist) as archive:
        archive.extractall(unpacked, filter="data")
    for path in unpacked.rglob("*"):
        os.utime(path)
    again = release.scratch / "again"
    build_packages(unpacked / release.sdist.name.removesuffix(".tar.gz"), again, seconds)
    for path in (release.wheel, release.sdist):
        if digest(path) != digest(again / path.name):
            raise ReleaseError(f"{path.name} differs when it is built a second time")
    return "equal twice"


def build_packages(source: Path, dist: Path, seconds: int) -> None:
    """Build the source distribution, and the wheel from it."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", dist, source]
    run(command, source, SOURCE_DATE_EPOCH=str(seconds))


def check_contents(release: Release) -> str:
    """Compare the wheel with what it has to hold, and with what belongs to the project alone."""
    with zipfile.ZipFile(release.wheel) as archive:
        names = archive.namelist()
    examples = [f"buda_emu/{path.relative_to(ROOT)}" for path in sorted((ROOT / "netlists").rglob("*.yaml"))]
    needed = ["buda_emu/py.typed", f"buda_emu-{__version__}.dist-info/licenses/LICENSE", *examples]
    missing = [name for name in needed if name not in names]
    if missing:
        raise ReleaseError(f"the wheel lacks {', '.join(missing)}")
    allowed = ("buda_emu/", f"buda_emu-{__version__}.dist-info/")
    others = [name for name in names if not name.startswith(allowed) or name.endswith((".so", ".pyd", ".pyc", ".nbc"))]
    if others:
        raise ReleaseError(f"the wheel has files that do not belong there: {', '.join(others)}")
    for path, most in ((release.wheel, MOST_WHEEL_BYTES), (release.sdist, MOST_SDIST_BYTES)):
        if path.stat().st_size > most:
            raise ReleaseError(f"{path.name} has {path.stat().st_size:,} bytes, more than {most:,}")
    untracked = sorted(source_files(release.sdist) - tracked_files()) if (ROOT / ".git").exists() else []
    if untracked:
        raise ReleaseError(f"the source distribution has files that git does not: {', '.join(untracked[:10])}")
    return f"{len(names)} files, {release.wheel.stat().st_size / 1e6:.1f} MB, {len(examples)} examples"


def source_files(sdist: Path) -> set[str]:
    """Return the paths in a source distribution, without those that are made for it."""
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    return names - {"PKG-INFO"}


def tracked_files() -> set[str]:
    """Return the paths that git knows, those that are to be added among them."""
    return set(run(["git", "ls-files", "--cached", "--others", "--exclude-standard"]).splitlines())


def check_metadata(release: Release) -> str:
    """Ask twine whether an index takes both packages, and pyroma how well they are described."""
    run([sys.executable, "-m", "twine", "check", "--strict", release.wheel, release.sdist])
    command = "import sys, pyroma; print(pyroma.run('file', sys.argv[1]))"
    rating = int(run([sys.executable, "-c", command, release.sdist], release.scratch).split()[-1])
    if rating < LEAST_RATING:
        raise ReleaseError(f"pyroma gives {rating} of 10, less than {LEAST_RATING}")
    return f"twine passed, pyroma {rating} of 10"


def try_wheel(release: Release) -> str:
    """Install the wheel into a fresh environment, outside of the project, and run the first example."""
    place = release.scratch / "try"
    place.mkdir()
    command = release.python.with_name("buda-emu")
    example = f"{FIRST_EXAMPLE}.yaml"
    cache = str(place / "cache")
    start = time.perf_counter()
    worked = children_seconds()
    install_wheel(release, place)
    run([command, "example", FIRST_EXAMPLE], place)
    run([command, "run", example], place, XDG_CACHE_HOME=cache)
    waited = describe_wait(time.perf_counter() - start, children_seconds() - worked)
    if not release.offline:
        run([release.python, "-m", "pip", "check"], place)
    shown = run([command, "--version"], place)
    if shown.strip() != f"buda-emu {__version__}":
        raise ReleaseError(f"the installed command says {shown.strip()}")
    for verb in ("check", "test", "perf"):
        run([command, verb, example], place, XDG_CACHE_HOME=cache)
    return f"installed, and {FIRST_EXAMPLE} run, {waited}; checked, tested and timed, too"


def install_wheel(release: Release, place: Path) -> None:
    """Install the wheel into an environment in a folder; offline, with the packages of the one that runs this."""
    run([sys.executable, "-m", "venv", place / "venv"])
    install = [release.python, "-m", "pip", "install", "--quiet"]
    if release.offline:
        installed = next((place / "venv" / "lib").glob("python*")) / "site-packages"
        folders = [path for path in sys.path if path.endswith("site-packages")]
        (installed / "dependencies.pth").write_text("\n".join(folders) + "\n")
        run([*install, "--no-deps", "--ignore-installed", release.wheel], place)
    else:
        run([*install, release.wheel], place)


def children_seconds() -> float:
    """Return the processor time of all commands that were run."""
    times = os.times()
    return times.children_user + times.children_system


def describe_wait(seconds: float, worked: float) -> str:
    """Return how long a newcomer waits for the first result. Raises ReleaseError where that is too long: by the clock,
    and on a machine that is at work for others, too, by processor time."""
    busy = os.getloadavg()[0] > (os.cpu_count() or 1)
    if (worked if busy else seconds) > MOST_SECONDS_FROM_NOTHING:
        raise ReleaseError(
            f"the first result came after {seconds:.0f} s, {worked:.0f} s of processor time: "
            f"more than {MOST_SECONDS_FROM_NOTHING} s"
        )
    return f"in {seconds:.0f} s" + (f" on a busy machine, {worked:.0f} s of processor time" if busy else "")


# ----------------------------------------------------------------------------------------------------- pages and tools
def make_playground(release: Release) -> str:
    """Build the playground around the wheel."""
    require_network(release, "npm")
    size = build_playground.build(release.wheel)
    return f"{size / 1e6:.1f} MB"


def make_site(release: Release) -> str:
    """Build the docs as a site, where a link that leads nowhere is an error."""
    site = release.dist / "site"
    run([sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", site])
    return f"{sum(1 for _ in site.rglob('*.html'))} pages"


def pack_extension(release: Release) -> str:
    """Pack the extension for VS Code, and compare it with the files of the project."""
    if not release.packs_offline:
        require_network(release, "npm")
    require_program("npm")
    target = release.dist / f"buda-emu-netlists-{__version__}.vsix"
    repository = project_table().get("urls", {}).get("Repository")
    address = {"BUDA_EMU_ADDRESS": f"{repository.rstrip('/')}/raw/v{__version__}/editors/vscode"} if repository else {}
    try:
        release_extension.pack(target, release.scratch, address)
    except release_extension.NoRegistry as reason:
        raise Skip(str(reason)) from None
    return f"{target.name}, {target.stat().st_size / 1e6:.1f} MB, with the files of the project"


def project_table() -> dict[str, Any]:
    """Return what pyproject.toml says of the project."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def require_network(release: Release, program: str) -> None:
    """Raise Skip where a program that asks the network is missing, or must not."""
    if release.offline:
        raise Skip("needs the network")
    require_program(program)


def require_program(program: str) -> None:
    """Raise Skip where a program is missing."""
    if shutil.which(program) is None:
        raise Skip(f"needs {program}")


def write_materials(release: Release) -> str:
    """Write the bill of materials: the packages that the wheel brought into the fresh environment."""
    document = release_papers.materials_of(release.wheel, release.python, __version__)
    (release.dist / f"buda_emu-{__version__}.cdx.json").write_text(release_papers.json_text(document))
    return f"buda-emu and {len(document['components'])} packages that it needs"


def write_provenance(release: Release) -> str:
    """Write which commit, command and packages all other files come from."""
    statement = release_papers.provenance_of(published_files(release), __version__, source_epoch())
    (release.dist / f"buda_emu-{__version__}.provenance.json").write_text(release_papers.json_text(statement))
    source = statement["predicate"]["buildDefinition"]["resolvedDependencies"][0]
    commit = source.get("digest", {}).get("gitCommit")
    origin = f"commit {commit[:12]}" if commit else "no commit: the source has changes, or is no checkout of git"
    return f"of {len(statement['subject'])} files, {origin}"


def published_files(release: Release) -> list[Path]:
    """Return the files of a release so far, by name."""
    return sorted(path for path in release.dist.iterdir() if path.is_file() and path.name != "SHA256SUMS")


def write_sums(release: Release) -> str:
    """Write SHA256SUMS of all that is published."""
    files = published_files(release)
    (release.dist / "SHA256SUMS").write_text("".join(f"{digest(path)}  {path.name}\n" for path in files))
    return f"of {len(files)} files"


STEPS: Mapping[str, Callable[[Release], str]] = {
    "build": build_twice,
    "contents": check_contents,
    "metadata": check_metadata,
    "try": try_wheel,
    "playground": make_playground,
    "site": make_site,
    "extension": pack_extension,
    "materials": write_materials,
    "provenance": write_provenance,
    "sums": write_sums,
}


# ------------------------------------------------------------------------------------------------------------- command
def make(release: Release) -> None:
    """Take every step. Raises ReleaseError at the first that fails."""
    for title, step in STEPS.items():
        start = time.perf_counter()
        try:
            text = step(release)
        except Skip as reason:
            release.skipped[title] = str(reason)
            text = f"left out: {reason}"
        print(f"{title:11} {time.perf_counter() - start:5.1f} s  {text}", flush=True)


def require_publishable(release: Release) -> None:
    """Raise ReleaseError with every reason why this is not published."""
    reasons = [f"{title} was left out: it {reason}" for title, reason in release.skipped.items()]
    if "Repository" not in project_table().get("urls", {}):
        reasons.append("pyproject.toml has no [project.urls] with Repository")
    if run(["git", "status", "--porcelain"]).strip():
        reasons.append("there are changes that are not committed")
    if f"v{__version__}" in run(["git", "tag"]).split():
        reasons.append(f"there is a tag v{__version__} already")
    if reasons:
        raise ReleaseError("not published:\n  " + "\n  ".join(reasons))


def publish(release: Release) -> None:
    """Upload both packages and tag the commit; twine asks for what it needs."""
    subprocess.run([sys.executable, "-m", "twine", "upload", release.wheel, release.sdist], check=True)
    run(["git", "tag", "--annotate", f"v{__version__}", "--message", f"buda-emu {__version__}"])
    print(f"published; now push the tag v{__version__}, and put {release.dist / 'site'} where the docs are served")


def clear(dist: Path) -> None:
    """Delete the results of an earlier release from a folder, and nothing else."""
    shutil.rmtree(dist / "site", ignore_errors=True)
    for pattern in ("buda_emu-*", "buda-emu-netlists-*.vsix", "SHA256SUMS"):
        for path in dist.glob(pattern):
            path.unlink()


def main() -> int:
    """Make a release. Exit code 1 where a step fails or publishing is refused."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="folder for the results")
    parser.add_argument("--offline", action="store_true", help="leave out, by name, what needs the network")
    parser.add_argument(
        "--extension", action="store_true", help="with --offline: pack the extension all the same where npm can"
    )
    parser.add_argument(
        "--publish", action="store_true", help="upload and tag if nothing failed and nothing was left out"
    )
    args = parser.parse_args()
    clear(args.dist)
    with tempfile.TemporaryDirectory() as scratch:
        release = Release(args.dist.resolve(), args.offline, Path(scratch), packs_offline=args.extension)
        try:
            make(release)
            if args.publish:
                require_publishable(release)
                publish(release)
        except ReleaseError as error:
            print(f"release: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
