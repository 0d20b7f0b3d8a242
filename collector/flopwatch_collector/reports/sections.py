"""The sections of a report in HTML. Pure."""

from collections.abc import Iterable, Sequence
from datetime import date
from html import escape

from flopwatch.answers.economy import PriceTag
from flopwatch.answers.goodput import Goodput
from flopwatch.answers.ledger import ClassAmount, Day, Ledger
from flopwatch.answers.report import Report, ReportJob, ReportLine
from flopwatch_collector.reports import charts
from flopwatch_collector.reports.wording import Words

Cells = Sequence[tuple[str, bool]]
"""(text, whether it is a number); texts are escaped where they are made."""


def card(title: str, inside: str, *, place: str = "half", note: str = "") -> str:
    """A section with its heading; title and note are plain text."""
    small = f"<small>{escape(note)}</small>" if note else ""
    return f'<section class="card {place}"><h2>{escape(title)}{small}</h2>{inside}</section>'


def table(heads: Sequence[tuple[str, bool]], rows: Iterable[tuple[str, Cells]]) -> str:
    """A table; each row with its class."""
    head = "".join(f"<th{_NUMBER if number else ''}>{escape(text)}</th>" for text, number in heads)
    body = "".join(f'<tr class="{kind}">{_cells(cells)}</tr>' for kind, cells in rows)
    return f'<div class="wrap"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


_NUMBER = ' class="n"'


def _cells(cells: Cells) -> str:
    return "".join(f"<td{_NUMBER if number else ''}>{text}</td>" for text, number in cells)


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """Names and values, one below the other; plain text."""
    body = "".join(
        f'<tr><td>{escape(name)}</td><td class="n">{escape(value)}</td></tr>' for name, value in rows
    )
    return f'<div class="wrap"><table><tbody>{body}</tbody></table></div>'


def verdict(report: Report, words: Words) -> str:
    """The verdict, and its arithmetic."""
    found = report.verdict
    line = words.ratio(found.line_ratio, 0)
    key = "verdict.never" if found.never else f"verdict.{found.code}"
    mean = words.ratio(found.mean_30d_ratio)
    facts = [
        words("verdict.u", billable=words.ratio(report.ledger.billable_ratio)),
        words(
            "verdict.mean", valid=found.valid_days, mean=mean, above=found.days_above, total=found.days_total
        ),
        words("verdict.sustained", days=found.days_in_state)
        if found.sustained
        else words("verdict.not_sustained"),
    ]
    if found.cost_at_mean is not None:
        at_line = words.money(found.cost_at_line, 2)
        cost = words.money(found.cost_at_mean, 2)
        facts.append(words("verdict.cost", mean=mean, cost=cost, line=line, cost_line=at_line))
    facts.append(words(f"verdict.line_{found.line_source}", line=line))
    facts.append(words("verdict.decision"))
    kind = "banner good" if found.code.startswith("above") else "banner"
    items = "".join(f"<li>{escape(fact)}</li>" for fact in facts)
    return f'<section class="{kind}"><strong>{words.html(key, line=line)}</strong><ul>{items}</ul></section>'


def tiles(report: Report, words: Words) -> str:
    """The five figures at the top, each with what limits it."""
    ledger = report.ledger
    opaque = amount_of(ledger, "unmeasured").gpu_milliseconds
    capacity = ledger.capacity_gpu_milliseconds
    bounds = words(
        "tile.upper",
        upper=words.ratio(ledger.billable_upper_ratio),
        unknown=words.ratio(ledger.unknown_ratio),
        opaque=words.ratio(opaque / capacity if capacity else None),
    )
    made = [
        _tile(
            words("tile.utilisation"),
            words.ratio(ledger.billable_ratio),
            words(
                "tile.utilisation_sub",
                allocated=words.ratio(ledger.allocated_ratio),
                line=words.ratio(report.verdict.line_ratio, 0),
            ),
            bounds,
        ),
        _tile(
            words("tile.mfu"),
            words.ratio(report.fleet_mfu_ratio),
            words("tile.mfu_sub", coverage=words.ratio(report.fleet_mfu_coverage_ratio)),
        ),
        _waste_tile(ledger, words),
        _money_tile(report, words),
        _goodput_tile(report.goodput, words),
    ]
    return f'<div class="tiles">{"".join(made)}</div>'


