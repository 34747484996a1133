"""Factors of products, where they are applied to the fewest elements."""

from compiler.pass_pairs import becomes, stays

SOFTMAX = """
    core "g":
      e = input {label: "e"} : float32[1, 2, 3, 8] from "e"
      s = input {label: "s"} : float32[1, 2, 3, 1] from "s"
      v = input {label: "v"} : float32[2, 8, 4] from "v"
      p = multiply(e, s) : float32[1, 2, 3, 8]
      w = reshape(p) {shape: (2, 3, 8)} : float32[2, 3, 8]
      y = matmul(w, v) : float32[2, 3, 4]
      output "y" = y : float32
"""


def test_a_factor_of_each_row_comes_after_the_product():
    becomes(
        "factors",
        SOFTMAX,
        """
        core "g":
          e = input {label: "e"} : float32[1, 2, 3, 8] from "e"
          s = input {label: "s"} : float32[1, 2, 3, 1] from "s"
          v = input {label: "v"} : float32[2, 8, 4] from "v"
          w.whole = reshape(e) {shape: (2, 3, 8)} : float32[2, 3, 8]
          w.row = reshape(s) {shape: (2, 3, 1)} : float32[2, 3, 1]
          y.whole = matmul(w.whole, v) : float32[2, 3, 4]
          y = multiply(y.whole, w.row) : float32[2, 3, 4]
          output "y" = y : float32
    """,
    )


def test_where_the_product_has_as_many_columns_or_others_read_the_weights_nothing_changes():
    stays("factors", SOFTMAX.replace("8, 4]", "8, 8]").replace("2, 3, 4]", "2, 3, 8]"))
    stays("factors", SOFTMAX.rstrip() + '\n      output "p" = p : float32\n')
    stays("factors", SOFTMAX.rstrip() + '\n      output "w" = w : float32\n')


SCORES = """
    core "g":
      x = input {label: "x"} : float32[3, 2] from "x"
      k = input {label: "k"} : float32[2, 4] from "k"
      w = constant {value: float32[2, 2] = [1.0, 2.0, 3.0, 4.0]} : float32[2, 2]
      b = constant {value: float32[2] = [8.0, 16.0]} : float32[2]
      s = constant {value: float32[] = [0.5]} : float32[]
      a = matmul(x, w) : float32[3, 2]
      q = add(a, b) : float32[3, 2]
      p = matmul(q, k) : float32[3, 4]
      m = reshape(p) {shape: (1, 3, 4)} : float32[1, 3, 4]
      y = multiply(m, s) : float32[1, 3, 4]
      output "y" = y : float32
"""


def test_the_scale_of_scores_goes_into_what_makes_the_queries():
    becomes(
        "factors",
        SCORES,
        """
        core "g":
          x = input {label: "x"} : float32[3, 2] from "x"
          k = input {label: "k"} : float32[2, 4] from "k"
          w.scaled = constant {value: float32[2, 2] = [0.5, 1.0, 1.5, 2.0]} : float32[2, 2]
          b.scaled = constant {value: float32[2] = [4.0, 8.0]} : float32[2]
          s = constant {value: float32[] = [0.5]} : float32[]
          a.scaled = matmul(x, w.scaled) : float32[3, 2]
          q.scaled = add(a.scaled, b.scaled) : float32[3, 2]
          p.scaled = matmul(q.scaled, k) : float32[3, 4]
          y = reshape(p.scaled) {shape: (1, 3, 4)} : float32[1, 3, 4]
          output "y" = y : float32
    """,
    )


def test_queries_that_others_read_or_no_constants_make_keep_their_scale():
    for name in ("w", "b", "a", "q", "p", "m"):
        stays("factors", SCORES.rstrip() + f'\n      output "{name}" = {name} : float32\n')
    stays(
        "factors",
        SCORES.replace("constant {value: float32[2, 2] = [1.0, 2.0, 3.0, 4.0]}", 'input {label: "w"}').replace(
            ": float32[2, 2]\n", ': float32[2, 2] from "w"\n'
        ),
    )


def test_scales_that_follow_each_other_and_products_that_read_what_was_scaled():
    """As scores that are divided again before they are capped, and attention without a softmax."""
    twice = """
          w = constant {value: float32[2, 2] = [1.0, 2.0, 3.0, 4.0]} : float32[2, 2]
          x = input {label: "x"} : float32[3, 2] from "x"
          k = input {label: "k"} : float32[2, 4] from "k"
          s = constant {value: float32[] = [0.5]} : float32[]
          c = constant {value: float32[] = [4.0]} : float32[]
          a = matmul(x, w) : float32[3, 2]
          p = matmul(a, k) : float32[3, 4]
          y = multiply(p, s) : float32[3, 4]
          z = multiply(y, c) : float32[3, 4]
          v = input {label: "v"} : float32[4, 2] from "v"
          o = matmul(z, v) : float32[3, 2]
          output "o" = o : float32
    """
    becomes(
        "factors",
        f"""
        core "g":{twice}""",
        """
        core "g":
          w.scaled.scaled = constant {value: float32[2, 2] = [2.0, 4.0, 6.0, 8.0]} : float32[2, 2]
          x = input {label: "x"} : float32[3, 2] from "x"
          k = input {label: "k"} : float32[2, 4] from "k"
          s = constant {value: float32[] = [0.5]} : float32[]
          c = constant {value: float32[] = [4.0]} : float32[]
          a.scaled.scaled = matmul(x, w.scaled.scaled) : float32[3, 2]
          z = matmul(a.scaled.scaled, k) : float32[3, 4]
          v = input {label: "v"} : float32[4, 2] from "v"
          o = matmul(z, v) : float32[3, 2]
          output "o" = o : float32
    """,
    )
