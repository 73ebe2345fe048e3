"""The simulator once more, as ordinary SimPy processes: short, readable and slow.

It follows the same rules as the compiled core and shares no code with it, so that each checks the
other. Read it to learn the rules, change it to try others (`--engine simpy`).

Every job is a process: it arrives, and it is over when its work is done. Every outage is one: a
node goes, and it comes back. Whatever happens asks for a scheduling pass; however many ask at one
instant, one pass follows. Where to read on:

- `simulation`: these processes; `clock`: in which order things happen at one instant;
- `yard`: what starting, stopping and ending a job does; whose turn it is (`order`), how its work
  progresses (`progress`), how fast (`rules`);
- `disciplines`: who is told to go (`easy`, `conservative`), and who must stop, move or shrink for
  it (`preemption`, `defrag`, `elastic`);
- `placements`, `sharing`: where it runs, on what is free (`floor`), and what that leaves over
  (`fragmentation`).
"""

from yardmaster.engine.reference.simulation import simulate_reference

__all__ = ["simulate_reference"]
