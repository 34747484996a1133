"""Factors of rows come behind the products that wait for them."""

import numpy as np
import pytest

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Graph, Output
from buda_emu.compiler.ir.text import CORE, Ir
from buda_emu.compiler.parted import evaluate
from buda_emu.compiler.passes.clean import decompose
from buda_emu.compiler.passes.factors import late_factors
from buda_emu.compiler.pipeline import PASSES, Context
from buda_emu.compiler.target import Objective
from compiler.pass_pairs import becomes, stays

ROWS = """
    core "g":
      x = input {label: "x"} : float32[3, 2] from "x"
      s = input {label: "s"} : float32[3, 1] from "s"
      g = constant {value: float32[2] = [2.0, 4.0]} : float32[2]
      w = constant {value: float32[2, 2] = [1.0, 2.0, 3.0, 4.0]} : float32[2, 2]
      r = sqrt(s) : float32[3, 1]
      h = multiply(x, r) : float32[3, 2]
      n = multiply(h, g) : float32[3, 2]
      p = matmul(n, w) : float32[3, 2]
      c = relu(p) : float32[3, 2]
      y = add(c, x) : float32[3, 2]
      output "y" = y : float32
"""


def test_a_norm_comes_behind_the_product_and_its_constants_go_into_the_matrix():
    becomes(
        "late_factors",
        ROWS,
        """
        core "g":
          x = input {label: "x"} : float32[3, 2] from "x"
          s = input {label: "s"} : float32[3, 1] from "s"
          g = constant {value: float32[2] = [2.0, 4.0]} : float32[2]
          w = constant {value: float32[2, 2] = [1.0, 2.0, 3.0, 4.0]} : float32[2, 2]
          r = sqrt(s) : float32[3, 1]
          n.whole = multiply(x, g) : float32[3, 2]
          p.whole.constant = constant {value: float32[2, 2] = [2.0, 4.0, 12.0, 16.0]} : float32[2, 2]
          p.whole = matmul(x, p.whole.constant) : float32[3, 2]
          c.whole = relu(p.whole) : float32[3, 2]
          c = multiply(c.whole, r) : float32[3, 2]
          y = add(c, x) : float32[3, 2]
          output "y" = y : float32
    """,
    )


def test_several_inputs_on_their_way_keep_the_norm_where_it_is():
    stays("late_factors", ROWS, Context(objective=Objective()))


def test_two_products_that_would_be_multiplied_by_ops_of_their_own_keep_it_too():
    head = ROWS[: ROWS.index("      c = relu")]
    one = head + '      output "p" = p : float32\n'
    two = head + "      v = matmul(n, w) : float32[3, 2]\n" + one[len(head) :] + '      output "v" = v : float32\n'
    stays("late_factors", two)
    becomes(
        "late_factors",
        one,
        one.replace("      h = multiply(x, r) : float32[3, 2]\n", "")
        .replace("n = multiply(h, g)", "n.whole = multiply(x, g)")
        .replace(
            "      p = matmul(n, w) : float32[3, 2]",
            """
      p.whole.constant = constant {value: float32[2, 2] = [2.0, 4.0, 12.0, 16.0]} : float32[2, 2]
      p.whole = matmul(x, p.whole.constant) : float32[3, 2]
      p = multiply(p.whole, r) : float32[3, 2]""",
        ),
    )


def test_a_factor_that_may_be_negative_stays_in_front_of_a_clamp():
    found = ROWS.replace("r = sqrt(s)", "r = tanh(s)")
    becomes(
        "late_factors",
        found,
        """
        core "g":
          x = input {label: "x"} : float32[3, 2] from "x"
          s = input {label: "s"} : float32[3, 1] from "s"
          g = constant {value: float32[2] = [2.0, 4.0]} : float32[2]
          w = constant {value: float32[2, 2] = [1.0, 2.0, 3.0, 4.0]} : float32[2, 2]
          r = tanh(s) : float32[3, 1]
          n.whole = multiply(x, g) : float32[3, 2]
          p.whole.constant = constant {value: float32[2, 2] = [2.0, 4.0, 12.0, 16.0]} : float32[2, 2]
          p.whole = matmul(x, p.whole.constant) : float32[3, 2]
          p = multiply(p.whole, r) : float32[3, 2]
          c = relu(p) : float32[3, 2]
          y = add(c, x) : float32[3, 2]
          output "y" = y : float32
    """,
    )


