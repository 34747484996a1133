"""IR files on disk: `NAME.ir`, the text, and `NAME.npz`, the arrays that it names."""

from pathlib import Path

from buda_emu.compiler.ir.arrays import load_arrays, save_arrays
from buda_emu.compiler.ir.text import IrFile, parse_file, print_file
from buda_emu.compiler.ir.tokens import IrError
from buda_emu.files import read_whole, write_file


def write_ir(folder: Path, name: str, file: IrFile) -> tuple[Path, Path]:
    """Both files; returns their paths. Raises OSError, IrError for what no text stands for."""
    text, arrays = print_file(file)
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / f"{name}.ir", folder / f"{name}.npz"
    write_file(paths[0], lambda stream: stream.write(text.encode()))
    save_arrays(paths[1], arrays)
    return paths


def read_ir(path: Path) -> IrFile:
    """What `write_ir` wrote, perhaps edited since. Raises IrError naming file, line and column, OSError."""
    try:
        text = read_whole(path).decode()
    except UnicodeDecodeError:
        raise IrError(f"{path}: not an IR file: no text in UTF-8") from None
    return parse_file(text, load_arrays(path.with_suffix(".npz")), str(path))
