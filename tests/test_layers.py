"""Imports point one way (docs/architecture.md): the contracts of pyproject.toml hold."""

import ast
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "buda_emu"
# Third-party packages and the rooms that may import them at the top of a file.
ALLOWED = {
    "errors.py": set(),
    "stopped.py": set(),
    "caches.py": set(),
    "workers": set(),
    "files.py": set(),
    "identity.py": set(),
    "strict_json.py": set(),
    "unmasked.py": set(),
    "version.py": set(),
    "screen.py": set(),
    "records.py": set(),
    "garbage.py": set(),
    "interrupt.py": set(),
    "lazy.py": set(),
    "spec": set(),
    "checker": set(),
    "netlist": set(),
    "program": set(),
    "pytest_plugin.py": {"pytest"},
    "cli": {"numpy"},  # work of verbs that write arrays
    "documents": set(),
    "formats": {"numpy"},
    "jit": {"numpy"},
    "kernels": {"numpy"},
    "tensor": {"numpy"},
    "device": {"numpy"},
    "timeline": {"numpy"},
    "vpux": {"numpy"},  # where something is run
    "gemini": {"numpy"},  # where something is timed or executed; `from buda_emu import gemini` loads none
    "tensix": {"numpy"},
    "image": {"numpy"},
    "routing": {"numpy"},  # where pipes are made of a netlist; streams need none
    "ops": {"numpy"},
    "timing": {"numpy"},
    "darwinn": {"numpy"},
    "runtime": {"numpy"},
    "machines": {"numpy"},
    "advice": {"numpy"},
    "verify": {"numpy"},
    "coverage": {"numpy"},  # of what a run does
    "testing": {"numpy"},
    "injection": {"numpy"},
    "report": {"numpy", "jinja2", "markupsafe"},  # pages
    "compiler": {"numpy"},
    "api": {"numpy"},
    "debugger": {"numpy"},
    "backend_api.py": set(),
    "__init__.py": set(),
    "editor": {"pygls", "lsprotocol"},  # imported by `buda-emu lsp` alone
    "__main__.py": set(),
}
OWN = {
    "compiler/train/joint.py": {"torch"},  # imported with the first model that is trained
    **{
        path.relative_to(PACKAGE).as_posix(): {"numba", "llvmlite"}  # imported when a kernel is compiled
        for path in (
            *(PACKAGE / "jit" / "compiling").glob("*.py"),
            *(PACKAGE / "jit" / "intrinsics").glob("*.py"),
            *(PACKAGE / "kernels" / "intrinsics").glob("*.py"),
        )
    },
    "cli/prompt.py": {"prompt_toolkit"},  # imported where somebody sits before the debugger
    "report/terminal/drawn_table.py": {"rich"},  # imported with the first table that is printed
    "testing/strategies.py": {"hypothesis"},  # imported where a property test asks for netlists
    "workers/dask_plugin.py": {"distributed"},  # runs on Dask workers only
    **{
        path.relative_to(PACKAGE).as_posix(): {package}  # imported when such a model is read
        for package in ("onnx", "torch", "jax")
        for path in (PACKAGE / "compiler" / "importers" / f"from_{package}").glob("*.py")
    },
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
MOST_IN_FUNCTIONS = 228


def test_import_contracts(root, child_environment):
    lint = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    command = [sys.executable, "-c", lint, "--no-cache"]
    done = subprocess.run(command, cwd=root, env=child_environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_third_party_imports_stay_in_their_rooms():
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).parts[0]
        for name in top_level_imports(path):
            file = path.relative_to(PACKAGE).as_posix()
            if name not in sys.stdlib_module_names | {"buda_emu"} | ALLOWED[room] | OWN.get(file, set()):
                wrong.append(f"{file} imports {name}")
    assert wrong == []


def test_imports_in_functions_become_no_more():
    """Each is a reason that a reader has to find: what is optional, or costs more than a start should."""
    count = sum(1 for path in PACKAGE.rglob("*.py") for _ in imports_in_functions(path))
    assert count <= MOST_IN_FUNCTIONS, "import at the top, or by the verb's work (docs/contributing.md)"


def imports_in_functions(path):
    """Lines of imports that run when a function does."""
    tops = (node for node in ast.parse(path.read_text()).body if isinstance(node, (*FUNCTIONS, ast.ClassDef)))
    return {node.lineno for top in tops for node in ast.walk(top) if isinstance(node, (ast.Import, ast.ImportFrom))}


def top_level_imports(path):
    """Root names of what a file imports when it is imported itself."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]
