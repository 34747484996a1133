"""The protocol as the library speaks it, and what it leaves unanswered."""

from typing import Any

from pygls.exceptions import JsonRpcInvalidParams
from pygls.protocol import LanguageServerProtocol


class AnsweringProtocol(LanguageServerProtocol):
    """A request whose parameters cannot be read is answered, too, and not only logged."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        """What a message says; raises what the library raises for one that says nothing, which it logs."""
        try:
            return super().structure_message(data)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        except Exception:
            if "method" in data and isinstance(data.get("id"), int | str):
                self._send_response(data["id"], error=JsonRpcInvalidParams().to_response_error())
            raise
