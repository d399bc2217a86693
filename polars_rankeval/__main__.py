"""`python -m polars_rankeval`: evaluate the bundled sample."""

from __future__ import annotations

import polars as pl

import polars_rankeval as rk


def main() -> None:
    """Print the means of the two models of the sample, and the queries where they differ most."""
    table = rk.sample()
    means = rk.evaluate(table, "AP", "RR", "nDCG@10", "P@5", "R@10", by="model").collect()
    ap = (
        rk.per_query(table, "AP", by="model")
        .collect()
        .pivot("model", index="query_id", values="AP")
    )
    with pl.Config(
        tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True, float_precision=4
    ):
        print("Mean over queries, by model")
        print(means)
        print("\nAverage precision of each query")
        print(ap)


if __name__ == "__main__":
    main()
