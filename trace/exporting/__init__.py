"""What a trace has recorded, for other programs: data frames, tables, TensorBoard, weights."""
