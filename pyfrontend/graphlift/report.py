"""`explain`: runs a callable once and tells what was captured, where it broke and what is guarded."""

import functools
from dataclasses import dataclass, field

from . import _C
from .compiler import compile
from .options import make_config


@dataclass(frozen=True)
class Graph:
    """One region: its graph as text, forward and backward, and the guards at its entry."""

    place: str
    forward: str
    backward: str
    op_count: int
    guards: list[str]


@dataclass(frozen=True)
class BreakReason:
    """One graph break."""

    reason: str
    place: str
    hint: str
    stack: list[str]

    def __str__(self):
        lines = [f"{self.place}: {self.reason}"]
        lines += [f"    {line}" for line in self.stack]
        if self.hint:
            lines.append(f"    hint: {self.hint}")
        return "\n".join(lines)


@dataclass
class Report:
    """What one call captured. `print(report)` is readable; the fields are for programs."""

    graphs: list[Graph] = field(default_factory=list)
    break_reasons: list[BreakReason] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def graph_count(self) -> int:
        """Regions compiled."""
        return len(self.graphs)

    @property
    def graph_break_count(self) -> int:
        """Graph breaks met."""
        return len(self.break_reasons)

    @property
    def op_count(self) -> int:
        """Operator calls in all forward graphs."""
        return sum(graph.op_count for graph in self.graphs)

    @property
    def guards(self) -> list[str]:
        """The guards of all regions."""
        return [guard for graph in self.graphs for guard in graph.guards]

    def summary(self) -> str:
        """One line per region and break, without graphs and guards."""
        lines = [
            f"{_count(self.graph_count, 'graph')}, {_count(self.graph_break_count, 'graph break')}, "
            f"{_count(self.op_count, 'operator call')}, {_count(len(self.guards), 'guard')}"
        ]
        for number, graph in enumerate(self.graphs):
            backward = ", with backward" if graph.backward else ""
            lines.append(f"graph {number} at {graph.place}: {_count(graph.op_count, 'operator call')}{backward}")
        lines += [f"graph break {number} at {reason}" for number, reason in enumerate(self.break_reasons)]
        return "\n".join(lines + self.notes)

    def __str__(self):
        parts = [self.summary()]
        for number, graph in enumerate(self.graphs):
            parts.append(f"--- graph {number}, forward\n{graph.forward}")
            if graph.backward:
                parts.append(f"--- graph {number}, backward\n{graph.backward}")
            parts.append("\n".join([f"--- graph {number}, guards", *graph.guards]))
        return "\n\n".join(part.rstrip() for part in parts)


def explain(fn, **arguments):
    """`explain(fn)(*args)` calls fn once, captured anew, and returns a Report. Keyword arguments are compile's own.

    The call really happens: what it changes is changed. An exception of fn passes through.
    """
    make_config(**{"fullgraph": False, "dynamic": None, "backend": None, "mode": None, "options": None} | arguments)

    @functools.wraps(fn, updated=())
    def explained(*args, **kwargs) -> Report:
        compiled = compile(fn, **arguments)
        _C.explain_start()
        try:
            compiled(*args, **kwargs)
        finally:
            events = _C.explain_stop()
        return make_report(events)

    return explained


def make_report(events: list[dict]) -> Report:
    """A Report of the events that the C++ side noted."""
    report = Report()
    for event in events:
        place = f"{event.get('file', '?')}:{event.get('line', 0)}"
        if event["kind"] == "graph":
            report.graphs.append(
                Graph(
                    place,
                    event.get("forward", ""),
                    event.get("backward", ""),
                    event.get("calls", 0),
                    list(event.get("guards", ())),
                )
            )
        elif event["kind"] == "break":
            report.break_reasons.append(
                BreakReason(event.get("reason", ""), place, event.get("hint", ""), list(event.get("stack", ())))
            )
        else:
            report.notes.append(f"{event['kind']} at {place}: {event.get('reason', '')}")
    return report


def _count(number, noun):
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
