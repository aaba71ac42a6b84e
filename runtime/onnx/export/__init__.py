"""From the nodes of a recorded forward pass to the nodes of an ONNX graph, one function for each op."""
