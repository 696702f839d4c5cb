"""What torch.compile makes of one call."""
import dataclasses

from umbra._dynamo import compilation


@dataclasses.dataclass
class ExplainOutput:
    """The graphs of a call. Umbra captures a function whole or not at all: there is one graph, or a reason."""
    graphs: list
    graph_count: int
    graph_break_count: int
    break_reasons: list
    op_count: int
    ops_per_graph: list = None
    out_guards: list = None
    compile_times: str = None

    def __str__(self):
        lines = [f"Graph Count: {self.graph_count}", f"Graph Break Count: {self.graph_break_count}", f"Op Count: {self.op_count}", "Break Reasons:"]
        for i, reason in enumerate(self.break_reasons, 1):
            lines += [f"  Break Reason {i}:", f"    Reason: {reason}"]
        return "\n".join(lines) + "\n"


def of(function):
    """A function of the call's arguments that runs the call and gives an `ExplainOutput`."""
    def call(*args, **kwargs):
        graphs = []

        def keep(module, _):
            graphs.append(module)
            return module.forward
        optimized = compilation.optimized(function, keep)
        optimized.run(*args, **kwargs)
        operators = [[node.target for node in graph.graph.nodes if node.op == "call_function"] for graph in graphs]
        reasons = [optimized.why_not] if optimized.why_not else []
        return ExplainOutput(graphs, len(graphs), len(reasons), reasons, sum(len(targets) for targets in operators), operators)
    return call
