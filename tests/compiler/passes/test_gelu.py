"""What exporters write for gelu becomes gelu."""

from compiler.pass_pairs import becomes


def test_erf_and_products_become_gelu():
    becomes(
        "gelu",
        """
        front "g":
          x = input {label: "x"} : float32[2, 3] from "x"
          c = constant {value: float32[] = [1.4142135381698608]} : float32[]
          one = constant {value: float32[] = [1.0]} : float32[]
          half = constant {value: float32[] = [0.5]} : float32[]
          a = divide(x, c) : float32[2, 3]
          b = erf(a) : float32[2, 3]
          d = add(b, one) : float32[2, 3]
          e = multiply(x, d) : float32[2, 3]
          y = multiply(e, half) : float32[2, 3]
          output "y" = y : float32
    """,
        """
        front "g":
          x = input {label: "x"} : float32[2, 3] from "x"
          c = constant {value: float32[] = [1.4142135381698608]} : float32[]
          one = constant {value: float32[] = [1.0]} : float32[]
          half = constant {value: float32[] = [0.5]} : float32[]
          a = divide(x, c) : float32[2, 3]
          b = erf(a) : float32[2, 3]
          d = add(b, one) : float32[2, 3]
          e = multiply(x, d) : float32[2, 3]
          y = gelu(x) : float32[2, 3]
          output "y" = y : float32
    """,
    )
