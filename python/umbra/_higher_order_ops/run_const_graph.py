"""run_const_graph: a graph that is computed once, ahead of the program that uses it."""
from umbra._higher_order_ops.operator import HigherOrderOperator

run_const_graph = HigherOrderOperator("run_const_graph")