@pytest.mark.parametrize(("trains", "late"), [(False, True), (True, False)])
def test_what_keeps_states_has_one_input_on_its_way_whatever_the_round_unless_it_trains(trains, late):
    graph = attention()
    Builder(graph).state("past", np.zeros((1, 3, 8), np.float32))
    graph.outputs.append(Output("sum", graph.outputs[0].value, "float32", state="past", accumulate=trains))
    (step,) = [item for item in PASSES if item.name == "late_factors"]
    (found,) = step.run([Ir(CORE, graph)], Context(objective=Objective()))
    assert any(node.name.endswith(".whole") for node in found.graph) == late


def attention(heads=2, size=4, rows=3, keys=5):
    """A norm, queries in heads, scores, their softmax, values, and what is gated: a graph of core ops."""
    b = Builder(Graph())
    rng = np.random.default_rng(0)
    width = heads * size
    x = b.input("x", (1, rows, width), "float32")
    k = b.input("k", (1, heads, size, keys), "float32")
    v = b.input("v", (1, heads, keys, size), "float32")
    q, o, up, gate, down = (
        rng.standard_normal(shape).astype(np.float32)
        for shape in ((width, width), (width, width), (width, 8), (width, 8), (8, width))
    )

    def norm(value):
        mean = b.reduce_mean(b.square(value), axes=[2])
        scaled = b.multiply(value, b.rsqrt(b.add(mean, 1e-6)))
        return b.multiply(scaled, rng.standard_normal(width).astype(np.float32))

    n = norm(x)
    queries = b.transpose(b.reshape(b.matmul(n, q), shape=(1, rows, heads, size)), perm=(0, 2, 1, 3))
    mixed = b.matmul(b.softmax(b.matmul(queries, k), dim=-1), v)
    mixed = b.reshape(b.transpose(mixed, perm=(0, 2, 1, 3)), shape=(1, rows, width))
    x = b.add(x, b.matmul(mixed, o))
    n = norm(x)
    hidden = b.multiply(b.tanh(b.matmul(n, up)), b.matmul(n, gate))
    y = b.add(x, b.matmul(hidden, down))
    b.graph.outputs.append(Output("y", y.name, "float32"))
    return decompose(b.graph)


def test_attention_and_a_gated_layer_give_the_same_values_with_their_factors_later():
    graph = attention()
    made = late_factors(graph)
    rng = np.random.default_rng(1)
    given = {name: rng.standard_normal(graph[name].shape).astype(np.float32) for name in graph.inputs}
    before, after = (evaluate(item, given)[item.outputs[0].value] for item in (graph, made))
    np.testing.assert_allclose(after, before, rtol=2e-5, atol=2e-5)
    behind = [node for node in made if node.op == "matmul" and node.name.endswith(".whole")]
    assert len(behind) == 6  # queries, scores, mixed values, both of the gated layer, and the last
    users = made.users()
    assert not any(users[node.name] == [] for node in behind)


def test_keys_and_values_that_nothing_multiplies_by_the_way_are_products_of_the_norm():
    b = Builder(Graph())
    ones = np.ones((8, 8), np.float32)
    x = b.input("x", (1, 3, 8), "float32")
    n = b.multiply(x, b.rsqrt(b.add(b.reduce_mean(b.square(x), axes=[2]), 1e-6)))
    q, k, v = (b.alias(b.matmul(n, ones * factor), name) for name, factor in (("q", 1.0), ("k", 2.0), ("v", 3.0)))
    mixed = b.matmul(b.softmax(b.matmul(q, b.transpose(k, perm=(0, 2, 1))), dim=-1), v)
    for label, node in {"y": mixed, "k": k, "v": v}.items():
        b.graph.outputs.append(Output(label, node.name, "float32"))
    made = late_factors(decompose(b.graph))
    assert [made[name].op for name in ("q", "k", "v")] == ["matmul"] * 3  # the query would wait for the key
    assert made["q"].inputs[0] == made["k"].inputs[0] == made["v"].inputs[0] == n.name
