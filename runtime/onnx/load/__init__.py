"""From the nodes of an ONNX graph to calls of ops, one function for each operator."""
