"""How an op shapes its inputs: `input_N_tms`, `input_N_pad`, `input_N_unpad` (NETLIST 1.4, 1.6, OPS 7.3)."""

from buda_emu.checker.suggest import near
from buda_emu.checker.text import quoted
from buda_emu.netlist.fields import PAD_FIELDS
from buda_emu.netlist.model import Pad, Tm
from buda_emu.netlist.nodes import Node, Scalar
from buda_emu.netlist.reader.context import Context
from buda_emu.netlist.reader.maps import body_of, keyed
from buda_emu.netlist.reader.tms import MALFORMED, check_transposes, input_index, read_tms
from buda_emu.netlist.reader.values import read_float, read_int

UNKNOWN = "V022"
_NO_PAD = Pad()


def is_shaping(key: str) -> bool:
    """Whether a key that is not a field of an op speaks of the shape of an input."""
    return "input" in key and ("tms" in key or "pad" in key)


class Shaping:
    """What is written for the inputs of one op. `inputs` is None where their list could not be read."""

    __slots__ = ("_fill", "_pads", "_tms", "_unpads", "in_df", "inputs", "op_type")

    def __init__(self, op_type: str, inputs: int | None, in_df: tuple[str, ...]) -> None:
        self.op_type = op_type
        self.inputs = inputs
        self.in_df = in_df
        self._tms: dict[int, list[Tm]] = {}
        self._pads: dict[int, dict[str, int]] = {}
        self._unpads: dict[int, dict[str, int]] = {}
        self._fill: dict[int, float] = {}  # pad values: the one that is written last counts

    def read(self, context: Context, key: str, key_node: Scalar, node: Node) -> None:
        """Read one key. What is written for one input again is appended (TMs) or overwritten (padding)."""
        index = input_index(context, key, key_node, self.inputs)
        if "tms" in key:
            tms = read_tms(context, key, node, "op")
            if index is not None:
                self._add_tms(context, key, tms, index)
                check_transposes(context, key, tms, self.op_type, index, self.in_df)
        elif index is not None:
            self._read_padding(context, key, node, index)

    def _add_tms(self, context: Context, name: str, tms: list[Tm], index: int) -> None:
        """Append (NETLIST 11.3 C1); only one pad is allowed for an input."""
        have = self._tms.setdefault(index, [])
        for tm in tms:
            if tm.name == "pad":
                if any(other.name == "pad" for other in have):
                    context.report(MALFORMED, tm.mark, f"{name}: an input can be padded only once in its TMs")
                self._fill[index] = float(tm.args[2])
            have.append(tm)

    def _read_padding(self, context: Context, name: str, node: Node, index: int) -> None:
        """`input_N_pad: {rt, ct, pad_value}` or `input_N_unpad: {rt, ct}`."""
        unpad = "unpad" in name
        values = (self._unpads if unpad else self._pads).setdefault(index, {})
        for key, key_node, value in keyed(context, body_of(context, name, node)):
            known = PAD_FIELDS.get(key)
            if known is None or (unpad and known.kind == "float"):
                context.report(UNKNOWN, key_node, f"{name}: unknown field {quoted(key)}", near(key, PAD_FIELDS))
            elif known.kind == "int":
                values[key] = read_int(context, known, value) or 0
            else:
                number = read_float(context, known, value)
                if number is not None:
                    self._fill[index] = number

    def tms(self, count: int) -> tuple[tuple[Tm, ...], ...]:
        """The TMs of every input; a pad TM shares its value with `input_N_pad` (OPS 7.3)."""
        if not self._tms:
            return ((),) * count
        return tuple(tuple(self._filled(tm, index) for tm in self._tms.get(index, ())) for index in range(count))

    def _filled(self, tm: Tm, index: int) -> Tm:
        return Tm("pad", (tm.args[0], tm.args[1], self._fill[index]), tm.mark) if tm.name == "pad" else tm

    def pads(self, count: int) -> tuple[Pad, ...]:
        """`input_N_pad` of every input."""
        return _all_pads(self._pads, count, self._fill)

    def unpads(self, count: int) -> tuple[Pad, ...]:
        """`input_N_unpad` of every input."""
        return _all_pads(self._unpads, count, {})


def _all_pads(written: dict[int, dict[str, int]], count: int, fill: dict[int, float]) -> tuple[Pad, ...]:
    if not written:
        return (_NO_PAD,) * count
    sizes = [written.get(index) for index in range(count)]
    return tuple(
        _NO_PAD if size is None else Pad(size.get("rt", 0), size.get("ct", 0), fill.get(index, 0.0))
        for index, size in enumerate(sizes)
    )
