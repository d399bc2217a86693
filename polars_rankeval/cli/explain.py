"""What the catalogue says of a measure, as text for the terminal."""

from __future__ import annotations

from typing import Any

from polars_rankeval.catalogue import Entry, edge_values
from polars_rankeval.measures.names import Measure


def edges(measure: Measure) -> dict[str, Any]:
    """A row of values at the edges."""
    return {"measure": str(measure), **edge_values(measure)}


def explanation(measure: Measure) -> str:
    """All about a measure."""
    entry = Entry.of(measure.name)
    text = [
        entry.usage if not measure.params and measure.k is None else f"{measure}, of {entry.usage}"
    ]
    text.append(f"  {entry.formula}")
    if entry.parameters:
        text.append("\nParameters, as in " + f"{entry.name}({entry.parameters[0][0]}=...)")
        for name, default, words in entry.parameters:
            shown = "any label above 0" if name == "rel" else default
            text.append(f"  {name:<10} {words}; default: {shown}")
    if entry.aliases:
        text.append(f"\nAlso called\n  {', '.join(entry.aliases)}")
    text.append(f"\nWhat {measure} gives")
    for edge, value in edge_values(measure).items():
        text.append(f"  {edge:<32} {'null' if value is None else f'{value:.4f}'}")
    if entry.undefined:
        text.append(
            "  Without a relevant row it is undefined: --no-relevant says what it is then (zero)."
        )
    return "\n".join(text)
