"""A comparison as rows and plain values. One idea: figures stay in base units; the same keys in
every release."""

from __future__ import annotations

from collections.abc import Sequence

from eastwest.study.bands import Band
from eastwest.study.comparison import Comparison, Option, Refused
from eastwest.study.expectations import Verdict
from eastwest.table import Column, Table, Value
from eastwest.units import format_bytes_rate, format_money, format_time

SCHEMA = "eastwest.compare/2"


def table(
    options: Sequence[Option], refused: Sequence[Refused], best: Option, bands: bool
) -> Table:
    """Return the options as a table, the refused ones below them.

    Parameters
    ----------
    options, refused : the rows.
    best : the option that is marked as the choice.
    bands : whether the step's 5-95 % band has columns.
    """
    columns = [
        Column("label", "", right=False),
        Column("latency_s", "8 B\nlatency", format_time),
        Column("busbw_Bps", "gradient\nbusbw", format_bytes_rate, spare=3),
        Column("step_s", "step", format_time),
    ]
    if bands:
        columns += [
            Column("step_low_s", "5 %", format_time),
            Column("step_high_s", "95 %", format_time),
        ]
    columns += [
        Column("idle_share", "GPU\nidle", lambda v: f"{v:.1%}", spare=1),
        Column("cpu_cores", "CPU cores\na server", lambda v: f"{v:.1f}", spare=5),
        Column("memory_Bps", "host\nmemory", format_bytes_rate, spare=7),
        Column("network_USD_per_gpu", "network\n$ a GPU", format_money, spare=2),
        Column("network_W_per_gpu", "network\nW a GPU", lambda v: f"{v:.0f}", spare=6),
        Column("use", "use it for", right=False, spare=4),
    ]
    rows = [_cells(o, o.technology == best.technology, bands) for o in options]
    nothing = (None,) * (len(columns) - 2)
    rows += [(r.label, *nothing, "cannot be built") for r in refused]
    return Table("", tuple(columns), tuple(rows))


def _cells(option: Option, chosen: bool, bands: bool) -> tuple[Value, ...]:
    step = option.step_band
    band = (step.low if step else None, step.high if step else None) if bands else ()
    return (
        option.label,
        option.latency_s,
        option.busbw_Bps,
        option.step_s,
        *band,
        option.idle_share,
        option.cpu_cores,
        option.memory_Bps,
        option.network_USD_per_gpu,
        option.network_W_per_gpu,
        option.use + (" <- choose" if chosen else ""),
    )


def record(comparison: Comparison, verdicts: Sequence[Verdict] = ()) -> dict[str, object]:
    """Return a comparison as plain values for JSON.

    Parameters
    ----------
    comparison : the result.
    verdicts : of the cluster file's expectations.
    """
    return {
        "schema": SCHEMA,
        "cluster": comparison.cluster_line,
        "choice": comparison.choice,
        "best": comparison.best,
        "foil": comparison.foil or None,
        "reasons": [{"seconds": r.seconds, "text": r.text} for r in comparison.reasons],
        "remarks": list(comparison.remarks),
        "gradient_bytes": comparison.gradient_bytes,
        "worlds": comparison.uncertainty_worlds,
        "options": [_option_record(o, comparison) for o in comparison.options],
        "refused": [_refused_record(r) for r in comparison.refused],
        "busbw": {
            "sizes_bytes": list(comparison.busbw_sizes_bytes),
            "busbw_Bps": {label: list(values) for label, values in comparison.busbw_Bps},
        },
        "bill": comparison.bill.table().records(),
        "expect": [
            {"text": v.expectation.text, "predicted": v.predicted, "holds": v.holds}
            for v in verdicts
        ],
    }


def _refused_record(refused: Refused) -> dict[str, object]:
    return {
        "technology": refused.technology,
        "label": refused.label,
        "use": refused.use,
        "in_file": refused.in_file,
        "reason": refused.reason,
    }


def _option_record(option: Option, comparison: Comparison) -> dict[str, object]:
    def band(value: Band | None) -> list[float] | None:
        return [value.low, value.high] if value else None

    return {
        "technology": option.technology,
        "label": option.label,
        "use": option.use,
        "chosen": option.technology == comparison.best,
        "in_file": option.in_file,
        "latency_s": option.latency_s,
        "busbw_Bps": option.busbw_Bps,
        "step_s": option.step_s,
        "parts_s": dict(option.parts),
        "idle_share": option.idle_share,
        "cpu_cores": option.cpu_cores,
        "memory_Bps": option.memory_Bps,
        "network_USD_per_gpu": option.network_USD_per_gpu,
        "network_W_per_gpu": option.network_W_per_gpu,
        "limits_Bps": [list(limit) for limit in option.path.limits[:5]],
        "step_band_s": band(option.step_band),
        "latency_band_s": band(option.latency_band),
        "busbw_band_Bps": band(option.busbw_band),
        "cost_band_USD": band(option.cost_band),
    }
