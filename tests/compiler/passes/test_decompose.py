"""Every op becomes core ops."""

from compiler.pass_pairs import becomes

SUM = (
    "Sparse(shape: (1, 3), row: int64[3] = [0, 0, 0], col: int64[3] = [0, 1, 2], weight: float32[3] = [1.0, 1.0, 1.0])"
)


def test_a_softmax_is_taken_apart():
    becomes(
        "decompose",
        """
        front "g":
          x = input {label: "x"} : float32[2, 3] from "x"
          s = softmax(x) {dim: 1} : float32[2, 3] from "layer"
          output "s" = s : float32
    """,
        """
        core "g":
          x = input {label: "x"} : float32[2, 3] from "x"
          s.reduce_max = reduce_max(x) {dim: 1} : float32[2, 1] from "layer"
          s.subtract = subtract(x, s.reduce_max) : float32[2, 3] from "layer"
          s.exp = exp(s.subtract) : float32[2, 3] from "layer"
          s.linear = linear(s.exp) {dim: 1, matrix: SUM} : float32[2, 1] from "layer"
          s.reciprocal = reciprocal(s.linear) : float32[2, 1] from "layer"
          s = multiply(s.exp, s.reciprocal) : float32[2, 3] from "layer"
          output "s" = s : float32
    """.replace("SUM", SUM),
    )


def test_what_hangs_on_constants_alone_is_computed():
    becomes(
        "decompose",
        """
        front "g":
          x = input {label: "x"} : float32[2] from "x"
          one = constant {value: float32[2] = [1.0, 4.0]} : float32[2]
          two = sqrt(one) : float32[2]
          a = add(x, two) : float32[2]
          output "a" = a : float32
    """,
        """
        core "g":
          x = input {label: "x"} : float32[2] from "x"
          one = constant {value: float32[2] = [1.0, 4.0]} : float32[2]
          two.constant = constant {value: float32[2] = [1.0, 2.0]} : float32[2]
          a = add(x, two.constant) : float32[2]
          output "a" = a : float32
    """,
    )
