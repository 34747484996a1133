"""Processes that a test starts see its mutant, too: `BUDA_EMU_MUTANT` names the module and a file with its code."""

import os
import sys

if "BUDA_EMU_MUTANT" in os.environ:
    import marshal
    from importlib.machinery import PathFinder

    _NAME, _, _FILE = os.environ["BUDA_EMU_MUTANT"].partition("=")

    class _Changed:
        """Imports one module from changed code."""

        def find_spec(self, name, path, target=None):  # type: ignore[no-untyped-def]
            spec = PathFinder.find_spec(name, path, target) if name == _NAME else None
            if spec is not None:
                spec.loader = self
            return spec

        def create_module(self, spec):  # type: ignore[no-untyped-def] # noqa: ARG002
            return None

        def exec_module(self, module):  # type: ignore[no-untyped-def]
            exec(self.get_code(module.__name__), vars(module))

        def get_code(self, name):  # type: ignore[no-untyped-def] # noqa: ARG002 - `python -m` asks for it
            with open(_FILE, "rb") as file:  # noqa: PTH123 - before every test
                return marshal.load(file)

    sys.meta_path.insert(0, _Changed())
