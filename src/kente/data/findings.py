"""What the doctor says: findings, and the report that holds them, for people and for programs."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Severity = Literal["ok", "note", "warning", "error"]
_ORDER: tuple[Severity, ...] = ("ok", "note", "warning", "error")
_MARKS = {"ok": "ok     ", "note": "note   ", "warning": "WARNING", "error": "ERROR  "}


@dataclass(frozen=True)
class Finding:
    """One thing looked at: how it is, the numbers behind it, examples by line, and the remedy if one is needed."""

    check: str
    severity: Severity
    title: str
    seen: str
    remedy: str = ""
    examples: tuple[str, ...] = ()
    numbers: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """All findings about a corpus."""

    name: str
    pairs: int
    findings: tuple[Finding, ...]

    @property
    def worst(self) -> Severity:
        return max((finding.severity for finding in self.findings), key=_ORDER.index, default="ok")

    def lines(self) -> list[str]:
        """For people."""
        text = [f"{self.name}: {self.pairs:,} pairs"]
        for finding in self.findings:
            text.append(f"{_MARKS[finding.severity]} {finding.title}: {finding.seen}")
            text += [f"          {example}" for example in finding.examples]
            if finding.remedy:
                text.append(f"          -> {finding.remedy}")
        counts = Counter(finding.severity for finding in self.findings)
        text.append(
            "in short: "
            + ", ".join(f"{counts[severity]} {severity}" for severity in reversed(_ORDER) if counts[severity])
        )
        return text

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            "corpus": self.name,
            "pairs": self.pairs,
            "worst": self.worst,
            "findings": [asdict(finding) for finding in self.findings],
        }
