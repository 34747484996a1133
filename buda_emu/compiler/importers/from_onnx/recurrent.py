"""Handlers of RNN, GRU and LSTM. Each step is unrolled into two products and a few element-wise ops; the products of
the inputs are computed for all steps at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers.from_onnx.call import Call, onnx_op

Activation = Callable[[Node], Node]
_DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
MOST_STEPS: Final = 1024
"""Limit for the unrolled steps. A step takes some thirty netlist ops; beyond the limit, compiling takes minutes and no
chip has room."""


@onnx_op("RNN", "GRU", "LSTM")
def recurrent(call: Call) -> tuple[Node, ...]:
    """All states [steps, directions, batch, size], then the last of each.

    Unrolls all steps of RNN, GRU or LSTM; the last results are the last state and, of an LSTM, the last cell. Raises
    NotSupportedError for more than `MOST_STEPS` steps.
    """
    b = call.b
    if not call.attr("layout", 0):
        x = call[0]
    else:
        x = b.transpose(call[0], perm=(1, 0, 2))
    if x.shape[0] > MOST_STEPS:
        raise call.refuse(f"{x.shape[0]} steps, each of which is unrolled: the most is {MOST_STEPS}")
    directions = {b"forward": [False], b"reverse": [True], b"bidirectional": [False, True]}[
        call.attr("direction", b"forward")
    ]
    runs = [_Direction(call, x, number).run(backward) for number, backward in enumerate(directions)]
    results = _join_directions(b, runs, x.shape[0], x.shape[1])
    if call.attr("layout", 0):
        results[0] = b.transpose(results[0], perm=(2, 0, 1, 3))
        results[1:] = [b.transpose(state, perm=(1, 0, 2)) for state in results[1:]]
    return tuple(results[: 3 if call.op == "LSTM" else 2])


def _concatenate(b: Builder, nodes: Sequence[Node]) -> Node:
    """Join nodes along dimension 0; a single node stays as it is."""
    if len(nodes) == 1:
        return nodes[0]
    return b.concat(*nodes, dim=0)


@dataclass(slots=True)
class _Run:
    """The results of one direction: the state of every step in the order of time, the last state, and the last cell
    (LSTM)."""

    states: list[Node]
    last: Node
    cell: Node


def _join_directions(b: Builder, runs: Sequence[_Run], steps: int, batch: int) -> list[Node]:
    """Return all states [steps, directions, batch, size], then the last state and the last cell of each direction."""
    size = runs[0].states[0].shape[-1]
    step_states: list[Node] = []
    for step in range(steps):
        step_states += [b.reshape(run.states[step], shape=(1, 1, batch, size)) for run in runs]
    all_states = b.reshape(_concatenate(b, step_states), shape=(steps, len(runs), batch, size))
    last = [[b.reshape(state, shape=(1, batch, size)) for state in (run.last, run.cell)] for run in runs]
    last_state, last_cell = (_concatenate(b, [pair[place] for pair in last]) for place in range(2))
    return [all_states, last_state, last_cell]


class _Direction:
    """The computation of one direction of a recurrent layer."""

    def __init__(self, call: Call, x: Node, number: int) -> None:
        b = self.b = call.b
        self.op = call.op
        self.x = x
        self.call = call
        self.gates = _GATES[call.op]
        self.steps, self.batch = x.shape[:2]
        self.size = size = call[2].shape[-1]
        w, r = (_select_direction(b, call[place], number) for place in (1, 2))
        self.input_weights = [_gate_weights(b, w, gate, size) for gate in range(self.gates)]
        self.state_weights = [_gate_weights(b, r, gate, size) for gate in range(self.gates)]
        self.biases = _split_vector(b, call.get(3), number, size, 2 * self.gates)
        self.lengths = _sequence_lengths(call, self.steps)
        zeros = np.zeros((self.batch, size), np.float32)
        initial = [call.get(place) for place in (5, 6)]
        if call.attr("layout", 0):
            initial = [None if state is None else b.transpose(state, perm=(1, 0, 2)) for state in initial]
        self.state, self.cell = (
            b.constant(zeros) if state is None else _select_direction(b, state, number) for state in initial
        )
        self.peepholes = _split_vector(b, call.get(7), number, size, 3)
        names = [name.decode() for name in call.attr("activations") or []] or _DEFAULTS[call.op] * 2
        functions_per_direction = len(_DEFAULTS[call.op])
        self.functions = _make_activations(call, names)[
            number * functions_per_direction : (number + 1) * functions_per_direction
        ]

    def run(self, backward: bool) -> _Run:
        """Unroll all steps, from the last one if `backward`. Steps beyond the length of a sequence leave its state
        unchanged and output zeros."""
        b = self.b
        products = self._multiply_inputs()
        states: dict[int, Node] = {}
        for step in reversed(range(self.steps)) if backward else range(self.steps):
            step_products = [
                b.reshape(b.slice(product, dim=0, start=step, count=1), shape=(self.batch, self.size))
                for product in products
            ]
            state, cell = {"RNN": self._rnn, "GRU": self._gru, "LSTM": self._lstm}[self.op](step_products)
            states[step] = state
            if self.lengths is not None:
                inside = b.greater(self.lengths, float(step), dtype="float32")
                states[step] = b.multiply(state, inside)
                state, cell = (
                    b.add(b.multiply(new, inside), b.multiply(old, b.subtract(1.0, inside)))
                    for new, old in ((state, self.state), (cell, self.cell))
                )
            self.state = state
            self.cell = cell
        return _Run([states[step] for step in range(self.steps)], self.state, self.cell)

    def _multiply_inputs(self) -> list[Node]:
        """Return for each gate the products of the inputs of all steps, with the biases."""
        b = self.b
        products = [b.matmul(self.x, weight) for weight in self.input_weights]
        for gate in range(self.gates):
            for part in (gate, gate + self.gates):
                bias = self.biases[part]
                # The bias of the state's part of a GRU's last gate is multiplied with the reset gate: not here.
                is_after_reset = self.op == "GRU" and part == 5 and self.call.attr("linear_before_reset", 0)
                if bias is not None and not is_after_reset:
                    products[gate] = b.add(products[gate], bias)
        return products

    def _multiply_state(self, gate: int, state: Node | None = None) -> Node:
        """Multiply a state, by default the present one, by the recurrence weights of a gate."""
        return self.b.matmul(self.state if state is None else state, self.state_weights[gate])

    def _clip(self, x: Node) -> Node:
        """Clamp the argument of an activation to the layer's attribute `clip`, if it has one."""
        bound = self.call.attr("clip")
        if bound is None:
            return x
        return self.b.clip(x, low=-float(bound), high=float(bound))

    def _rnn(self, step_products: list[Node]) -> tuple[Node, Node]:
        """Compute one step f(x W + h R) from the products x W, and return the new state and the unused cell."""
        return self.functions[0](self._clip(self.b.add(step_products[0], self._multiply_state(0)))), self.cell

    def _gru(self, step_products: list[Node]) -> tuple[Node, Node]:
        """Compute one step (1 - z) g(x W + (r h) R) + z h from the products x W, and return the new state and the
        unused cell."""
        b = self.b
        (f, g) = self.functions
        update, reset = (f(self._clip(b.add(step_products[gate], self._multiply_state(gate)))) for gate in (0, 1))
        if self.call.attr("linear_before_reset", 0):
            inner = self._multiply_state(2)
            bias = self.biases[5]
            inner = b.multiply(reset, inner if bias is None else b.add(inner, bias))
        else:
            inner = self._multiply_state(2, b.multiply(reset, self.state))
        new = g(self._clip(b.add(step_products[2], inner)))
        return b.add(b.multiply(b.subtract(1.0, update), new), b.multiply(update, self.state)), self.cell

    def _lstm(self, step_products: list[Node]) -> tuple[Node, Node]:
        """Compute one step c = f c + i g(..), h = o h(c) from the products x W, with peepholes from the cell to the
        gates, and return the new state and cell."""
        b = self.b
        (f, g, h) = self.functions

        def gate(number: int, hole: Node | None, cell: Node) -> Node:
            """Return the argument of the activation of gate `number`; `hole`: the weights of its peephole on the cell
            state, or None."""
            activation = b.add(step_products[number], self._multiply_state(number))
            return self._clip(activation if hole is None else b.add(activation, b.multiply(hole, cell)))

        into = f(gate(0, self.peepholes[0], self.cell))
        if self.call.attr("input_forget", 0):
            forget = b.subtract(1.0, into)
        else:
            forget = f(gate(2, self.peepholes[2], self.cell))
        cell = b.add(b.multiply(forget, self.cell), b.multiply(into, g(gate(3, None, self.cell))))
        return b.multiply(f(gate(1, self.peepholes[1], cell)), h(cell)), cell


