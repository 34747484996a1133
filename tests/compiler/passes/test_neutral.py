"""Constants that change nothing."""

from compiler.pass_pairs import becomes, stays

ZEROS = """
    core "g":
      x = input {label: "x"} : float32[2, 3, 4] from "x"
      b = constant {value: float32[2, 3, 4] = 0.0} : float32[2, 3, 4]
      a = add(x, b) : float32[2, 3, 4]
      y = exp(a) : float32[2, 3, 4]
      output "y" = y : float32
"""


def test_zeros_that_are_added_go():
    becomes(
        "neutral",
        ZEROS,
        """
        core "g":
          x = input {label: "x"} : float32[2, 3, 4] from "x"
          b = constant {value: float32[2, 3, 4] = 0.0} : float32[2, 3, 4]
          y = exp(x) : float32[2, 3, 4]
          output "y" = y : float32
    """,
    )
    other = ZEROS.replace("add(x, b)", "multiply(b, x)").replace("= 0.0}", "= 1.0}")
    becomes("neutral", other, other.replace("      a = multiply(b, x) : float32[2, 3, 4]\n", "").replace("(a)", "(x)"))


def test_other_numbers_and_what_is_taken_from_zeros_stay():
    stays("neutral", ZEROS.replace("= 0.0}", "= 0.5}"))
    stays("neutral", ZEROS.replace("= 0.0}", "= 1.0}"))
    stays("neutral", ZEROS.replace("add(x, b)", "subtract(b, x)"))


def test_what_makes_the_value_larger_stays():
    text = ZEROS.replace('x"} : float32[2, 3, 4]', 'x"} : float32[1, 3, 4]')
    stays("neutral", text)


def test_parameters_of_channels_stay_whatever_they_are():
    stays(
        "neutral",
        ZEROS.replace("float32[2, 3, 4] = 0.0} : float32[2, 3, 4]", "float32[4] = [0.0, 0.0, 0.0, 0.0]} : float32[4]"),
    )
