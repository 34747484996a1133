"""Two parts of a netlist in this process, each run by a machine on a thread of its own."""

import threading
from queue import Queue

import buda_emu as be
from buda_emu.emulator.distributed.part import cut
from buda_emu.support.errors import ProgramError


class NearPart:
    """A part in this process. `events`: what it did with the other one, in order; `sent`: the types of what it gave."""

    def __init__(self, number, found, between):
        self.number, self.events, self.sent = number, [], []
        self.owner, self.keepers = found.owners.__getitem__, found.keepers.__getitem__
        self._between = between

    def at(self, op):
        pass

    def send(self, to, arrays):
        self.events.append("send")
        self.sent += [array.dtype.name for array in arrays]
        self._between[self.number, to].put([array.copy() for array in arrays])

    def receive(self, source):
        self.events.append("receive")
        return self._between[source, self.number].get(timeout=60)


def push_all(netlist, machine, inputs, values, part=None):
    """Into every queue of the host that a part keeps `inputs` entries of `values(shape)`; of a ram one."""
    for queue in netlist.queues.values():
        if queue.host_fed:
            given = values((1 if queue.is_ram else inputs, *queue.blocking.element_shape))
            if part is None or part.number in part.keepers(queue.name):
                machine.push(queue.name, given)
            else:
                machine.pushed_elsewhere(queue.name, len(given))


def on_two_parts(netlist, precision, inputs, values):
    """Both parts, the machines that ran `run_fwd`, still open, and their errors. `values()`: as `push_all` takes them,
    anew for each machine."""
    found, between = cut(netlist, 2), {(0, 1): Queue(), (1, 0): Queue()}
    parts = [NearPart(number, found, between) for number in (0, 1)]
    machines = [be.Emulator(netlist, precision, 1, part=part) for part in parts]
    errors = [None, None]

    def run(number):
        try:
            machines[number].run("run_fwd", {"$p_loop_count": 1})
        except ProgramError as error:
            errors[number] = error

    for machine, part in zip(machines, parts, strict=True):
        push_all(netlist, machine, inputs, values(), part)
    threads = [threading.Thread(target=run, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return parts, machines, errors