def _select_direction(b: Builder, x: Node, direction: int) -> Node:
    """Select a direction, the first dimension, and remove that dimension."""
    return b.reshape(b.slice(x, dim=0, start=direction, count=1), shape=x.shape[1:])


def _split_vector(b: Builder, x: Node | None, direction: int, size: int, count: int) -> list[Node | None]:
    """Split the biases or peepholes of a direction into `count` vectors of `size` elements; all are None if the operand
    is left out."""
    if x is None:
        return [None] * count
    return [b.slice(_select_direction(b, x, direction), dim=0, start=part * size, count=size) for part in range(count)]


def _gate_weights(b: Builder, weights: Node, gate: int, size: int) -> Node:
    """Return the weights of one gate, transposed for a product from the left. `size`: the rows of each gate in
    `weights`."""
    return b.transpose(b.slice(weights, dim=0, start=gate * size, count=size), perm=(1, 0))


def _sequence_lengths(call: Call, steps: int) -> Node | None:
    """Return the lengths of the sequences [batch, 1]; None if all are as long as the input."""
    node = call.get(4)
    if node is None or (node.op == "constant" and (node.value >= steps).all()):
        return None
    return call.b.reshape(node, shape=(node.shape[0], 1))


def _make_activations(call: Call, names: Sequence[str]) -> list[Activation]:
    """Return the activation functions by name; those with parameters take the next alpha and beta of the attributes.
    Raises NotSupportedError for a name that is not in the standard."""
    b = call.b
    alphas, betas = (list(call.attr(f"activation_{name}") or []) for name in ("alpha", "beta"))

    def make(name: str) -> Activation:
        """Return the activation of a name with its alpha and beta: the next of the layer's lists, or else the
        standard's default. Raises NotSupportedError for any other name."""
        if name in _ALPHA and alphas:
            alpha = float(alphas.pop(0))
        else:
            alpha = _ALPHA.get(name, 0.0)
        if name in _BETA and betas:
            beta = float(betas.pop(0))
        else:
            beta = _BETA.get(name, 0.0)
        forms: dict[str, Activation] = {
            "Relu": b.relu,
            "Tanh": b.tanh,
            "Sigmoid": b.sigmoid,
            "Softsign": b.softsign,
            "Softplus": b.softplus,
            "Affine": lambda x: b.add(b.multiply(x, alpha), beta),
            "LeakyRelu": lambda x: b.leaky_relu(x, slope=alpha),
            "ThresholdedRelu": lambda x: b.multiply(x, b.greater(x, alpha), dtype=x.dtype),
            "ScaledTanh": lambda x: b.multiply(b.tanh(b.multiply(x, beta)), alpha),
            "HardSigmoid": lambda x: b.hard_sigmoid(x, alpha=alpha, beta=beta),
            "Elu": lambda x: b.elu(x, alpha=alpha),
        }
        if name not in forms:
            raise call.refuse(f"activation {name}")
        return forms[name]

    return [make(name) for name in names]


_ALPHA = {"Affine": 1.0, "LeakyRelu": 0.01, "ThresholdedRelu": 1.0, "ScaledTanh": 1.0, "HardSigmoid": 0.2, "Elu": 1.0}
_BETA = {"Affine": 0.0, "ScaledTanh": 1.0, "HardSigmoid": 0.5}
"""Defaults of the standard's table of activations."""
