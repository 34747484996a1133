"""Compiled programs with caches: which one to run, where it writes, and greedy decoding."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from buda_emu.checker.text import plural
from buda_emu.compiler.compiled import Array, CompiledModel, ModelPerf, as_numpy
from buda_emu.compiler.emit.programs import CACHE, program_name
from buda_emu.compiler.generate.caches import Part
from buda_emu.compiler.graph.graph import Graph
from buda_emu.compiler.place.placement import Placement
from buda_emu.errors import HostError
from buda_emu.image.model_io import ModelIo
from buda_emu.netlist.microbatch import LOOP
from buda_emu.spec.precision import Precision


class CompiledPrograms(CompiledModel):
    """What `compile_programs` returns. `parts`: by the name that a program was given."""

    def __init__(self, graph: Graph, placement: Placement, title: str, parts: Mapping[str, Part]) -> None:
        super().__init__(graph, placement, title)
        self.parts = dict(parts)
        self.slots = max((state.slots for state in placement.tiles.states.values()), default=1)
        """Of the caches that are written slot by slot."""

    def __call__(
        self, *inputs: Any, precision: Precision = "ideal", program: str = "", write_index: int = 0
    ) -> tuple[Array, ...]:
        """One round of a program (by default the only one), which writes slot `write_index` of its caches. Raises
        HostError, ProgramError."""
        return self.rounds([inputs], precision=precision, program=program, write_index=write_index)[0]

    def rounds(
        self,
        inputs: Sequence[Sequence[Any]],
        *,
        precision: Precision = "ideal",
        program: str = "",
        write_index: int = 0,
    ) -> list[tuple[Array, ...]]:
        """Several rounds in one run, each in the slot after that of the one before."""
        name, part = self._part(program)
        count = len(inputs)
        if not 1 <= count <= self._entries(part):
            raise HostError(f"{name}: {count} rounds in one run; its queues hold {self._entries(part)}")
        if not 0 <= write_index <= self.slots - min(count, self.slots):
            raise HostError(f"{name}: write_index {write_index} for {count} rounds; its caches have {self.slots} slots")
        io = self._io(part)
        machine = self.machines.machine(precision)
        for given in inputs:
            if len(given) != len(part.inputs):
                takes = f"{name} takes {len(part.inputs)}: {', '.join(part.inputs)}"
                raise HostError(f"{plural(len(given), 'input')}, {takes}")
            arrays = dict(zip(part.inputs, map(as_numpy, given), strict=True))
            for queue, array in io.queues(arrays).items():
                machine.push(queue, array)
        machine.run(program_name(part.program), self._parameters(part, write_index, count))
        return [tuple(item.from_queue(machine.pop(item.queue)) for item in io.outputs) for _ in range(count)]

    def reset(self) -> None:
        """Caches as they were at first, on the machine that there is."""
        for machine in self.machines.open.values():
            for state in self.placement.tiles.states.values():
                machine.push(state.written, state.entries(state.held))

    def caches(self) -> dict[str, Array]:
        """What each cache holds now, in the shape that the module sees."""
        found: dict[str, Array] = {}
        for state in self.placement.tiles.states.values():
            held = state.held
            for machine in self.machines.open.values():
                held = machine.peek(state.written, state.slots, readout="raw")
            flat = held.reshape(-1)[state.layout.place("zrc").ravel()]
            found[state.label] = flat.reshape(state.host_shape)
        return found

    def perf(self, program: str = "") -> ModelPerf:
        """Modelled cycles of one round of a program, of one token where it is a decoder; by default of all programs
        together. Raises HostError for an unknown name."""
        names = [program_name(self._part(program)[1].program)] if program else None
        return self._modelled({LOOP: "1", **self._cache_parameters(0, 1)}, names)

    # ------------------------------------------------------------------------------------------------ decoding
    def generate(
        self,
        prompt: Sequence[int],
        count: int,
        *,
        precision: Precision = "ideal",
        program: str = "",
        stop: int | None = None,
    ) -> list[int]:
        """Tokens after a prompt, each the likeliest one: at most `count`, none after `stop`.

        The program's module takes a window of tokens [1, n] and their positions [1, n], reads what the slots of earlier
        windows hold from its caches, and gives scores [1, n, tokens]. The prompt's windows are one run, slot after slot
        (prefill); then each token is one run, on the slot of its own window (decode). Raises HostError where the caches
        are too short.
        """
        name, part = self._part(program)
        nodes = {self.graph[item].attrs["label"]: self.graph[item] for item in self.graph.inputs}
        shapes = [nodes[label].shape for label in part.inputs]
        if len(shapes) != 2 or shapes[0] != shapes[1] or len(shapes[0]) != 2 or shapes[0][0] != 1:
            raise HostError(f"generate: {name} takes {shapes}, not tokens [1, n] and positions [1, n]")
        width = shapes[0][1]
        tokens = [int(item) for item in prompt]
        most = width * self.slots
        if not tokens or len(tokens) + count - 1 > most:
            raise HostError(f"generate: {plural(len(tokens), 'token')} and {count} more; caches have room for {most}")
        first = 0
        for _ in range(count):
            last = (len(tokens) - 1) // width
            room = self._entries(part)
            scores: Array = np.zeros(0)
            for start in range(first, last + 1, room):
                windows = range(start, min(start + room, last + 1))
                rounds = [_window(tokens, window, width) for window in windows]
                scores = self.rounds(rounds, precision=precision, program=name, write_index=start)[-1][0]
            first = last
            tokens.append(int(np.argmax(scores[0, (len(tokens) - 1) % width])))
            if tokens[-1] == stop:
                break
        return tokens[len(prompt) :]

    # ------------------------------------------------------------------------------------------------- details
    def _part(self, program: str) -> tuple[str, Part]:
        if not program and len(self.parts) == 1:
            return next(iter(self.parts.items()))
        if program not in self.parts:
            raise HostError(f"program {program!r} is not one of: {', '.join(self.parts)}")
        return program, self.parts[program]

    def _io(self, part: Part) -> ModelIo:
        inputs = tuple(item for item in self.io.inputs if item.label in part.inputs)
        outputs = tuple(item for item in self.io.outputs if item.label in part.outputs)
        return ModelIo(part.inputs, inputs, outputs)

    def _entries(self, part: Part) -> int:
        queues = [item.queue for item in self._io(part).inputs]
        return min((self.placement.queues[name].entries for name in queues), default=1)

    def _parameters(self, part: Part, write_index: int, count: int) -> dict[str, str]:
        """Those that the program has."""
        known = {LOOP: str(count), **self._cache_parameters(write_index, count)}
        wanted = next(iter(self.netlist.programs[program_name(part.program)].instructions), None)
        names = getattr(wanted, "names", ())
        return {name: value for name, value in known.items() if name in names}

    def _cache_parameters(self, write_index: int, count: int) -> dict[str, str]:
        return {
            CACHE.write_index: str(write_index),
            CACHE.inner_count: "1",
            CACHE.inner_increment: "0",
            CACHE.outer_count: str(count),
            CACHE.outer_increment: "1",
        }


def _window(tokens: Sequence[int], window: int, width: int) -> tuple[Array, Array]:
    """Tokens, zeros after the last one, and positions."""
    own = list(tokens[window * width : (window + 1) * width])
    positions = np.arange(window * width, (window + 1) * width)[None]
    return np.asarray([own + [0] * (width - len(own))]), positions
