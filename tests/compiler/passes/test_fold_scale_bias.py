"""Factors and terms of channels go into weights and one bias."""

from compiler.pass_pairs import becomes, stays


def test_a_factor_and_a_term_behind_a_product():
    becomes(
        "fold_scale_bias",
        """
        core "g":
          x = input {label: "x"} : float32[3, 2] from "x"
          w = constant {value: float32[2, 2] = [1.0, 2.0, 3.0, 4.0]} : float32[2, 2]
          s = constant {value: float32[2] = [10.0, 100.0]} : float32[2]
          t = constant {value: float32[2] = [0.5, 0.25]} : float32[2]
          a = matmul(x, w) : float32[3, 2]
          b = multiply(a, s) : float32[3, 2]
          c = add(b, t) : float32[3, 2]
          output "c" = c : float32
    """,
        """
        core "g":
          a.scaled = constant {value: float32[2, 2] = [10.0, 200.0, 30.0, 400.0]} : float32[2, 2]
          c.shift = constant {value: float32[2] = [0.5, 0.25]} : float32[2]
          x = input {label: "x"} : float32[3, 2] from "x"
          w = constant {value: float32[2, 2] = [1.0, 2.0, 3.0, 4.0]} : float32[2, 2]
          s = constant {value: float32[2] = [10.0, 100.0]} : float32[2]
          t = constant {value: float32[2] = [0.5, 0.25]} : float32[2]
          c.matmul = matmul(x, a.scaled) : float32[3, 2]
          c = add(c.matmul, c.shift) : float32[3, 2]
          output "c" = c : float32
    """,
    )


def test_a_product_that_somebody_else_reads_keeps_its_weights():
    stays(
        "fold_scale_bias",
        """
        core "g":
          x = input {label: "x"} : float32[3, 2] from "x"
          w = constant {value: float32[2, 2] = [1.0, 2.0, 3.0, 4.0]} : float32[2, 2]
          s = constant {value: float32[2] = [10.0, 100.0]} : float32[2]
          a = matmul(x, w) : float32[3, 2]
          b = multiply(a, s) : float32[3, 2]
          output "a" = a : float32
          output "b" = b : float32
    """,
    )
