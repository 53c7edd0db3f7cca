"""The page of a classifier's report: its scores, what it confuses with what, and where it is wrong and sure of it."""

from __future__ import annotations

from kente.measure.classes import ClassReport
from kente.show.charts import table
from kente.show.downloads import download
from kente.show.page import Section, page
from kente.show.tables import Cell, cell, table_html
from kente.show.text import isolated


def class_page(report: ClassReport) -> str:
    """A whole HTML document that needs nothing beside it."""
    sections = [Section("Classes", _classes(report)), Section("Confusion", _confusion(report))]
    if report.mistakes:
        sections.append(Section("Surest mistakes", _mistakes(report)))
    words = download(report.as_dict(), name="report.json", words="Download the numbers")
    sections.append(Section("Numbers", f"<p>Everything on this page is in one JSON file.</p>{words}"))
    return page("A classifier, tested", sections, lead=_lead(report))


def _lead(report: ClassReport) -> str:
    accuracy = report.accuracy
    facts = (
        ("run", report.run),
        ("test", f"{report.test}, {accuracy.signature}"),
        ("accuracy", f"{accuracy.value:.1f} % (95 %: {accuracy.low:.1f} to {accuracy.high:.1f})"),
        ("macro F1", f"{report.macro_f1.value:.1f} %"),
        ("confidence", f"off by {report.calibration:.1f} points on average"),
    )
    entries = "".join(f"<div><dt>{name}</dt><dd>{isolated(value)}</dd></div>" for name, value in facts)
    return f'<dl class="facts">{entries}</dl>'


def _classes(report: ClassReport) -> str:
    rows = [
        [one.name, f"{one.precision:.1f}", f"{one.recall:.1f}", f"{one.f1:.1f}", f"{one.texts:,}", f"{one.predicted:,}"]
        for one in report.each
    ]
    note = "In per cent. Precision: of what was said to be of the class, how much is. Recall: of what is of the class, how much was said to be."
    return table(["class", "precision", "recall", "F1", "texts", "predicted"], rows, note=note)


def _confusion(report: ClassReport) -> str:
    """A row for each true class; the deeper a cell, the larger the share of its row."""
    rows = []
    for name, counts in zip(report.classes, report.confusion, strict=True):
        total = max(1, sum(counts))
        cells = [Cell(f'<span class="share" style="--share:{n / total:.3f}">{n:,}</span>', n) for n in counts]
        rows.append([cell(name), *cells])
    numeric = [False] + [True] * len(report.classes)
    note = "A row is what a text is, a column what it was said to be; deeper colour is a larger share of the row."
    return table_html(["is / said to be", *report.classes], rows, numeric, label="confusion matrix", note=note)


def _mistakes(report: ClassReport) -> str:
    rows = [[one.text, one.label, one.predicted, f"{100 * one.probability:.0f} %"] for one in report.mistakes]
    note = "Labels are sometimes wrong too: these are the first to look at."
    return table(["text", "is", "said to be", "sure by"], rows, note=note)
