"""Gives the package its description: the README with links that work where it is shown (`readme.for_index`)."""

import runpy
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class ReadmeHook(MetadataHookInterface):
    """Called by hatchling for every distribution that it builds."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `readme`."""
        root = Path(self.root)
        for_index = runpy.run_path(str(root / "tools" / "readme.py"))["for_index"]
        address = metadata.get("urls", {}).get("Repository", "")
        text = for_index((root / "README.md").read_text(encoding="utf-8"), address)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
