"""Equal nodes become one."""

from compiler.pass_pairs import becomes, stays


def test_equal_nodes_become_one():
    becomes(
        "cse",
        """
        core "g":
          x = input {label: "x"} : float32[2, 3] from "x"
          a = exp(x) : float32[2, 3]
          b = exp(x) : float32[2, 3]
          y = add(a, b) : float32[2, 3]
          output "y" = y : float32
    """,
        """
        core "g":
          x = input {label: "x"} : float32[2, 3] from "x"
          a = exp(x) : float32[2, 3]
          y = add(a, a) : float32[2, 3]
          output "y" = y : float32
    """,
    )


def test_constants_of_equal_bits_become_one():
    becomes(
        "cse",
        """
        core "g":
          x = input {label: "x"} : float32[2] from "x"
          one = constant {value: float32[2] = [1.0, 0.0]} : float32[2]
          two = constant {value: float32[2] = [1.0, 0.0]} : float32[2]
          a = add(x, one) : float32[2]
          b = multiply(a, two) : float32[2]
          output "y" = b : float32
    """,
        """
        core "g":
          x = input {label: "x"} : float32[2] from "x"
          one = constant {value: float32[2] = [1.0, 0.0]} : float32[2]
          a = add(x, one) : float32[2]
          b = multiply(a, one) : float32[2]
          output "y" = b : float32
    """,
    )


def test_other_attributes_and_a_zero_of_another_sign_stay_apart():
    stays(
        "cse",
        """
        core "g":
          x = input {label: "x"} : float32[2, 2] from "x"
          one = constant {value: float32[1] = [0.0]} : float32[1]
          two = constant {value: float32[1] = [-0.0]} : float32[1]
          a = reduce_max(x) {dim: 0} : float32[1, 2]
          b = reduce_max(x) {dim: 1} : float32[2, 1]
          c = add(a, one) : float32[1, 2]
          d = add(b, two) : float32[2, 1]
          output "c" = c : float32
          output "d" = d : float32
    """,
    )
