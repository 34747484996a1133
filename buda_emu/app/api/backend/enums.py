"""The enums of the host API (NETLIST 7.1), with the behaviour of the compiled module's enums."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Self

from buda_emu.spec.formats import FORMATS, INVALID_ID


class BoundEnum:
    """One value of an enum as a compiled module shows it: a class called with a number, equal by class and value.

    It hashes, compares, pickles, turns into `int` and has `name` and `value`. A number without a name keeps its value
    and is called "???". Members are attributes of the class and stand in `__members__`.
    """

    _words: ClassVar[Mapping[str, int]] = {}
    __members__: ClassVar[dict[str, Any]] = {}
    __slots__ = ("_value",)
    _value: int

    def __init_subclass__(cls, words: Mapping[str, int]) -> None:
        """Make a member of each word."""
        cls._words = words
        cls.__members__ = {}
        for word, value in words.items():
            member = cls(value)
            cls.__members__[word] = member
            setattr(cls, word, member)

    def __new__(cls, value: int) -> Self:
        """The member of that number."""
        for member in cls.__members__.values():
            if member.value == int(value):
                return member
        made = super().__new__(cls)
        made._value = int(value)
        return made

    @property
    def value(self) -> int:
        """Its number."""
        return self._value

    @property
    def name(self) -> str:
        """Its word."""
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
        """Its word, as the state files of a front end write it."""
        return self.name

    @classmethod
    def from_json(cls, word: str) -> Self:
        """The member of that word. Raises IndexError for any other, as the compiled module does (NETLIST 12)."""
        if word not in cls.__members__:
            raise IndexError(f"{cls.__name__}: no member {word!r}; members: {', '.join(cls.__members__)}")
        return cls.__members__[word]


_BACKEND_TYPES: Final = {"Model": 0, "Versim": 1, "Silicon": 2, "Golden": 3, "StaticAnalyzer": 4}


class BackendType(
    BoundEnum, words={"Model": 0, "Versim": 1, "Silicon": 2, "Golden": 3, "Emulation": 5, "NoBackend": 255}
):
    """What runs the netlist. Golden is the reference; all others are an emulated device here."""

    Model: ClassVar["BackendType"]
    Versim: ClassVar["BackendType"]
    Silicon: ClassVar["BackendType"]
    Golden: ClassVar["BackendType"]
    Emulation: ClassVar["BackendType"]
    NoBackend: ClassVar["BackendType"]
    __slots__ = ()

    @classmethod
    def from_string(cls, word: str) -> "BackendType":
        """The member of that word in exact case; everything else is NoBackend.

        "StaticAnalyzer" is read too, and gives the value that has no name in Python; "Emulation" is not read.
        """
        return cls(_BACKEND_TYPES.get(word, 255))

    def to_json(self) -> str:
        """Its word; "Invalid" for NoBackend."""
        return "Invalid" if self == BackendType.NoBackend else self.name

    @classmethod
    def from_json(cls, word: str) -> "BackendType":
        """The inverse of `to_json`, which takes the name NoBackend, too. Raises IndexError for anything unknown."""
        return cls.NoBackend if word == "Invalid" else super().from_json(word)


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
        """The word of a netlist: lower case."""
        return self.name.lower()

    @classmethod
    def from_string(cls, word: str) -> "BackendDevice":
        """The member of that word in any case. Raises RuntimeError for anything else (NETLIST 12)."""
        for name, member in cls.__members__.items():
            if name.lower() == word.lower():
                return member
        raise RuntimeError(f"BackendDevice: no architecture {word!r}; there are {', '.join(cls.__members__)}")


class DeviceMode(BoundEnum, words={"CompileAndRun": 0, "CompileOnly": 1, "RunOnly": 2}):
    """Whether to compile, to run, or both."""

    CompileAndRun: ClassVar["DeviceMode"]
    CompileOnly: ClassVar["DeviceMode"]
    RunOnly: ClassVar["DeviceMode"]
    __slots__ = ()


class BackendStatusCode(BoundEnum, words={"Success": 0, "RuntimeError": 1, "TimeoutError": 2}):
    """How a call ended."""

    Success: ClassVar["BackendStatusCode"]
    RuntimeError: ClassVar["BackendStatusCode"]
    TimeoutError: ClassVar["BackendStatusCode"]
    __slots__ = ()


# The facts give no numbers for this one and the next; the order is theirs.
class IOType(BoundEnum, words={"Queue": 0, "RandomAccess": 1, "Invalid": 2}):
    """Queue or ram."""

    Queue: ClassVar["IOType"]
    RandomAccess: ClassVar["IOType"]
    Invalid: ClassVar["IOType"]
    __slots__ = ()


class IOLayout(BoundEnum, words={"Tilized": 0, "Flat": 1, "Invalid": 2}):
    """How entries lie in memory."""

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
    """What a compilation failed on."""

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
    """The netlist word of a format: ours, another module's enum with the same names, a number, or the word itself.

    "Invalid" for what is not a format.
    """
    name = value if isinstance(value, str) else getattr(value, "name", "")
    if name in FORMATS:
        return str(name)
    number = getattr(value, "value", value)
    return _WORD_OF_ID.get(number, "Invalid") if isinstance(number, int) else "Invalid"


def format_value(word: str) -> DataFormat:
    """The enum value of a netlist word; Invalid for what is not a format."""
    return DataFormat(FORMATS[word].id if word in FORMATS else INVALID_ID)


def get_format_from_string(word: str) -> DataFormat:
    """The format of that exact word, Tf32 included; Invalid for an unknown one and for Fp8_e4m3 (NETLIST 7.3)."""
    return DataFormat.Invalid if word == "Fp8_e4m3" else format_value(word)
