"""And-inverter graphs, and a SAT solver that gets the parts of them that a question needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pysat.solvers import Glucose4

__all__ = ["FALSE", "TRUE", "Aig", "Question"]

FALSE, TRUE = 0, 1


class Aig:
    """Nodes are numbered; an edge is twice the node, plus one if it is inverted. Node 0 is false."""

    def __init__(self) -> None:
        self.inputs: list[tuple[int, int]] = [(0, 0)]
        self._known: dict[tuple[int, int], int] = {}

    def free(self) -> int:
        """Return a new node with any value."""
        self.inputs.append((-1, -1))
        return 2 * (len(self.inputs) - 1)

    def both(self, a: int, b: int) -> int:
        if a > b:
            a, b = b, a
        if a == FALSE or a ^ b == 1:
            return FALSE
        if a in (TRUE, b):
            return b
        node = self._known.get((a, b))
        if node is None:
            node = self._known[a, b] = 2 * len(self.inputs)
            self.inputs.append((a, b))
        return node

    def either(self, a: int, b: int) -> int:
        return self.both(a ^ 1, b ^ 1) ^ 1

    def differ(self, a: int, b: int) -> int:
        flip = (a ^ b) & 1
        a, b = a & ~1, b & ~1
        return self.both(self.both(a, b) ^ 1, self.both(a ^ 1, b ^ 1) ^ 1) ^ flip

    def choose(self, select: int, then: int, otherwise: int) -> int:
        if then == otherwise:
            return then
        return self.both(self.both(select, then) ^ 1, self.both(select ^ 1, otherwise) ^ 1) ^ 1

    def evaluate(self, edges: list[int], rows: Sequence[Sequence[int]], changed: set[int] | None = None) -> None:
        """Fill in the edges of gates: rows of `tools.sliced.gates`, the last nets.

        If `changed` is given, only the gates behind these nets are evaluated, and the nets that then differ join it.
        """
        operations = self._operations()
        for net, (kind, a, b, s) in enumerate(rows, len(edges) - len(rows)):
            if changed is None:
                edges[net] = operations[kind](edges[a], edges[b], edges[s])
            elif a in changed or b in changed or s in changed:
                before = edges[net]
                edges[net] = operations[kind](edges[a], edges[b], edges[s])
                if edges[net] != before:
                    changed.add(net)

    def _operations(self) -> Sequence[Callable[[int, int, int], int]]:
        """Return the functions of A, B and S for the kinds of `tools.sliced.gates`, in their order."""
        both, either, differ, choose = self.both, self.either, self.differ, self.choose
        return (
            lambda a, b, s: both(a, b),
            lambda a, b, s: either(a, b),
            lambda a, b, s: differ(a, b),
            lambda a, b, s: differ(a, b) ^ 1,
            lambda a, b, s: a ^ 1,
            lambda a, b, s: choose(s, b, a),
            lambda a, b, s: both(a, b) ^ 1,
            lambda a, b, s: either(a, b) ^ 1,
            lambda a, b, s: both(a, b ^ 1),
            lambda a, b, s: either(a, b ^ 1),
            lambda a, b, s: a,
        )


class Question:
    """A solver that knows only the part of a graph that its questions needed so far.

    Parameters
    ----------
    graph : Aig
    conflicts : int
        Number of conflicts after which it gives up.
    """

    def __init__(self, graph: Aig, conflicts: int) -> None:
        self._graph, self._conflicts = graph, conflicts
        self._solver = Glucose4()
        self._told = {0}
        # Variables count from 1: node n is n + 1.
        self._solver.add_clause([-1])

    def __enter__(self) -> Question:
        return self

    def __exit__(self, *_: object) -> None:
        self._solver.delete()

    def require(self, edges: Sequence[int]) -> None:
        """Let at least one of these be true from now on."""
        self._solver.add_clause([self._literal(edge) for edge in edges])

    def possible(self, edges: Sequence[int]) -> list[bool] | None:
        """Find a case in which at least one of these is true, and tell which are; an empty list if there is no case.

        None if the solver gave up.
        """
        if not edges:
            return []
        literals = [self._literal(edge) for edge in edges]
        fresh = self._literal(self._graph.free())
        self._solver.add_clause([-fresh, *literals])
        self._solver.conf_budget(self._conflicts)
        answer = self._solver.solve_limited(assumptions=[fresh])
        if answer is None:
            return None
        if not answer:
            return []
        model = self._solver.get_model()
        return [(model[abs(literal) - 1] > 0) == (literal > 0) for literal in literals]

    def _literal(self, edge: int) -> int:
        self._tell(edge >> 1)
        return -(edge // 2 + 1) if edge & 1 else edge // 2 + 1

    def _tell(self, node: int) -> None:
        waiting, inputs, told = [node], self._graph.inputs, self._told
        while waiting:
            node = waiting.pop()
            if node in told:
                continue
            told.add(node)
            a, b = inputs[node]
            if a < 0:
                continue
            x, y, z = node + 1, (a >> 1) + 1, (b >> 1) + 1
            y, z = -y if a & 1 else y, -z if b & 1 else z
            for clause in ([-x, y], [-x, z], [x, -y, -z]):
                self._solver.add_clause(clause)
            waiting += (a >> 1, b >> 1)
