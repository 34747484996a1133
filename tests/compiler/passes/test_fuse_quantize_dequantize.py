"""Rounding to 8 bits and back becomes the chip's two ops for it."""

from compiler.pass_pairs import becomes, stays

PAIR = """
    front "g":
      x = input {label: "x"} : float32[2, 3] from "x"
      s = constant {value: float32[] = [0.5]} : float32[]
      z = constant {value: int8[] = [3]} : int8[]
      q = quantize(x, s, z) {type: "int8"} : int8[2, 3]
      y = dequantize(q, s, z) : float32[2, 3]
      output "y" = y : float32
"""


def test_a_pair_becomes_the_ops_of_the_chip():
    becomes(
        "fuse_quantize_dequantize",
        PAIR,
        """
        front "g":
          q.factor = constant {value: float32[] = [2.0]} : float32[]
          q.scale = constant {value: float32[] = [0.5]} : float32[]
          x = input {label: "x"} : float32[2, 3] from "x"
          s = constant {value: float32[] = [0.5]} : float32[]
          z = constant {value: int8[] = [3]} : int8[]
          q.int8 = to_int8(x, q.factor) {zero: 3.0} : int8[2, 3]
          y = from_int8(q.int8, q.scale) {zero: 3.0} : float32[2, 3]
          output "y" = y : float32
    """,
    )


def test_integers_that_the_host_reads_stay():
    stays("fuse_quantize_dequantize", PAIR + '      output "q" = q : int8\n')