def _tile(name: str, value: str, *notes: str) -> str:
    small = "".join(f"<span>{escape(note)}</span>" for note in notes)
    return f'<section class="card tile"><span>{escape(name)}</span><b>{escape(value)}</b>{small}</section>'


def _waste_tile(ledger: Ledger, words: Words) -> str:
    capacity = ledger.capacity_gpu_milliseconds
    ratio = words.ratio(ledger.waste_gpu_milliseconds / capacity if capacity else None)
    return _tile(
        words("tile.waste"),
        words("gpu_hours", hours=words.hours(ledger.waste_gpu_milliseconds)),
        words("tile.waste_sub", ratio=ratio, capacity=words.hours(capacity)),
    )


def _money_tile(report: Report, words: Words) -> str:
    if report.ledger.waste_money is None:
        return _tile(words("tile.money"), words("unknown"), words("tile.money_none"))
    note = words("tile.money_sub", cost=words.money(total_cost(report.ledger)))
    example = (words("price.example"),) if report.status.price_is_example else ()
    return _tile(words("tile.money"), words.money(report.ledger.waste_money), note, *example)


def _goodput_tile(found: Goodput | None, words: Words) -> str:
    if found is None:
        return _tile(words("tile.goodput"), words("unknown"))
    upper = words.ratio(found.ettr_upper_ratio)
    note = words("tile.goodput_sub", upper=upper, count=len(found.interruptions))
    return _tile(words("tile.goodput"), words.ratio(found.ettr_ratio), note)


def amount_of(ledger: Ledger, name: str) -> ClassAmount:
    """A class of the ledger."""
    return next(amount for amount in ledger.classes if amount.name == name)


def total_cost(ledger: Ledger) -> float | None:
    """What all of the ledger's time cost; None where a part is not known."""
    costs = [amount.money for amount in ledger.classes]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None


def days(report: Report, words: Words) -> str:
    """Utilisation by day against the line."""
    line = report.verdict.line_ratio
    bars = [_bar(day, words) for day in report.days]
    texts = (words("days_line"), words.ratio(line, 0))
    chart = charts.days_chart(bars, line, texts, words("days"))
    return card(words("days"), chart, note=words("days_sub"))


def _bar(day: Day, words: Words) -> charts.DayBar:
    title = words(
        "day_title",
        day=day.day,
        ratio=words.ratio(day.billable_ratio),
        unknown=words.ratio(day.unknown_ratio),
    )
    return charts.DayBar(
        label=date.fromisoformat(day.day).strftime("%m-%d"), ratio=day.billable_ratio, title=title
    )


ORDER = (
    "down", "unallocated", "unknown", "allocated_idle", "stalled", "in_job_loss", "unmeasured", "productive",
)  # fmt: skip


def where(report: Report, words: Words) -> str:
    """The waterfall of GPU-hours, with money."""
    chart = _waterfall(report.ledger, words, ORDER)
    return card(words("where"), chart, note=words("where_sub"))


def ledger_chart(ledger: Ledger, words: Words) -> str:
    """The waterfall of one user's or job's ledger: of the classes that it has."""
    return _waterfall(ledger, words, [name for name in ORDER if amount_of(ledger, name).gpu_milliseconds])


def _waterfall(ledger: Ledger, words: Words, names: Sequence[str]) -> str:
    total = ledger.capacity_gpu_milliseconds
    steps = [_step(amount_of(ledger, name), total, words) for name in names]
    whole = f"{words.hours(total)} · {words.money(total_cost(ledger))}"
    return charts.waterfall(steps, (total, words("class.capacity"), whole), words("where"))


def _step(amount: ClassAmount, total: int, words: Words) -> charts.Step:
    share = words.ratio(amount.gpu_milliseconds / total if total else None)
    text = f"{words.hours(amount.gpu_milliseconds)} · {share}"
    if amount.money is not None:
        text += f" · {words.money(amount.money)}"
    buckets = ", ".join(f"{name} {words.hours(value)}" for name, value in sorted(amount.buckets.items()))
    label = words(f"class.{amount.name}")
    title = f"{label}: {text}" + (f" ({buckets})" if buckets else "")
    return charts.Step(name=amount.name, label=label, amount=amount.gpu_milliseconds, text=text, title=title)


