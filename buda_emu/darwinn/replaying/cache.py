"""The driver's parameter cache: which packages' parameters are on the device (DARWINN 4)."""

from collections.abc import Sequence
from typing import NamedTuple

from buda_emu.darwinn.model import Package
from buda_emu.errors import PackageError


class Decision(NamedTuple):
    """What the driver does for a request: forget packages, then cache the request's own or not."""

    evicted: tuple[int, ...]
    caches: bool
    token: int
    cached: tuple[int, ...]


class ParameterCache:
    """The state of one device. The driver knows no capacity: that is the compiler's care."""

    def __init__(self, packages: Sequence[Package]) -> None:
        self._packages = packages
        self.token = 0
        self.cached: dict[int, None] = {}  # numbers of packages, in the order of caching

    def request(self, number: int) -> Decision:
        """A request of a package. Raises PackageError where the driver fails it."""
        package = self._packages[number]
        token = package.main.parameter_caching_token
        evicted: tuple[int, ...] = ()
        if not token or token != self.token:
            evicted = tuple(self.cached)
            self.token = 0
            self.cached.clear()
        caching = package.caching
        caches = caching is not None and number not in self.cached
        if caching is not None and not caching.parameter_caching_token:
            raise PackageError(
                f"package {number}: the caching executable's token is 0, so that every request fails (D030)"
            )
        if caching is not None and caches:
            self.token = caching.parameter_caching_token
            self.cached[number] = None
        return Decision(evicted, caches, self.token, tuple(self.cached))

    @property
    def resident_bytes(self) -> int:
        """Parameters of all cached packages."""
        executables = (self._packages[number].caching for number in self.cached)
        return sum(item.parameter_bytes for item in executables if item is not None)
