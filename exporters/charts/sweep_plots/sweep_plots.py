"""The plots of a sweep. To add one, add a file with `draw` to this folder and a row to `sweep_plots`."""

from collections.abc import Sequence
from functools import partial
from itertools import combinations

from exporters.charts.all_plots import Plot
from exporters.charts.sweep_plots import pareto_plot, swept_heatmap, swept_latency, swept_throughput
from exporters.results.sweep.sweep_rows import SweepTable


def sweep_plots(table: SweepTable) -> Sequence[Plot]:
    """Return the plots; a parameter with only one value has none."""
    varied = [name for name in table.parameters if len({row.parameters[name] for row in table.rows}) > 1]
    return [
        *(
            Plot(
                f"throughput_{name}",
                f"throughput against {name}, a line for each combination of the other parameters",
                partial(swept_throughput.draw, table=table, parameter=name),
            )
            for name in varied
        ),
        *(
            Plot(
                f"latency_{name}",
                f"median and p95 against {name}, a line for each combination of the other parameters",
                partial(swept_latency.draw, table=table, parameter=name),
            )
            for name in varied
        ),
        Plot("pareto", "p95 and p99 against throughput, with the Pareto front", partial(pareto_plot.draw, table=table)),
        *(
            Plot(
                f"heatmap_{first}_{second}",
                f"throughput by {first} and {second}",
                partial(swept_heatmap.draw, table=table, horizontal=first, vertical=second),
            )
            for first, second in combinations(varied, 2)
        ),
    ]
