"""From a graph to a table of kernel calls: lowering, passes, memory, binding."""
