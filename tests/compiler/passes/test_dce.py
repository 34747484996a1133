"""What no output depends on goes."""

from compiler.pass_pairs import becomes


def test_what_no_output_needs_goes_and_inputs_stay():
    becomes(
        "dce",
        """
        core "g":
          x = input {label: "x"} : float32[2, 3] from "x"
          z = input {label: "z"} : float32[2, 3] from "z"
          c = constant {value: float32[1] = [2.0]} : float32[1]
          a = exp(x) : float32[2, 3]
          b = multiply(a, c) : float32[2, 3]
          output "a" = a : float32
    """,
        """
        core "g":
          x = input {label: "x"} : float32[2, 3] from "x"
          z = input {label: "z"} : float32[2, 3] from "z"
          a = exp(x) : float32[2, 3]
          output "a" = a : float32
    """,
    )
