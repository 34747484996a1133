"""What is declared of the kind. It is read for every file that is no netlist, so it imports nothing that costs."""

from buda_emu.app.documents.kinds import Kind


def is_transfers(head: bytes, _name: str) -> bool:
    """Return whether the first bytes of a file are those of a list of transfers."""
    return head.startswith(b"transfers\n")


TRANSFERS = Kind(
    name="transfers",
    words="list of transfers",
    known_by=is_transfers,
    module="transfers.document",  # has load and check_file, and is imported when such a file comes
    book="transfers.document:BOOK",
    prefix="T",  # of the ids of its rules; those of buda-emu begin with V, G, X, D and image-
)
