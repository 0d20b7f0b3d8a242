"""Where a job's MFU stands: what is reachable at all, and what published runs of its class reached on its GPU."""

import json
from dataclasses import replace

from flopwatch import mfu_standing
from flopwatch.mfu import PRACTICAL_CEILING
from flopwatch.query import MfuFigure, Standing
from flopwatch_collector.compute.mfu import JobBasis
from flopwatch_collector.compute.runs import shape_of


def standing_of(basis: JobBasis, figure: MfuFigure) -> Standing | None:
    """The standing of a measured MFU; None without one.

    Published figures are against the dense peak of their number format: an fp8 run is set beside fp8 runs.
    """
    ratio = figure.run_dtype_ratio if figure.run_dtype_ratio is not None else figure.measured_ratio
    if ratio is None:
        return None
    product = basis.devices.product
    dtype = figure.run_dtype if figure.run_dtype_ratio is not None else figure.dtype
    low, high = PRACTICAL_CEILING
    bare = Standing(
        ratio=ratio,
        product=product.name if product is not None else None,
        dtype=dtype,
        ceiling_low_ratio=low,
        ceiling_high_ratio=high,
    )
    if product is None or dtype is None or basis.run.shape is None or figure.basis != "steps+shape":
        return bare
    shape = replace(shape_of(json.dumps(basis.run.shape, sort_keys=True)), stacks=())
    found = mfu_standing.standing(shape, product, dtype)
    if found.published is None:
        return replace(bare, model_class=found.model_class)
    return replace(
        bare,
        model_class=found.model_class,
        published_low_ratio=found.published.low,
        published_high_ratio=found.published.high,
        published_rows=found.published.rows,
        place=mfu_standing.place(ratio, found.published),
    )
