"""splice on the device: whole tiles move to new places (DEVICE_NUMERICS 6.2, inferred)."""

from itertools import pairwise

import numpy as np

from buda_emu.emulator.ops import splice
from buda_emu.emulator.ops.on_device.base import DeviceOp, DstTiles, Job, Maker, copied_mode, on_device
from buda_emu.spec.blocking import TILE_ELEMENTS


@on_device("splice")
class Splice(DeviceOp):
    """A splice: each tile of the result is one of an input (OPS 6.8)."""

    def maker(self, job: Job) -> Maker:
        """Return the maker of a copy of tiles from their inputs. Raises UnsupportedError for a gradient op."""
        job.no_gradient()
        call = job.call
        sources = job.sources
        units = job.units
        origin, position = splice.sources(call.op)
        sizes = np.array([operand.map.index.size for operand in call.op.operands])
        mode = copied_mode(sources[0], job.registers.dst)

        def tiles(start: int, stop: int) -> DstTiles:
            """Copy tiles start..stop, as runs of neighbours of one input."""
            entry, tile = np.divmod(np.arange(start, stop), len(origin))
            of = origin[tile]
            at = position[tile] + entry * sizes[origin[tile]]
            images = np.empty((stop - start, TILE_ELEMENTS), np.uint32)
            for number, source in enumerate(sources):
                # What takes turns in the result lies one after the other in its operand.
                places = np.flatnonzero(of == number)
                if not len(places):
                    continue
                cuts = [0, *(np.flatnonzero(np.diff(at[places]) != 1) + 1).tolist(), len(places)]
                for first, last in pairwise(cuts):
                    begin, end = (int(at[places[n]]) for n in (first, last - 1))
                    images[places[first:last]] = source.image(units, begin, end + 1)
            return DstTiles(images, mode)

        return tiles
