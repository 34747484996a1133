"""Imports point one way (docs/architecture.md): the contracts of pyproject.toml hold."""

import ast
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "buda_emu"
# Third-party packages that the files of a folder may import at the top; the longest matching name counts.
ALLOWED = {
    "__init__.py": set(),
    "__main__.py": set(),
    "app/api": {"numpy"},
    "app/backend_api.py": set(),
    "app/cli": {"numpy"},  # work of verbs that write arrays
    "app/debugger": {"numpy"},
    "app/documents": set(),
    "app/editor": {"pygls", "lsprotocol"},  # imported by `buda-emu lsp` alone
    "app/pytest_plugin.py": {"pytest"},
    "app/__init__.py": set(),
    "compiler": {"numpy"},
    "emulator": {"numpy"},
    "foreign": {"numpy"},  # where something is run or timed; `from buda_emu.foreign import gemini` loads none
    "netlist": set(),
    "arithmetic": {"numpy"},
    "performance": {"numpy"},
    "report": {"numpy", "jinja2", "markupsafe"},  # pages
    "spec": set(),
    "support": set(),
    "testing": {"numpy"},
}
OWN = {
    "compiler/train/compile_training.py": {"torch"},  # imported with the first model that is trained
    **{
        path.relative_to(PACKAGE).as_posix(): {"numba", "llvmlite"}  # imported when a kernel is compiled
        for path in (
            *(PACKAGE / "arithmetic" / "jit" / "compiling").glob("*.py"),
            PACKAGE / "arithmetic" / "jit" / "intrinsics.py",
            PACKAGE / "arithmetic" / "jit" / "llvm_code.py",
            *(PACKAGE / "arithmetic" / "kernels" / "intrinsics").glob("*.py"),
        )
    },
    "app/cli/prompt.py": {"prompt_toolkit"},  # imported where somebody sits before the debugger
    "report/terminal/drawn_table.py": {"rich"},  # imported with the first table that is printed
    "testing/strategies.py": {"hypothesis"},  # imported where a property test asks for netlists
    "support/workers/dask_plugin.py": {"distributed"},  # runs on Dask workers only
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
        for name in top_level_imports(path):
            file = path.relative_to(PACKAGE).as_posix()
            if name not in sys.stdlib_module_names | {"buda_emu"} | allowed(file) | OWN.get(file, set()):
                wrong.append(f"{file} imports {name}")
    assert wrong == []


def allowed(file):
    """What a file may import as one of its folder."""
    names = [name for name in ALLOWED if file == name or file.startswith(f"{name}/")]
    return ALLOWED[max(names, key=len)]


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