def jobs(found: Sequence[ReportJob], words: Words) -> str:
    """The jobs that wasted most, with their likely cause."""
    if not found:
        return card(words("jobs"), f"<p>{words.html('jobs_none')}</p>", place="all")
    heads = [
        (words("col.job"), False), (words("col.user"), False), (words("col.team"), False), (words("col.gpus"), True),
        (words("col.mfu"), True), (words("col.basis"), False), (words("col.wall"), True), (words("col.waste"), True),
        (words("col.share"), False), (words("col.money"), True), (words("col.cause"), False),
    ]  # fmt: skip
    most = max(job.waste_gpu_milliseconds for job in found)
    rows = [("", _job(job, most, words)) for job in found]
    return card(words("jobs"), table(heads, rows), place="all long")


def _job(job: ReportJob, most: int, words: Words) -> Cells:
    parts = list(job.waste_by_class.items())
    share = charts.share_bar(parts, most, words("col.share"))
    name = escape(job.name)
    if job.job_id != job.name:
        name += f'<br><span class="muted">{escape(job.job_id)}</span>'
    return [
        (name, False),
        (escape(job.user or words("unknown")), False),
        (escape(job.account or words("unknown")), False),
        (words.count(job.gpus), True),
        (words.ratio(job.mfu.measured_ratio), True),
        (escape(job.mfu.basis or words("none")), False),
        (words.ratio(job.wall_mfu_ratio), True),
        (words.hours(job.waste_gpu_milliseconds), True),
        (share, False),
        (escape(words.money(job.waste_money)), True),
        (escape(words.cause(job.cause)), False),
    ]


def goodput(found: Goodput | None, coverage: float | None, words: Words) -> str:
    """How much of the runs' time was kept, and what interruptions cost."""
    if found is None:
        return card(words("goodput"), f"<p>{words.html('goodput_none')}</p>")
    saves = found.checkpointing
    ettr = f"{words.ratio(found.ettr_ratio)} \N{EN DASH} {words.ratio(found.ettr_upper_ratio)}"
    each = found.lost_per_interruption_gpu_milliseconds
    rows = [
        ("g.ettr", ettr),
        ("g.interruptions", words.count(len(found.interruptions))),
        ("g.mtbf", words.duration(found.mtbf_seconds)),
        ("g.mttr", words.duration(found.mttr_seconds)),
        ("g.detect", words.duration(found.detect_seconds)),
        ("g.isolate", words.duration(found.isolate_seconds)),
        ("g.resume", words.duration(found.resume_seconds)),
        ("g.lost", words("gpu_hours", hours=words.hours(found.lost_gpu_milliseconds))),
        ("g.lost_each", words("unknown") if each is None else words("gpu_hours", hours=words.hours(each))),
        ("g.checkpoint", words.ratio(saves.overhead_ratio, 2)),
        ("g.save", words.duration(saves.save_seconds)),
        ("g.interval", words.duration(saves.interval_seconds)),
        ("g.best", words.duration(saves.optimum_interval_seconds)),
    ]
    note = (
        words("goodput_sub", jobs=found.jobs, coverage=words.ratio(coverage)) if coverage is not None else ""
    )
    return card(words("goodput"), pairs((words(key), value) for key, value in rows), note=note)


def gains(found: Goodput | None, words: Words) -> str:
    """What faster recovery would bring, by the loss model."""
    if found is None or not found.gains:
        return card(words("gain"), f"<p>{words.html('gain_none')}</p>")
    rows = [(words("g.modelled"), words.ratio(found.modelled_loss_ratio, 2))]
    for gain in found.gains:
        hours = words("gpu_hours", hours=words.hours(gain.gpu_milliseconds))
        rows.append((words(f"gain.{gain.name}"), f"{words.ratio(gain.ratio, 2)} · {hours}"))
    return card(words("gain"), pairs(rows))


