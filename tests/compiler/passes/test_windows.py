"""The host lays out what the first convolution reads."""

from compiler.pass_pairs import becomes, stays


def conv(kernel, pads):
    return f"""
        core "g":
          x = input {{label: "x"}} : float32[1, 3, 8, 8] from "x"
          w = constant {{value: float32[32, 3, {kernel}, {kernel}] = 0.5}} : float32[32, 3, {kernel}, {kernel}]
          y = conv(x, w) {{strides: (2, 2), dilations: (1, 1), pads: {pads}, groups: 1}} : float32[1, 32, 4, 4]
          output "y" = y : float32
    """


def test_a_convolution_becomes_a_product_with_windows_that_the_host_lays_out():
    becomes(
        "windows",
        conv(3, "((1, 1), (1, 1))"),
        """
        core "g":
          x = input {label: "x", windows: Windows(perm: (0, 1, 2, 3), sizes: (3, 3), strides: (2, 2), \
starts: (-1, -1), counts: (4, 4)), host_shape: (1, 3, 8, 8)} : float32[1, 4, 4, 27] from "x"
          w = constant {value: float32[32, 3, 3, 3] = 0.5} : float32[32, 3, 3, 3]
          y.seen = transpose(x) {perm: (0, 3, 1, 2)} : float32[1, 27, 4, 4]
          y.weights = constant {value: float32[32, 27, 1, 1] = 0.5} : float32[32, 27, 1, 1]
          y = conv(y.seen, y.weights) {strides: (1, 1), dilations: (1, 1), pads: ((0, 0), (0, 0)), groups: 1} \
: float32[1, 32, 4, 4]
          output "y" = y : float32
    """,
    )


def test_one_tap_is_left_to_the_device():
    stays("windows", conv(1, "((0, 0), (0, 0))"))
