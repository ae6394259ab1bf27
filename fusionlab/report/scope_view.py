"""The picture of a whole program by scope: phases and loops as frames, scopes down to a depth as blocks.

The blocks are those of ``scope_leaves``. A loop's frame has a gate where its values enter (residuals and weights that
every trip reads, by bytes) and one where its result leaves. Figures are of all trips.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from fusionlab.hlo.program import Program
from fusionlab.hlo.view import FunctionView, view_of
from fusionlab.report.boxes import Flow
from fusionlab.report.dot import bytes_text, flops_text
from fusionlab.report.drawing import Block, Drawing, Group
from fusionlab.report.panel_label import STAGE_WORDS
from fusionlab.report.scope_leaves import ScopeLeaf, ScopeLeaves

_PHASES = {"": "outside of every scope", "mcmc": "sampling"}


def scope_drawing(program: Program, depth: int = 2, *, expand: bool = False) -> Drawing:
    """The drawing of ``program`` with scopes down to ``depth`` (1: stages; 2: what is in them; ...).

    ``expand`` draws what repeats one by one.
    """
    flat = view_of(program.parse())
    return _View(program.name, flat, depth, expand).drawing()


class _View:
    def __init__(self, name: str, flat: FunctionView, depth: int, expand: bool) -> None:
        self.name = name
        self.found = ScopeLeaves(flat, depth, expand=expand)
        self.view, self.replays, self.leaves = self.found.view, self.found.replays, self.found.leaves
        self.position = {node: i for i, leaf in enumerate(self.leaves) for node in leaf.members}

    def drawing(self) -> Drawing:
        gates = [loop for loop in self.found.inside if self.found.is_frame(loop)]
        first = len(self.leaves)
        entry = {loop: first + 2 * i for i, loop in enumerate(gates)}
        leave = {loop: first + 2 * i + 1 for i, loop in enumerate(gates)}
        flows = self._flows(entry, leave)
        blocks = [self._block(leaf) for leaf in self.leaves]
        for loop in gates:
            blocks += [self._entry(loop), Block("results of the loop", self._groups(loop), look="gate")]
        order = self._reading_order(gates)
        place = {old: new for new, old in enumerate(order)}
        moved = tuple(Flow(place[f.source], place[f.target], f.bytes, f.values) for f in flows)
        return Drawing(
            f"{self.name}: the program by scope",
            (self._figures(),),
            self._frames(gates),
            tuple(blocks[old] for old in order),
            moved,
            notes=("figures are of all trips of a loop (model: every operation on its own, nothing fused)",),
        )

    def _block(self, leaf: ScopeLeaf) -> Block:
        loops, phase, scope, role = leaf.key
        stages = Counter(self.view.nodes[node]["stage"] for node in leaf.members)
        stage = stages.most_common(1)[0][0]
        title = _title(scope) or _PHASES.get(phase, phase)
        notes = []
        if leaf.repeat is not None:
            few, many = min(leaf.sizes), max(leaf.sizes)
            alike = "identical" if leaf.repeat.identical else f"alike: {few:,} to {many:,} operations each"
            notes.append(f"{len(leaf.repeat.names)} times, {alike}; figures are of all")
        groups = (f"phase {phase}", *loops)
        repeats = len(leaf.repeat.names) if leaf.repeat else 1
        return Block(title, groups, self.found.rows(leaf), stage, role, tuple(notes), repeats)

    def _groups(self, loop: str) -> tuple[str, ...]:
        return (f"phase {self._phase_of(loop)}", *self._around_frames(loop), loop)

    def _around_frames(self, loop: str) -> tuple[str, ...]:
        return tuple(outer for outer in self.found.around(loop) if self.found.is_frame(outer))

    def _phase_of(self, loop: str) -> str:
        phases = Counter(leaf.key[1] for leaf in self.leaves if loop in leaf.key[0])
        return phases.most_common(1)[0][0] if phases else str(self.view.nodes[loop]["phase"])

    def _frames(self, gates: Iterable[str]) -> dict[str, Group]:
        frames = {f"phase {leaf.key[1]}": Group(_PHASES.get(leaf.key[1], leaf.key[1])) for leaf in self.leaves}
        for loop in gates:
            replay = self.replays.get(loop)
            trips = "unknown" if replay is None or replay.trips is None else f"{replay.trips:,}"
            what = "the Laplacian's replay" if replay is not None and not replay.blockers else "a loop"
            frames[loop] = Group(f"{what}: stablehlo.while, {trips} trips", "loop")
            frames.setdefault(f"phase {self._phase_of(loop)}", Group(self._phase_of(loop)))
        return frames

    def _entry(self, loop: str) -> Block:
        replay = self.replays.get(loop)
        notes = []
        if replay is not None:
            kinds = ((len(replay.residuals), replay.residual_bytes, "residuals per walker"),
                     (len(replay.shared), replay.shared_bytes, "weights and constants"))  # fmt: skip
            notes = [
                f"{number} {what}: {bytes_text(size)}, read in every trip" for number, size, what in kinds if number
            ]
        return Block("into the loop", self._groups(loop), notes=tuple(notes), look="gate")

    def _figures(self) -> str:
        rows = [row for leaf in self.leaves for row in self.found.rows(leaf)]
        count, flops, moved = (sum(getattr(row, what) for row in rows) for what in ("count", "flops", "bytes"))
        return f"{count:,} operations, {flops_text(flops)}, {bytes_text(moved)} moved"

    def _flows(self, entry: Mapping[str, int], leave: Mapping[str, int]) -> list[Flow]:
        """Bytes between blocks: each value once per block that reads it, times the trips in which it does."""
        moved: dict[tuple[int, int], dict[str, int]] = defaultdict(dict)
        for source, target, data in self.view.edges(data=True):
            start, end = self._ends(source, target, entry, leave)
            if start is not None and end is not None and start != end:
                runs = self.found.trips(self._runs_in(source, target))
                known = moved[start, end].get(source, 0)
                moved[start, end][source] = max(known, data["bytes"] * runs)
        return [Flow(*pair, bytes=sum(sizes.values()), values=len(sizes)) for pair, sizes in sorted(moved.items())]

    def _reading_order(self, gates: list[str]) -> list[int]:
        """Positions of leaves and gates as they stand in the program, a loop's between its gates."""
        places = [self._place(leaf) for leaf in self.leaves]
        for loop in gates:
            outer = tuple(float(self.view.nodes[one]["order"]) for one in (*self._around_frames(loop), loop))
            places += [(*outer, -1.0), (*outer, float("inf"))]
        return sorted(range(len(places)), key=lambda i: places[i])

    def _place(self, leaf: ScopeLeaf) -> tuple[float, ...]:
        own = [self.view.nodes[n]["order"] for n in leaf.members if self.view.nodes[n]["family"] != "constant"]
        loops = [self.view.nodes[loop]["order"] for loop in leaf.key[0]]
        return (*map(float, loops), float(min(own, default=0)))

    def _ends(
        self, source: str, target: str, entry: Mapping[str, int], leave: Mapping[str, int]
    ) -> tuple[int | None, int | None]:
        start, end = self.position.get(source), self.position.get(target)
        facts = self.view.nodes[source]
        if source in leave:
            start = leave[source]
        elif facts["kind"] == "argument" and facts["parent"] in entry:
            start = entry[facts["parent"]]
        if target in entry:
            end = entry[target]
        elif self.view.nodes[target]["kind"] == "return" and self.view.nodes[target]["parent"] in leave:
            end = leave[self.view.nodes[target]["parent"]] if "/body/" in target else None
            end = end if start != entry.get(self.view.nodes[target]["parent"]) else None
        return start, end

    def _runs_in(self, source: str, target: str) -> tuple[str, ...]:
        """The frames that both ends are in: the value passes once per trip of these."""
        facts = self.view.nodes[source]
        around = self.found.around(source) if facts["parent"] else ()
        other = self.found.around(target) if self.view.nodes[target]["parent"] else ()
        return tuple(loop for loop in around if loop in other and self.found.is_frame(loop))


def _title(scope: tuple[str, ...]) -> str:
    """``B: interaction 1``, ``A: features``, ``potential``: the stage's letter, and the scopes or what the stage is."""
    words = [name.replace("_", " ") for name in scope]
    stage = scope[0].removeprefix("stage_").upper() if scope and scope[0].startswith("stage_") else ""
    if stage not in STAGE_WORDS or not stage:
        return ", ".join(words)
    return f"{stage}: {', '.join(words[1:]) or STAGE_WORDS[stage]}"
