"""A bound on the work of one run, so that every program ends."""

from buda_emu.errors import ProgramError
from buda_emu.records import dataclass


@dataclass(slots=True)
class StepBudget:
    """Counts instructions, and inputs of epochs, of one run."""

    limit: int
    left: int = 0

    def begin_run(self) -> None:
        """The whole budget again."""
        self.left = self.limit

    def require(self, count: int, what: str) -> None:
        """Raises ProgramError when `what`, which takes so many steps at least, is more than is left."""
        if count > self.left:
            raise ProgramError(
                f"{what} take at least {count} instructions, {self.left} of {self.limit} are left (step_limit)",
                kind="limit",
            )

    def take(self, count: int = 1) -> None:
        """Count some steps. Raises ProgramError when the run has had more than its limit."""
        self.left -= count
        if self.left < 0:
            raise ProgramError(
                f"more than {self.limit} instructions and epoch inputs in one run (step_limit)", kind="limit"
            )
