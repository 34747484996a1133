"""The enums of the host API (NETLIST 7.1), which behave like those of the compiled module."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Self

from buda_emu.spec.formats import FORMATS, INVALID_ID


class BoundEnum:
    """A value of an enum as compiled modules have it: the class is called with a number, and values of one class with
    equal numbers are equal.

    A value hashes, compares, pickles, turns into `int` and has `name` and `value`. A number without a name is accepted;
    its name is "???". Members are attributes of the class and stand in `__members__`.
    """

    _words: ClassVar[Mapping[str, int]] = {}
    __members__: ClassVar[dict[str, Any]] = {}
    __slots__ = ("_value",)
    _value: int

    def __init_subclass__(cls, words: Mapping[str, int]) -> None:
        """Make a member, and an attribute of the class, for each name of `words`, which gives the members' numbers."""
        cls._words = words
        cls.__members__ = {}
        for word, value in words.items():
            member = cls(value)
            cls.__members__[word] = member
            setattr(cls, word, member)

    def __new__(cls, value: int) -> Self:
        """Return the member with a number, or a new value for a number that no member has."""
        for member in cls.__members__.values():
            if member.value == int(value):
                return member
        nameless = super().__new__(cls)
        nameless._value = int(value)
        return nameless

    @property
    def value(self) -> int:
        """The number of the value."""
        return self._value

    @property
    def name(self) -> str:
        """The name of the member with this number, "???" if there is none."""
        return next((word for word, value in self._words.items() if value == self._value), "???")

    def __int__(self) -> int:
        return self._value

    def __index__(self) -> int:
        return self._value

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}.{self.name}: {self._value}>"

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __reduce__(self) -> tuple[type[Self], tuple[int]]:
        return type(self), (self._value,)

    def to_json(self) -> str:
        """Return the name, which the state files of a front end hold."""
        return self.name

    @classmethod
    def from_json(cls, word: str) -> Self:
        """Return the member of that name. Raises IndexError for any other, as the compiled module does (NETLIST 12)."""
        if word not in cls.__members__:
            raise IndexError(f"{cls.__name__}: no member {word!r}; members: {', '.join(cls.__members__)}")
        return cls.__members__[word]


_BACKEND_TYPES: Final = {"Model": 0, "Versim": 1, "Silicon": 2, "Golden": 3, "StaticAnalyzer": 4}
"""The words that `BackendType.from_string` reads; they are not all names of members, nor all names among them."""


class BackendType(
    BoundEnum, words={"Model": 0, "Versim": 1, "Silicon": 2, "Golden": 3, "Emulation": 5, "NoBackend": 255}
):
    """The machine that runs a netlist. Golden is the reference; all others are an emulated device here."""

    Model: ClassVar["BackendType"]
    Versim: ClassVar["BackendType"]
    Silicon: ClassVar["BackendType"]
    Golden: ClassVar["BackendType"]
    Emulation: ClassVar["BackendType"]
    NoBackend: ClassVar["BackendType"]
    __slots__ = ()

    @classmethod
    def from_string(cls, word: str) -> "BackendType":
        """Return the type of a word in exact case; every other word gives NoBackend.

        "StaticAnalyzer" is read too, and gives the value that has no name in Python; "Emulation" is not read.
        """
        return cls(_BACKEND_TYPES.get(word, 255))

    def to_json(self) -> str:
        """Return the name, "Invalid" for NoBackend."""
        if self == BackendType.NoBackend:
            return "Invalid"
        return self.name

    @classmethod
    def from_json(cls, word: str) -> "BackendType":
        """Return the type of a word that `to_json` wrote; the name NoBackend is read, too. Raises IndexError for an
        unknown word."""
        if word == "Invalid":
            return cls.NoBackend
        return super().from_json(word)


class BackendDevice(
    BoundEnum, words={"Jawbridge": 0, "Grayskull": 1, "Wormhole": 2, "Wormhole_B0": 3, "Blackhole": 4, "Invalid": 0xFF}
):
    """The architecture of a device (numbers: NETLIST 12)."""

    Jawbridge: ClassVar["BackendDevice"]
    Grayskull: ClassVar["BackendDevice"]
    Wormhole: ClassVar["BackendDevice"]
    Wormhole_B0: ClassVar["BackendDevice"]
    Blackhole: ClassVar["BackendDevice"]
    Invalid: ClassVar["BackendDevice"]
    __slots__ = ()

    def to_string(self) -> str:
        """Return the name in lower case, as netlists have it."""
        return self.name.lower()

    @classmethod
    def from_string(cls, word: str) -> "BackendDevice":
        """Return the member of a name in any case. Raises RuntimeError for an unknown name (NETLIST 12)."""
        for name, member in cls.__members__.items():
            if name.lower() == word.lower():
                return member
        raise RuntimeError(f"BackendDevice: no architecture {word!r}; there are {', '.join(cls.__members__)}")


