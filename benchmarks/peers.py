"""What people do today, from the same table: each function gives the means of AP, RR, nDCG@10, P@10 and R@100."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import polars as pl

MEASURES = ["AP", "RR", "nDCG@10", "P@10", "R@100"]


def group_by_agg(table: pl.DataFrame) -> list[float]:
    """Hand-written Polars: sort inside each group, aggregate, ties as the sort leaves them."""
    label = pl.col("label").sort_by("score", descending=True)
    hit = label > 0
    position = pl.int_range(1, pl.len() + 1)
    relevant = hit.sum()
    discount = 1 / (position + 1).log(2)
    ideal = (label.sort(descending=True).head(10) * discount.head(10)).sum()
    means = (
        table.lazy()
        .group_by("query_id")
        .agg(
            ap=(hit * hit.cum_sum() / position).sum() / relevant,
            rr=pl.when(relevant > 0).then(1 / (hit.arg_max() + 1)),
            ndcg=(label.head(10) * discount.head(10)).sum() / ideal,
            p=hit.head(10).sum() / 10,
            r=hit.head(100).sum() / relevant,
        )
        .select(pl.exclude("query_id").fill_nan(0.0).fill_null(0.0).mean())
        .collect()
    )
    return list(means.row(0))


def pytrec_eval(table: pl.DataFrame) -> list[float]:
    """pytrec_eval, dictionaries included; trec_eval's ties by document name."""
    import pytrec_eval as trec

    run: dict[str, dict[str, float]] = defaultdict(dict)
    qrels: dict[str, dict[str, int]] = defaultdict(dict)
    columns = (table[c].to_list() for c in ("query_id", "label", "score"))
    for i, (query, label, score) in enumerate(zip(*columns, strict=True)):
        run[str(query)][str(i)] = score
        qrels[str(query)][str(i)] = label
    names = {"map", "recip_rank", "ndcg_cut.10", "P.10", "recall.100"}
    results = trec.RelevanceEvaluator(dict(qrels), names).evaluate(dict(run))
    keys = ["map", "recip_rank", "ndcg_cut_10", "P_10", "recall_100"]
    return [float(np.mean([r[key] for r in results.values()])) for key in keys]
