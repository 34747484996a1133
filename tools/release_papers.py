"""What a release says of itself: which packages its wheel brings, and what it was made from (docs/releasing.md)."""

import json
import platform
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import distributions, version
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from release_commands import ROOT, ReleaseError, digest, run

BUILD_PACKAGES = ("build", "hatchling")
"""Whose versions the bytes of a wheel depend on."""


# --------------------------------------------------------------------------------------------------- bill of materials
def materials_of(wheel: Path, python: Path, release_version: str) -> dict[str, Any]:
    """Return a CycloneDX document of the wheel and of every package that it needs, in the versions that `python` has.

    Packages of that environment that the wheel does not need, such as pip, are left out."""
    document = environment_materials(python)
    main = document["metadata"]["component"]
    main["version"] = release_version
    main["purl"] = package_url(main["name"], release_version)
    main["hashes"] = [{"alg": "SHA-256", "content": digest(wheel)}]
    edges = needed_packages(main["name"], python_paths(python))
    references = {canonicalize_name(part["name"]): part["bom-ref"] for part in [*document["components"], main]}
    missing = sorted(edges.keys() - references.keys())
    if missing:
        raise ReleaseError(f"CycloneDX does not list {', '.join(missing)}, which the wheel needs")
    needed = {references[name] for name in edges}
    document["components"] = [part for part in document["components"] if part["bom-ref"] in needed]
    document["dependencies"] = [
        {"ref": references[name], "dependsOn": [references[other] for other in sorted(names)]}
        for name, names in sorted(edges.items())
    ]
    require_valid(document)
    return document


def environment_materials(python: Path) -> dict[str, Any]:
    """Return what CycloneDX says of a Python environment, with this project as the main component."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "materials.json"
        options = ["--output-reproducible", "--pyproject", ROOT / "pyproject.toml", "--output-file", file]
        run([sys.executable, "-m", "cyclonedx_py", "environment", *options, python])
        return json.loads(file.read_text())


def python_paths(python: Path) -> list[str]:
    """Return the folders that a Python takes packages from."""
    return json.loads(run([python, "-c", "import json, sys; print(json.dumps(sys.path[1:]))"]))


def needed_packages(name: str, paths: Sequence[str]) -> dict[str, set[str]]:
    """Return a package and all that it needs, each with what it needs itself; an extra counts only where it is asked
    for, even if what it brings is installed."""
    edges: dict[str, set[str]] = {}
    done: set[tuple[str, str]] = set()
    ahead = [(str(canonicalize_name(name)), "")]
    while ahead:
        package, extra = ahead.pop()
        if (package, extra) in done:
            continue
        done.add((package, extra))
        needs = edges.setdefault(package, set())
        for requirement in requirements_of(package, extra, paths):
            other = str(canonicalize_name(requirement.name))
            needs.add(other)
            ahead += [(other, asked) for asked in ("", *requirement.extras)]
    return edges


def requirements_of(package: str, extra: str, paths: Sequence[str]) -> list[Requirement]:
    """Return what an installed package needs with one of its extras, or with none ("")."""
    installed = next(iter(distributions(name=package, path=list(paths))), None)
    if installed is None:
        raise ReleaseError(f"{package} is needed, and not installed")
    requirements = [Requirement(line) for line in installed.requires or ()]
    return [each for each in requirements if each.marker is None or each.marker.evaluate({"extra": extra})]


def require_valid(document: Mapping[str, Any]) -> None:
    """Raise ReleaseError where CycloneDX's own schema refuses a document."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    validator = JsonStrictValidator(SchemaVersion.from_version(document["specVersion"]))
    fault = validator.validate_str(json.dumps(document))
    if fault is not None:
        raise ReleaseError(f"the list of packages breaks CycloneDX's schema: {fault}")


def package_url(name: str, package_version: str) -> str:
    """Return the name of a package of Python as a package URL (purl), which names no index."""
    return f"pkg:pypi/{name.lower().replace('_', '-')}@{package_version}"


# ---------------------------------------------------------------------------------------------------------- provenance
def provenance_of(files: Iterable[Path], release_version: str, source_epoch: int) -> dict[str, Any]:
    """Return an in-toto statement with SLSA's provenance: which command made the files, from which commit, with which
    packages. It is not signed and names no time of the build, so that equal builds give equal statements."""
    release_url = package_url("buda-emu", release_version)
    commit = source_commit()
    source = [{"name": "source", "digest": {"gitCommit": commit}}] if commit else []
    tools = [{"name": name, "uri": package_url(name, version(name))} for name in BUILD_PACKAGES]
    definition = {
        "buildType": f"{release_url}#docs/releasing.md",
        "externalParameters": {"version": release_version, "SOURCE_DATE_EPOCH": source_epoch},
        "internalParameters": {"python": platform.python_version(), "platform": sys.platform},
        "resolvedDependencies": [*source, *tools],
    }
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": path.name, "digest": {"sha256": digest(path)}} for path in files],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": definition,
            "runDetails": {"builder": {"id": f"{release_url}#tools/release.py"}},
        },
    }


def source_commit() -> str | None:
    """Return the commit that the source is, or None where it has changes or is no checkout of git."""
    if not (ROOT / ".git").exists():
        return None
    if run(["git", "status", "--porcelain"]).strip():
        return None
    return run(["git", "rev-parse", "HEAD"]).strip()


def json_text(document: Mapping[str, Any]) -> str:
    """Return a document as JSON text whose keys are in alphabetical order."""
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
