"""The counts of one kind of torture, and whether they are good enough."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Counts:
    """How often was struck, what had been acknowledged by then, and what was found wrong afterwards."""

    kind: str
    strikes: int = 0
    acknowledged: int = 0
    wrong: list[str] = field(default_factory=list)
    remarks: dict[str, int] = field(default_factory=dict)
    table: str = ""
    """Details, if there are any."""

    def remark(self, what: str, number: int = 1) -> None:
        """Count something that is worth printing."""
        self.remarks[what] = self.remarks.get(what, 0) + number

    def failures(self, wanted: int) -> list[str]:
        """Why this run proves nothing, or proves a fault; empty if all is well."""
        few = []
        if self.strikes < wanted:
            few.append(f"{self.kind}: only {self.strikes} of {wanted} strikes")
        if self.acknowledged < self.strikes:
            few.append(f"{self.kind}: only {self.acknowledged} acknowledged writes for {self.strikes} strikes")
        return few + [f"{self.kind}: {problem}" for problem in self.wrong]

    def line(self) -> str:
        more = "".join(f", {what} {number:,}" for what, number in sorted(self.remarks.items()))
        return (
            f"{self.kind}: {self.strikes:,}, acknowledged writes {self.acknowledged:,}, wrong {len(self.wrong)}{more}"
        )