def chargeback(report: Report, words: Words) -> str:
    """Who is billed for what, with the platform's losses as a credit."""
    by = words(f"by.{report.by}")
    heads = [
        (by[:1].upper() + by[1:], False), (words("col.leased"), True), (words("col.waste"), True),
        (words("col.opaque"), True), (words("col.unknown"), True), (words("col.billed"), True),
        (words("col.credit_hours"), True), (words("col.credit"), True), (words("col.net"), True),
        (words("col.cost"), True),
    ]  # fmt: skip
    rows = [("" if line.leased_somewhere else "apart", _line(line, words)) for line in report.lines]
    rows.append(("total", _total(report.lines, words)))
    note = words("chargeback_sub")
    return card(words("chargeback", by=by), table(heads, rows), place="all long", note=note)


def _line(line: ReportLine, words: Words) -> Cells:
    if not line.leased_somewhere:
        name = words.html("line.nobody")
    elif line.key is None:
        name = words.html("line.unknown")
    else:
        name = escape(line.label or line.key)
        if line.label and line.label != line.key:
            name += f'<br><span class="muted">{escape(line.key)}</span>'
    return [(name, False), *_amounts(line, words)]


def _amounts(line: ReportLine, words: Words) -> Cells:
    hours = (
        line.leased_gpu_milliseconds, line.waste_gpu_milliseconds, line.opaque_gpu_milliseconds,
        line.unknown_gpu_milliseconds,
    )  # fmt: skip
    texts = [
        *(words.hours(each) for each in hours),
        words.money(line.billed),
        words.hours(line.credit_gpu_milliseconds),
        words.money(line.credit),
        words.money(line.net),
        words.money(line.cost),
    ]
    return [(escape(text), True) for text in texts]


def _total(lines: Sequence[ReportLine], words: Words) -> Cells:
    def hours(name: str) -> str:
        return words.hours(sum(getattr(line, name) for line in lines))

    def money(name: str) -> str:
        values = [getattr(line, name) for line in lines]
        return words.money(None if None in values else sum(values))

    texts = [
        hours("leased_gpu_milliseconds"), hours("waste_gpu_milliseconds"), hours("opaque_gpu_milliseconds"),
        hours("unknown_gpu_milliseconds"), money("billed"), hours("credit_gpu_milliseconds"), money("credit"),
        money("net"), money("cost"),
    ]  # fmt: skip
    return [(words.html("line.total"), False), *((escape(text), True) for text in texts)]


def coverage(report: Report, words: Words) -> str:
    """What the figures rest on."""
    found = report.coverage
    since = found.provisional_from_seconds
    rows = [
        (words("cov.first"), words.time(found.first_data_seconds)),
        (words("cov.capacity"), words.ratio(found.capacity_ratio)),
        (words("cov.known"), words.ratio(found.known_ratio)),
        (words("cov.measured"), words.ratio(found.measured_ratio)),
        (words("cov.valid"), words("cov.of", valid=found.valid_days, total=found.total_days)),
        (words("cov.provisional"), words("cov.final") if since is None else words.time(since)),
    ]
    note = ""
    if found.history_progress_ratio is not None:
        note = words("cov.history", ratio=words.ratio(found.history_progress_ratio))
    return card(words("coverage"), pairs(rows), note=note)


def prices(report: Report, words: Words) -> str:
    """The prices, with date, source and age."""
    if not report.prices:
        return card(words("prices"), f"<p>{words.html('price.none')}</p>")
    heads = [
        (words("col.side"), False), (words("col.price"), True), (words("col.date"), False),
        (words("col.source"), False),
    ]  # fmt: skip
    rows = [("", _price(tag, words)) for tag in report.prices]
    note = words("price.example") if report.status.price_is_example else ""
    return card(words("prices"), table(heads, rows), note=note)


def _price(tag: PriceTag, words: Words) -> Cells:
    when = escape(tag.date or words("price.undated"))
    if tag.stale:
        when += f' <span class="stale">{words.html("price.stale", days=tag.age_days)}</span>'
    value = f'{escape(f"{tag.value:,.2f} {tag.currency}")}<br><span class="muted">{escape(tag.unit)}</span>'
    return [
        (words.html(f"price.side.{tag.side}"), False),
        (value, True),
        (when, False),
        (escape(tag.source or words("unknown")), False),
    ]
