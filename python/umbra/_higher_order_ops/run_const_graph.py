"""run_const_graph: a graph that is computed once, ahead of the program that uses it."""
from umbra._higher_order_ops.operator import FlatOperator

run_const_graph = FlatOperator("run_const_graph")