class DeviceMode(BoundEnum, words={"CompileAndRun": 0, "CompileOnly": 1, "RunOnly": 2}):
    """The steps that a backend takes: compile, run, or both."""

    CompileAndRun: ClassVar["DeviceMode"]
    CompileOnly: ClassVar["DeviceMode"]
    RunOnly: ClassVar["DeviceMode"]
    __slots__ = ()


class BackendStatusCode(BoundEnum, words={"Success": 0, "RuntimeError": 1, "TimeoutError": 2}):
    """The outcome of a call to the backend."""

    Success: ClassVar["BackendStatusCode"]
    RuntimeError: ClassVar["BackendStatusCode"]
    TimeoutError: ClassVar["BackendStatusCode"]
    __slots__ = ()


# The facts give no numbers for IOType and IOLayout; the order of the names is that of the facts.
class IOType(BoundEnum, words={"Queue": 0, "RandomAccess": 1, "Invalid": 2}):
    """The kind of a buffer in DRAM: a queue, or a ram with random access."""

    Queue: ClassVar["IOType"]
    RandomAccess: ClassVar["IOType"]
    Invalid: ClassVar["IOType"]
    __slots__ = ()


class IOLayout(BoundEnum, words={"Tilized": 0, "Flat": 1, "Invalid": 2}):
    """The layout of entries in memory."""

    Tilized: ClassVar["IOLayout"]
    Flat: ClassVar["IOLayout"]
    Invalid: ClassVar["IOLayout"]
    __slots__ = ()


class BackendCompileFailure(
    BoundEnum,
    words={
        "BriscCompile": 0,
        "EriscCompile": 1,
        "NriscCompile": 2,
        "Net2Pipe": 3,
        "PipeGen": 4,
        "BlobGen": 5,
        "L1Size": 6,
        "OverlaySize": 7,
        "Invalid": 0xFFFF,
    },
):
    """The step of the device's compiler that failed."""

    BriscCompile: ClassVar["BackendCompileFailure"]
    EriscCompile: ClassVar["BackendCompileFailure"]
    NriscCompile: ClassVar["BackendCompileFailure"]
    Net2Pipe: ClassVar["BackendCompileFailure"]
    PipeGen: ClassVar["BackendCompileFailure"]
    BlobGen: ClassVar["BackendCompileFailure"]
    L1Size: ClassVar["BackendCompileFailure"]
    OverlaySize: ClassVar["BackendCompileFailure"]
    Invalid: ClassVar["BackendCompileFailure"]
    __slots__ = ()


_UNNAMED: Final = ("Fp8_e4m3", "Tf32", "UInt8")  # NETLIST 7.1, 12: values without a name in Python


class DataFormat(
    BoundEnum, words={name: spec.id for name, spec in FORMATS.items() if name not in _UNNAMED} | {"Invalid": INVALID_ID}
):
    """Number formats of tensors; `pybuda._C` exports it. Values of UInt8 and Tf32 occur without a name."""

    Float32: ClassVar["DataFormat"]
    Float16: ClassVar["DataFormat"]
    Bfp8: ClassVar["DataFormat"]
    Bfp4: ClassVar["DataFormat"]
    Float16_b: ClassVar["DataFormat"]
    Bfp8_b: ClassVar["DataFormat"]
    Bfp4_b: ClassVar["DataFormat"]
    Int32: ClassVar["DataFormat"]
    Lf8: ClassVar["DataFormat"]
    Bfp2: ClassVar["DataFormat"]
    Int8: ClassVar["DataFormat"]
    UInt16: ClassVar["DataFormat"]
    Bfp2_b: ClassVar["DataFormat"]
    RawUInt8: ClassVar["DataFormat"]
    RawUInt16: ClassVar["DataFormat"]
    RawUInt32: ClassVar["DataFormat"]
    Invalid: ClassVar["DataFormat"]
    __slots__ = ()


_WORD_OF_ID: Final = {spec.id: name for name, spec in FORMATS.items()}


def format_word(value: object) -> str:
    """Return the netlist word of a format, "Invalid" for a value that is no format.

    `value` may be a DataFormat, a value of another module's enum with the same names, a number, or the word itself.
    """
    name = value if isinstance(value, str) else getattr(value, "name", "")
    if name in FORMATS:
        return str(name)
    number = getattr(value, "value", value)
    if isinstance(number, int):
        return _WORD_OF_ID.get(number, "Invalid")
    return "Invalid"


def format_value(word: str) -> DataFormat:
    """Return the enum value of a netlist word, Invalid for a word that is no format."""
    if word in FORMATS:
        return DataFormat(FORMATS[word].id)
    return DataFormat(INVALID_ID)


def get_format_from_string(word: str) -> DataFormat:
    """Return the format of a word, Tf32 included; Invalid for an unknown word and for Fp8_e4m3 (NETLIST 7.3)."""
    if word == "Fp8_e4m3":
        return DataFormat.Invalid
    return format_value(word)
